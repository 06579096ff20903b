"""Memory of one process of a training, and what it writes to disk, in bytes, from a training's flags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lmfusion.errors import InputError
from lmfusion.planning.counting import Saved
from lmfusion.training.chunked_loss import CPU_CHUNK_BYTES, GPU_CHUNK_BYTES

SINGLE, HALF = 4, 2
# Numbers that each of fairseq's optimizers keeps of every trained weight, always in float32.
STATES = {"adam": 2, "adamax": 2, "lamb": 2, "adadelta": 2, "nag": 1, "adagrad": 1, "rmsprop": 1, "sgd": 0}
_LOGITS = 2
"""Copies of the logits at the peak beside those saved: the loss' gradient and theirs, in float32."""


@dataclass(frozen=True)
class Precision:
    """Describe how weights are held.

    Attributes:
        name: for people.
        weight: bytes of a weight in the model, and of its gradient.
        activation: bytes of a floating-point number between layers.
        copies: bytes a trained weight that the optimizer holds beside its states: weight and gradient in float32.
        cast: bytes a weight of casts that autocast holds for a step.
    """

    name: str
    weight: int
    activation: int
    copies: int
    cast: int


def precision(common: Any) -> Precision:
    """Read the precision of training from fairseq's ``common`` configuration."""
    half = "bf16" if common.bf16 or common.memory_efficient_bf16 else "fp16"
    if common.memory_efficient_bf16 or common.memory_efficient_fp16:
        return Precision(f"memory-efficient {half}", HALF, HALF, 0, 0)
    if common.bf16 or common.fp16:
        return Precision(half, HALF, HALF, 2 * SINGLE, 0)
    if common.amp:
        return Precision("amp", SINGLE, HALF, 0, HALF)
    return Precision("fp32", SINGLE, SINGLE, 0, 0)


@dataclass(frozen=True)
class Memory:
    """Bytes of one process at the peak of a step, without the libraries' own and what allocators waste."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    loss: int

    @property
    def total(self) -> int:
        """Return the sum of all parts."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.loss


def optimizer_states(cfg: Any) -> int:
    """Return the bytes that the optimizer keeps of a trained weight.

    Raises:
        InputError: if the optimizer is not in the table.
    """
    name = str(cfg.optimizer._name)
    if name not in STATES:
        raise InputError(f"--optimizer {name}: its memory is not known; known are {', '.join(STATES)}.")
    momentum = name == "sgd" and float(cfg.optimizer.momentum) > 0
    return SINGLE * (STATES[name] + momentum)


def training_memory(
    cfg: Any, weights: int, trained: int, kept: Saved, tokens: int, length: int, vocabulary: int
) -> Memory:
    """Estimate the memory of a step.

    Args:
        cfg: fairseq's configuration.
        weights: number of parameters.
        trained: number of those that training changes.
        kept: bytes in float32 that a sentence keeps for the backward pass.
        tokens: of a batch of one process.
        length: of that sentence.
        vocabulary: V.
    """
    held, sentences = precision(cfg.common), tokens / length
    chunked = str(cfg.criterion._name).startswith("chunked")
    if chunked:
        default = CPU_CHUNK_BYTES if cfg.common.cpu else GPU_CHUNK_BYTES
        size = int(cfg.criterion.loss_chunk_tokens) * vocabulary * SINGLE or default
        # The sum of the output matrix' gradient waits in float32 beside the chunk and its gradient.
        loss = 2 * min(size, tokens * vocabulary * SINGLE)
    else:
        loss = int(sentences * kept.logits) + _LOGITS * tokens * vocabulary * SINGLE
    return Memory(
        weights=weights * (held.weight + held.cast),
        gradients=trained * held.weight,
        optimizer=trained * (optimizer_states(cfg) + held.copies),
        activations=int(sentences * (kept.floats * held.activation / SINGLE + kept.others)),
        loss=loss,
    )


def checkpoint_bytes(cfg: Any, weights: int, trained: int) -> int:
    """Return the size of a checkpoint: the model's weights as they are held, and the optimizer's states."""
    states = 0 if cfg.checkpoint.no_save_optimizer_state else optimizer_states(cfg)
    return weights * precision(cfg.common).weight + trained * states


def checkpoints_kept(cfg: Any, epochs: int, updates: int) -> int:
    """Return how many checkpoints lie in ``--save-dir`` in the end, after so many whole epochs; 0 to keep keeps all."""
    save, count = cfg.checkpoint, 0
    if save.no_save:
        return 0
    count += 0 if save.no_last_checkpoints else 1
    count += 1  # the best, which --disable-validation would leave out
    count += max(0, save.keep_best_checkpoints)
    if not save.no_epoch_checkpoints:
        written = epochs // max(1, save.save_interval)
        count += written if save.keep_last_epochs <= 0 else min(written, save.keep_last_epochs)
    if save.save_interval_updates > 0:
        written = updates // save.save_interval_updates
        count += written if save.keep_interval_updates <= 0 else min(written, save.keep_interval_updates)
    return count
