"""Memory and disk of a training as its flags say, by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lmfusion.errors import InputError
from lmfusion.planning.counting import Saved
from lmfusion.planning.memory import checkpoint_bytes, checkpoints_kept, optimizer_states, precision, training_memory
from lmfusion.training.chunked_loss import CPU_CHUNK_BYTES, GPU_CHUNK_BYTES

WEIGHTS, TRAINED, TYPES, LENGTH = 1000, 600, 50, 10
PRECISIONS = "bf16 fp16 memory_efficient_bf16 memory_efficient_fp16 amp cpu".split()
SAVED = {
    "no_save": False,
    "no_last_checkpoints": False,
    "no_epoch_checkpoints": False,
    "no_save_optimizer_state": False,
}
SAVED |= {"keep_best_checkpoints": -1, "keep_last_epochs": -1, "keep_interval_updates": -1}
SAVED |= {"save_interval": 1, "save_interval_updates": 0}


def config(*common: str, criterion: str = "cross_entropy", chunk: int = 0, **optimizer: Any) -> Any:
    """fairseq's configuration with these flags of precision; that of checkpoints is SAVED."""
    return SimpleNamespace(
        common=SimpleNamespace(**{name: name in common for name in PRECISIONS}),
        optimizer=SimpleNamespace(**{"_name": "adam", "momentum": 0.0, **optimizer}),
        criterion=SimpleNamespace(_name=criterion, loss_chunk_tokens=chunk),
        checkpoint=SimpleNamespace(**SAVED),
    )


@pytest.mark.parametrize(
    ("flags", "name", "weight", "trained"),
    [
        ((), "fp32", 4, 4 + 8),
        (("bf16",), "bf16", 2, 2 + 8 + 8),  # a gradient; two states, and weight and gradient in float32
        (("fp16",), "fp16", 2, 2 + 8 + 8),
        (("fp16", "memory_efficient_fp16"), "memory-efficient fp16", 2, 2 + 8),
        (("memory_efficient_bf16",), "memory-efficient bf16", 2, 2 + 8),
        (("amp",), "amp", 4 + 2, 4 + 8),  # and a copy in half precision
    ],
)
def test_bytes_of_a_weight_are_those_of_its_precision(flags: Any, name: str, weight: int, trained: int) -> None:
    cfg = config(*flags)
    found = training_memory(cfg, WEIGHTS, TRAINED, Saved(0, 0, 0), 40, LENGTH, TYPES)
    assert precision(cfg.common).name == name
    assert found.weights == weight * WEIGHTS
    assert found.gradients + found.optimizer == trained * TRAINED
    assert found.total == weight * WEIGHTS + trained * TRAINED + found.loss


@pytest.mark.parametrize(
    ("optimizer", "momentum", "numbers"),
    [("adam", 0, 2), ("nag", 0.99, 1), ("sgd", 0.0, 0), ("sgd", 0.9, 1), ("adagrad", 0, 1)],
)
def test_an_optimizer_keeps_numbers_in_single_precision(optimizer: str, momentum: float, numbers: int) -> None:
    cfg = config("bf16", _name=optimizer, momentum=momentum)
    assert optimizer_states(cfg) == 4 * numbers
    assert checkpoint_bytes(cfg, WEIGHTS, TRAINED) == 2 * WEIGHTS + 4 * numbers * TRAINED
    cfg.checkpoint.no_save_optimizer_state = True
    assert checkpoint_bytes(cfg, WEIGHTS, TRAINED) == 2 * WEIGHTS


def test_an_optimizer_of_which_nothing_is_known_is_refused() -> None:
    with pytest.raises(InputError, match="--optimizer adafactor"):
        optimizer_states(config(_name="adafactor"))


@pytest.mark.parametrize(("flags", "size"), [((), 4), (("bf16",), 2), (("amp",), 2)])
def test_what_waits_for_the_backward_pass_is_that_of_all_sentences(flags: Any, size: int) -> None:
    """Masks and indices are as large in every precision, and so are logits, which are in single precision."""
    found = training_memory(config(*flags), WEIGHTS, TRAINED, Saved(400, 30, 7), 40, LENGTH, TYPES)
    assert found.activations == 4 * (100 * size + 30)
    assert found.loss == 4 * 7 + 2 * 40 * TYPES * 4


def test_a_loss_in_chunks_has_two_chunks_at_a_time() -> None:
    def loss(cfg: Any, tokens: int, types: int) -> int:
        return training_memory(cfg, WEIGHTS, TRAINED, Saved(0, 0, 9), tokens, LENGTH, types).loss

    few = config(criterion="chunked_cross_entropy", chunk=8)
    assert loss(few, 40, TYPES) == 2 * 8 * TYPES * 4
    assert loss(few, 5, TYPES) == 2 * 5 * TYPES * 4  # of fewer tokens than a chunk takes
    large = 10_000_000
    assert loss(config(criterion="chunked_label_smoothed_cross_entropy"), 40, large) == 2 * GPU_CHUNK_BYTES
    assert loss(config("cpu", criterion="chunked_cross_entropy"), 40, large) == 2 * CPU_CHUNK_BYTES
    assert CPU_CHUNK_BYTES != GPU_CHUNK_BYTES


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        ({}, 2 + 7),  # the last, the best and those of 7 epochs
        ({"no_save": True}, 0),
        ({"no_epoch_checkpoints": True}, 2),
        ({"no_epoch_checkpoints": True, "no_last_checkpoints": True}, 1),
        ({"no_epoch_checkpoints": True, "keep_best_checkpoints": 3}, 2 + 3),
        ({"save_interval": 3}, 2 + 2),
        ({"keep_last_epochs": 4}, 2 + 4),
        ({"keep_last_epochs": 20}, 2 + 7),
        ({"keep_last_epochs": 0}, 2 + 7),  # fairseq removes none then
        ({"no_epoch_checkpoints": True, "save_interval_updates": 100}, 2 + 5),
        ({"no_epoch_checkpoints": True, "save_interval_updates": 100, "keep_interval_updates": 2}, 2 + 2),
        ({"no_epoch_checkpoints": True, "save_interval_updates": 100, "keep_interval_updates": 0}, 2 + 5),
    ],
    ids=str,
)
def test_checkpoints_that_are_there_in_the_end(flags: dict[str, Any], kept: int) -> None:
    cfg = config()
    cfg.checkpoint = SimpleNamespace(**{**SAVED, **flags})
    assert checkpoints_kept(cfg, 7, 550) == kept
