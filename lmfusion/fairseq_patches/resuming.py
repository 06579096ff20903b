"""How fairseq reads a checkpoint: safely, complete with its frozen language model, and as a run that goes on."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Callable

from fairseq.distributed.utils import is_master
from omegaconf import open_dict
from omegaconf.errors import OmegaConfBaseException

from lmfusion.checkpoint import frozen_file
from lmfusion.checkpoint.atomic_files import remove_unfinished
from lmfusion.checkpoint.config_types import check_types
from lmfusion.checkpoint.contents import check_sizes
from lmfusion.checkpoint.locks import lock_folder
from lmfusion.checkpoint.reading import DAMAGE, first_line, read_file, safe_types
from lmfusion.checkpoint.starting_point import starts_from
from lmfusion.errors import InputError
from lmfusion.fairseq_patches import early_stop, text_kit
from lmfusion.lm.description import check_described
from lmfusion.training.unknown_symbols import check_unknown_symbols

logger = logging.getLogger(__name__)


def read_safely(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``load_checkpoint_to_cpu`` refuse damaged files and anything but plain values, and add the frozen LM."""

    def load_checkpoint_to_cpu(path: str, *args: Any, **kwargs: Any) -> Any:
        if not {"optimizer_history", "best_loss"} & read_file(Path(path), mmap=True).keys():
            raise InputError(
                f"{path} holds weights, and nothing of a training: fairseq's commands read checkpoints of "
                f"fairseq-train. A language model joins a model by --src-lm or --tgt-lm."
            )
        try:
            with safe_types():
                state = original(path, *args, **kwargs)
        except (*DAMAGE, OmegaConfBaseException) as error:
            raise InputError(
                f"{path} is damaged or not what it says: its configuration cannot be read ({first_line(error)}). Copy "
                f"or train it again."
            ) from error
        state = frozen_file.inline(state, Path(path), read=read_file)
        check_sizes(Path(path), state)
        check_types(Path(path), state)
        check_described(Path(path), state)
        text_kit.remember(Path(path), state)
        return state

    return load_checkpoint_to_cpu


def resume_completely(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``Trainer.load_checkpoint`` restore the counts of ``--patience`` and leave a finished run as it is."""

    def load_checkpoint(
        self: Any,
        filename: str,
        reset_optimizer: bool = False,
        reset_lr_scheduler: bool = False,
        optimizer_overrides: Any = None,
        reset_meters: bool = False,
    ) -> Any:
        _own_folder(self)
        starts_from(self.cfg.checkpoint, self.checkpoint_suffix)  # refuses a file that was asked for and is not there
        settings = (reset_optimizer, reset_lr_scheduler, optimizer_overrides, reset_meters)
        extra_state = original(self, filename, *settings)
        if extra_state is not None and not reset_optimizer:
            if not reset_meters:
                early_stop.restore(extra_state.get(early_stop.KEY))
            _resume(self, filename)
        return extra_state

    return load_checkpoint


def check_what_is_read(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``load_checkpoint``, after which training begins, tell how much of the text the model does not know."""

    def load_checkpoint(cfg: Any, trainer: Any, **kwargs: Any) -> Any:
        found = original(cfg, trainer, **kwargs)
        if type(trainer.get_model()).__module__.startswith("lmfusion."):  # fairseq's own train on what they like
            check_unknown_symbols(trainer.task)
        return found

    return load_checkpoint


def _own_folder(trainer: Any) -> None:
    """Lock the folder for this run, whose master process alone asks, and remove what killed runs left half-written.

    Raises:
        InputError: another process trains into it.
    """
    settings = trainer.cfg.checkpoint
    folder = Path(settings.save_dir)
    if settings.no_save or not is_master(trainer.cfg.distributed_training) or not folder.is_dir():
        return
    trainer.folder_lock = lock_folder(folder)  # until the trainer is gone
    remove_unfinished(folder)


def why_finished(cfg: Any, updates: int) -> str | None:
    """Return why there is nothing left to train; None if there is.

    Args:
        cfg: fairseq's whole configuration.
        updates: done.
    """
    most, patience = cfg.optimization.max_update, cfg.checkpoint.patience
    if most and updates >= most:
        return f"{updates:,} updates are done, and --max-update is {most:,}"
    counts = early_stop.counts()
    if patience > 0 and counts is not None and counts["num_runs"] >= patience:
        return f"the last {counts['num_runs']} validations brought no gain, and --patience is {patience}"
    return None


def _resume(trainer: Any, filename: str) -> None:
    """Go on from the updates of a checkpoint that was loaded, or end the run before its first update.

    Raises:
        InputError: the checkpoint has no optimizer state, and the run is not finished.
    """
    done = int((trainer._optim_history or [{}])[-1].get("num_updates", 0))
    reason = why_finished(trainer.cfg, done)
    if reason is not None:
        logger.info(f"this run is finished: {reason}. Nothing is trained, no file is changed.")
        with open_dict(trainer.cfg):
            trainer.cfg.optimization.max_epoch = -1  # fairseq_cli.train asks before each epoch; 0 is no limit
        trainer.set_num_updates(done)
    elif trainer.get_num_updates() < done:
        raise InputError(
            f"{filename} has no optimizer state (--no-save-optimizer-state, lmfusion average or export), so training "
            f"cannot resume from its {done:,} updates. To start a new training with its weights add "
            f"--reset-optimizer, or give it as --finetune-from-model with another --save-dir."
        )
