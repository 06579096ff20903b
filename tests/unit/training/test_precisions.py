"""Every precision of fairseq's, both language models and every cell: updates lower the loss, frozen LMs stay."""

from __future__ import annotations

from typing import Any, Callable

import pytest
import torch
from torch import Tensor

KINDS = ("cloze LM", "causal LM", "baseline", "SRC-ELMO", "SRC-FT", "TGT-ELMO", "TGT-FT", "SRC-ATTEND", "TGT-COLD")
TYPES = {
    "float32": ((), torch.float32),
    "--fp16": (("--fp16", "--fp16-no-flatten-grads"), torch.float16),  # without it fairseq asks a CPU for its GPU
    "--memory-efficient-fp16": (("--memory-efficient-fp16",), torch.float16),
    "--bf16": (("--bf16",), torch.bfloat16),
    "--memory-efficient-bf16": (("--memory-efficient-bf16",), torch.bfloat16),
    "--amp": (("--amp",), torch.float32),
}
UPDATES = 8
BY_DEFAULT = [("--fp16", "SRC-ELMO"), ("--bf16", "SRC-ELMO"), ("--memory-efficient-fp16", "cloze LM")]
BY_DEFAULT += [("--fp16", "SRC-ATTEND"), ("--fp16", "TGT-COLD")]
PAIRS = [
    pytest.param(precision, kind, marks=() if (precision, kind) in BY_DEFAULT else pytest.mark.slow)
    for precision in TYPES
    for kind in KINDS
]
FROZEN = ".representation.lm."
KEEP = ("SRC-ELMO", "TGT-ELMO", "SRC-ATTEND", "TGT-COLD")


def frozen_weights(trainer: Any) -> dict[str, Tensor]:
    """Copies of what is not trained."""
    return {name: p.clone() for name, p in trainer.get_model().named_parameters() if not p.requires_grad}


@pytest.mark.parametrize(("precision", "kind"), PAIRS)
def test_training(make_trainer: Callable[..., Any], make_batch: Callable[..., Any], precision: str, kind: str) -> None:
    flags, dtype = TYPES[precision]
    trainer = make_trainer(kind, "--optimizer", "adam", "--clip-norm", 1.0, *flags)
    assert {p.dtype for p in trainer.get_model().parameters()} == {dtype}
    batch, frozen = make_batch(kind), frozen_weights(trainer)
    logged = [trainer.train_step([batch]) for _ in range(UPDATES)]
    assert trainer.get_num_updates() == UPDATES
    found = [float(log["loss"]) for log in logged]
    assert found[-1] < found[0] - 0.1
    assert all(p.isfinite().all() for p in trainer.get_model().parameters())
    assert bool(frozen) == (kind in KEEP)
    after = dict(trainer.get_model().named_parameters())
    assert all(torch.equal(after[name], value) for name, value in frozen.items())
    assert all(FROZEN in name for name in frozen)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", ["--fp16", "--bf16"])
def test_first_loss_is_that_of_float32(
    make_trainer: Callable[..., Any], make_batch: Callable[..., Any], precision: str, kind: str
) -> None:
    """Within a hundredth: the same weights, the same batch, dropout off."""
    losses = {}
    for flags in ((), TYPES[precision][0]):
        torch.manual_seed(1)
        quiet = ("--dropout", 0) if kind.endswith("LM") or kind in ("baseline", *KEEP) else ()
        trainer = make_trainer(kind, "--optimizer", "adam", *quiet, *flags)
        losses[flags] = float(trainer.valid_step(make_batch(kind))["loss"])
    single, half = losses.values()
    assert half == pytest.approx(single, rel=0.01)
