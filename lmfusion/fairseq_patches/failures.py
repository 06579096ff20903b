"""Training that runs out of memory or of the range of its numbers says which batch it was and what to change."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, Callable

import fairseq.trainer
from fairseq.nan_detector import NanDetector
from fairseq.trainer import Trainer
from torch import Tensor

from lmfusion.errors import UserError
from lmfusion.fusion.learning_rates import optimizer_name

logger = logging.getLogger(__name__)

OOM_LIMIT = 10
"""Batches in a row that do not fit, after which a run ends: fairseq would go on skipping them for ever."""


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether PyTorch could not allocate memory, on a GPU or a CPU."""
    return "out of memory" in str(error) or "can't allocate memory" in str(error)


def describe_batch(sample: dict[str, Any]) -> str:
    """A batch's sizes, padding included, and where its longest sentence stands: "24 sentences, 24 x 53 source …"."""
    inputs = sample.get("net_input") or {}
    rows = {"source": inputs.get("src_tokens"), "target": inputs.get("prev_output_tokens")}
    sizes = [f"{row.size(0)} x {row.size(1)} {side}" for side, row in rows.items() if isinstance(row, Tensor)]
    text = f"{sample.get('nsentences', '?')} sentences, {' and '.join(sizes) or 'no'} tokens with padding"
    ids = sample.get("id")
    if isinstance(ids, Tensor) and ids.numel():
        numbers = sorted(ids.tolist())
        text += f" (numbers {', '.join(map(str, numbers[:5]))}{' …' if len(numbers) > 5 else ''} of the data set)"
    return text


def smaller_batches(cfg: Any, validation: bool = False) -> str:
    """Flags that make a batch smaller, from their present values."""
    if validation:
        return "give a smaller --max-tokens-valid or --batch-size-valid"
    data, frequency = cfg.dataset, next(iter(cfg.optimization.update_freq))
    flags = [f"--max-tokens {data.max_tokens // 2}"] if data.max_tokens else []
    flags += [f"--batch-size {max(1, data.batch_size // 2)}"] if data.batch_size else []
    return (
        f"give {' '.join(flags)} --update-freq {2 * frequency} (the same update from batches half the size), "
        f"--max-source-positions and --max-target-positions against single long sentences, or half precision (--bf16, "
        f"--fp16)"
    )


def overflow_advice(cfg: Any, update: int, reason: str) -> str:
    """What to change where gradients are no longer numbers.

    Args:
        cfg: fairseq's whole configuration.
        update: number of updates done.
        reason: of the failure, as fairseq gives it.
    """
    common, optimizer, optimization = cfg.common, cfg.optimizer, cfg.optimization
    half = common.fp16 or common.amp
    mends = [f"a lower --lr than {next(iter(optimization.lr)):g} or a longer --warmup-updates"]
    if not optimization.clip_norm:
        mends.append("--clip-norm 0.1")
    if half:
        mends.append(f"--bf16 or float32 instead of {'--fp16' if common.fp16 else '--amp'}, whose range ends at 65,504")
    if optimizer_name(optimizer) == "nag":
        adam = "--optimizer adam --adam-betas '(0.9, 0.98)' --lr 5e-4 --lr-scheduler inverse_sqrt --warmup-updates 4000"
        mends.append(f"Adam instead of Nesterov's momentum ({adam})")
    return (
        f"training diverged after update {update}: {reason.splitlines()[0]} Try {'; '.join(mends)}. The checkpoints in "
        f"{cfg.checkpoint.save_dir} are from before; to go on from one with another optimizer or learning rate add "
        f"--reset-optimizer --reset-lr-scheduler."
    )


def _name_batch(trainer: Any, error: Exception) -> None:
    """Log the batch that did not fit.

    Raises:
        UserError: if nothing fits, or other processes wait for this one's gradients.
    """
    text = f"out of memory: {describe_batch(trainer.last_sample)} did not fit"
    if not trainer.model.training:  # fairseq tries validation a second time
        logger.warning(f"{text}.")
        return
    trainer.oom_in_a_row = getattr(trainer, "oom_in_a_row", 0) + 1
    advice = smaller_batches(trainer.cfg)
    settings = trainer.cfg.distributed_training
    if settings.distributed_world_size > 1 and settings.ddp_backend not in ("legacy_ddp", "no_c10d"):
        raise UserError(
            f"{text}, and the other processes cannot go on without it: {advice}. With --ddp-backend legacy_ddp such "
            f"batches are skipped."
        ) from error
    if trainer.oom_in_a_row >= OOM_LIMIT:
        raise UserError(f"{text}, nor did the {OOM_LIMIT - 1} batches before it: {advice}.") from error
    logger.warning(f"{text} and is left out of training. To train on it {advice}.")


def install() -> None:
    """Make fairseq's trainer do so; safe to call again."""
    if getattr(Trainer, "last_sample", None) is not None:
        return
    Trainer.last_sample = {}
    # Its backward hooks end in a StopIteration at an encoder's output, a dictionary of lists of tensors.
    fairseq.trainer.NanDetector = partial(NanDetector, backward=False)
    _remember_batches()
    _wrap_steps()


def _remember_batches() -> None:
    prepare: Callable[..., Any] = Trainer._prepare_sample
    log_oom: Callable[..., None] = Trainer._log_oom
    set_num_updates: Callable[..., None] = Trainer.set_num_updates

    def _prepare_sample(self: Any, sample: Any, *args: Any, **kwargs: Any) -> Any:
        """fairseq's; the trainer remembers what it is working on."""
        if isinstance(sample, dict) and sample:
            self.last_sample = sample
        return prepare(self, sample, *args, **kwargs)

    def _log_oom(self: Any, exc: Exception) -> None:
        """fairseq's, and which batch it was."""
        log_oom(self, exc)
        _name_batch(self, exc)

    def counted(self: Any, num_updates: int) -> None:
        """fairseq's; an update was made, so something fits."""
        self.oom_in_a_row = 0
        set_num_updates(self, num_updates)

    Trainer._prepare_sample, Trainer._log_oom, Trainer.set_num_updates = _prepare_sample, _log_oom, counted


def _wrap_steps() -> None:
    train: Callable[..., Any] = Trainer.train_step
    valid: Callable[..., Any] = Trainer.valid_step

    def train_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        """fairseq's.

        Raises:
            UserError: if gradients are no longer numbers, or there is no memory left.
        """
        try:
            return train(self, *args, **kwargs)
        except FloatingPointError as error:
            if "inconsistent" in str(error):  # says itself what to do
                raise UserError(str(error)) from error
            raise UserError(overflow_advice(self.cfg, self.get_num_updates(), str(error))) from error
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise UserError(_no_memory(self, validation=False)) from error

    def valid_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        """fairseq's.

        Raises:
            UserError: if there is no memory left.
        """
        try:
            return valid(self, *args, **kwargs)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise UserError(_no_memory(self, validation=True)) from error

    Trainer.train_step, Trainer.valid_step = train_step, valid_step


def _no_memory(trainer: Any, validation: bool) -> str:
    batch = describe_batch(trainer.last_sample)
    return f"out of memory with {batch}: {smaller_batches(trainer.cfg, validation)}."
