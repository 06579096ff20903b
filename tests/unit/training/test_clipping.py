"""``--clip-norm``: what the optimizer is given is no longer than the limit, for recurrent models above all."""

from __future__ import annotations

from typing import Any, Callable

import pytest
import torch
from torch import Tensor

KINDS = ("recurrent LM", "LSTM", "cloze LM", "SRC-FT")


def whole(gradients: list[Tensor]) -> float:
    """The length of all gradients as one vector, in float64."""
    return float(sum(g.double().pow(2).sum() for g in gradients)) ** 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_no_update_is_given_a_longer_gradient_than_the_limit(
    make_trainer: Callable[..., Any], make_batch: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    lengths: list[float] = []
    step = torch.optim.SGD.step

    def measured(self: torch.optim.SGD, *args: Any, **rest: Any) -> Any:
        lengths.append(whole([p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]))
        return step(self, *args, **rest)

    monkeypatch.setattr(torch.optim.SGD, "step", measured)
    found: dict[float, list[float]] = {}
    for limit in (0.0, 0.05):
        torch.manual_seed(1)
        trainer = make_trainer(kind, "--optimizer", "sgd", "--clip-norm", limit)
        lengths.clear()
        for _ in range(3):
            trainer.train_step([make_batch(kind)])
        found[limit] = list(lengths)
    free, clipped = found.values()
    assert len(free) == len(clipped) == 3
    assert min(free) > 0.05, "without a limit they are longer: there is something to clip"
    assert clipped == pytest.approx([0.05] * 3, rel=1e-3)
