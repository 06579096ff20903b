"""What training on a CPU does in its own way, all of it on and all of it off: the same losses, step after step."""

from __future__ import annotations

import statistics
from typing import Any, Callable

import pytest
import torch

from lmfusion.kernels import attention as cpu_attention
from lmfusion.kernels import matrix_product
from lmfusion.lm.transformer import layout as layouts
from lmfusion.training.chunked_loss import chunked_cross_entropy

PAD, STEPS = 1, 25


def batches() -> list[torch.Tensor]:
    """Sentences in which every word follows from the one before, ``</s> w1 ... wn </s>``."""
    generator = torch.Generator().manual_seed(5)
    found = []
    for _ in range(STEPS):
        rows = torch.full((16, 10), PAD)
        for row, length in zip(rows, torch.randint(3, 9, (16,), generator=generator).tolist()):
            first = int(torch.randint(0, 8, (1,), generator=generator))
            row[: length + 2] = torch.tensor([2, *(4 + (first + 3 * n) % 8 for n in range(length)), 2])
        found.append(rows)
    return found


def losses(lm: Any, seed: int) -> list[float]:
    """In nats a token: of the next word for a causal LM, of every word for a cloze LM."""
    torch.manual_seed(seed)
    # Adam would blow up roundings: its first steps have the size of the rate however small the gradient.
    optimizer = torch.optim.SGD(lm.parameters(), lr=0.1, momentum=0.9)
    found = []
    for rows in batches():
        tokens, target = (rows, rows) if lm.sees_future else (rows[:, :-1], rows[:, 1:])

        def head(features: torch.Tensor, weight: torch.Tensor, target: torch.Tensor = target) -> Any:
            return chunked_cross_entropy(features, weight, target, padding_idx=PAD)

        optimizer.zero_grad()
        loss = lm(tokens, head=head)[0].loss / target.ne(PAD).sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(lm.parameters(), 1.0)
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Every path on, or every one off."""

    def to(on: bool) -> None:
        monkeypatch.setattr(matrix_product, "onednn_is_faster", lambda: on)
        monkeypatch.setattr(cpu_attention, "is_faster", lambda query, dropout: on)
        monkeypatch.setattr(layouts, "MUCH_PADDING", 0.0 if on else 1.0)

    return to


@pytest.mark.parametrize("kind", ["make_cloze", "make_causal"])
def test_without_dropout_every_loss_is_the_same(request: Any, switch: Any, kind: str) -> None:
    quiet = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
    found = []
    for on in (True, False):
        switch(on)
        torch.manual_seed(1)
        found.append(losses(request.getfixturevalue(kind)(**quiet).train(), seed=1))
    assert found[0] == pytest.approx(found[1], abs=2e-4)
    assert found[0][-1] < 0.7 * found[0][0], "it learns"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["make_cloze", "make_causal"])
def test_with_dropout_losses_differ_no_more_than_those_of_two_seeds(request: Any, switch: Any, kind: str) -> None:
    ends: dict[bool, list[float]] = {}
    for on in (True, False):
        switch(on)
        ends[on] = []
        for seed in range(6):
            torch.manual_seed(1)
            lm = request.getfixturevalue(kind)(dropout=0.1, attention_dropout=0.3, activation_dropout=0.1)
            ends[on].append(statistics.mean(losses(lm.train(), seed)[-10:]))
    error = (statistics.variance(ends[True]) / 6 + statistics.variance(ends[False]) / 6) ** 0.5
    assert abs(statistics.mean(ends[True]) - statistics.mean(ends[False])) < 3 * error
