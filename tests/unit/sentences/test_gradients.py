"""PCGrad against vectors worked out by hand, and against the plain sum where nothing conflicts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from fairseq.optim import AMPOptimizer
from torch import nn

from lmfusion.training.gradients import TaskGradients, dot, project, seeded_orders, total

OPTIMIZER = SimpleNamespace(backward=lambda loss: loss.backward())


def vectors(*rows: tuple[float, ...]) -> list[Any]:
    return [[torch.tensor(row)] for row in rows]


@pytest.mark.parametrize(
    ("rows", "orders", "expected"),
    [
        ([(1.0, 0.0), (-1.0, 1.0)], [[1], [0]], [0.5, 1.5]),
        ([(1.0, 0.0), (-1.0, 1.0), (-1.0, -1.0)], [[1, 2], [0, 2], [0, 1]], [-1.0, 0.0]),
        ([(1.0, 0.0), (-1.0, 1.0), (-1.0, -1.0)], [[2, 1], [2, 0], [1, 0]], [0.0, 0.0]),
    ],
)
def test_the_vectors_of_the_specification(rows: Any, orders: Any, expected: Any) -> None:
    (found,) = total(project(vectors(*rows), orders))
    torch.testing.assert_close(found, torch.tensor(expected), rtol=0, atol=1e-6)


def test_projected_gradients_of_two_tasks_never_conflict() -> None:
    generator = torch.Generator().manual_seed(1)
    for _ in range(200):
        given = [[torch.randn(7, generator=generator)], [torch.randn(7, generator=generator)]]
        for own, other in zip(project(given, [[1], [0]]), reversed(given)):
            assert dot(own, other) >= -1e-6


@pytest.mark.parametrize("precision", [torch.float16, torch.bfloat16, torch.float64])
def test_a_projection_is_exact_but_for_the_rounding_of_its_result(precision: torch.dtype) -> None:
    """Also of a gradient that is a million times as long as the other one: the factor is beyond half precision."""
    generator = torch.Generator().manual_seed(1)
    own = (1e4 * torch.randn(50, generator=generator)).to(precision)
    other = (-own.double() / 1e6 + 0.003 * torch.randn(50, generator=generator)).to(precision)
    h, g = own.double(), other.double()
    assert (h @ g) / (g @ g) < -1e5
    expected = h - (h @ g) / (g @ g) * g
    (found,) = project([[own], [other]], [[1], [0]])[0]
    assert found.dtype == precision
    rounding = {torch.float64: 1e-12, torch.bfloat16: 2**-8, torch.float16: 2**-11}[precision]
    torch.testing.assert_close(found.double(), expected, rtol=rounding, atol=0.01 if precision != torch.float64 else 0)


@pytest.mark.parametrize("amp", [False, True])
def test_losses_are_computed_in_half_precision_where_amp_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, amp: bool
) -> None:
    """As fairseq's own tasks do; this machine's autocast of a GPU has no effect, so what is asked of it counts."""
    now: list[tuple[str, bool]] = []

    @contextmanager
    def autocast(kind: str, *, enabled: bool) -> Iterator[None]:
        now.append((kind, enabled))
        yield
        now.pop()

    def loss() -> Any:
        seen.extend(now)
        return model(torch.ones(1, 2)).sum(), {}

    seen: list[tuple[str, bool]] = []
    model = nn.Linear(2, 1)
    optimizer = AMPOptimizer.__new__(AMPOptimizer) if amp else OPTIMIZER
    if amp:
        monkeypatch.setattr(optimizer, "backward", OPTIMIZER.backward)
    monkeypatch.setattr(torch, "autocast", autocast)
    TaskGradients(projected=False, seed=1).backward({"mood": loss}, model, optimizer, 0, ignore=False)
    assert seen == [("cuda", amp)]
    assert torch.equal(model.weight.grad, torch.ones(1, 2))


SCALES = (1e-30, 1e-23, 1e-20, 1.0, 1e15, 1e20, 1e30)


@pytest.mark.parametrize("own", SCALES)
@pytest.mark.parametrize("other", SCALES)
def test_gradients_of_any_length_are_projected(own: float, other: float) -> None:
    """Beside float64, which holds their squares; float32 ends at 1e-45 and 3e38."""
    generator = torch.Generator().manual_seed(2)
    h = own * torch.randn(50, generator=generator)
    g = other * (torch.randn(50, generator=generator) - h / own)
    wide_h, wide_g = h.double(), g.double()
    assert wide_h @ wide_g < 0
    expected = wide_h - (wide_h @ wide_g) / (wide_g @ wide_g) * wide_g
    (found,) = project([[h], [g]], [[1], [0]])[0]
    torch.testing.assert_close(found.double() / own, expected / own, rtol=0, atol=1e-5)


def test_ordinary_gradients_are_projected_in_their_own_precision() -> None:
    """Bit for bit: what was trained before is trained again."""
    generator = torch.Generator().manual_seed(2)
    h, g = (torch.randn(50, generator=generator) for _ in range(2))
    g = g - h
    (found,) = project([[h], [g]], [[1], [0]])[0]
    assert torch.equal(found, h - (h * g).sum() / (g * g).sum() * g)


@pytest.mark.parametrize("precision", [torch.float16, torch.float32, torch.float64])
def test_a_gradient_of_zero_leaves_others_as_they_are(precision: torch.dtype) -> None:
    """Also where only its square is: that of 1e-170 in float64."""
    own, zero = torch.tensor([3.0, -4.0], dtype=precision), torch.zeros(2, dtype=precision)
    first, second = project([[own], [zero]], [[1], [0]])
    assert torch.equal(first[0], own)
    assert torch.equal(second[0], zero)
    first, _ = project([[own], [torch.tensor([-1e-170, 0.0], dtype=precision)]], [[1], [0]])
    assert torch.equal(first[0], own)


def test_a_head_of_one_task_neither_counts_nor_changes() -> None:
    shared, mine, theirs = torch.tensor([1.0, 0.0]), torch.tensor([3.0]), torch.tensor([5.0])
    found = total(project([[shared, mine, None], [torch.tensor([-1.0, 1.0]), None, theirs]], [[1], [0]]))
    torch.testing.assert_close(found[0], torch.tensor([0.5, 1.5]))
    assert (found[1].item(), found[2].item()) == (3.0, 5.0)


def test_orders_are_seeded_and_hold_every_other_task() -> None:
    assert seeded_orders(4, 1, 7) == seeded_orders(4, 1, 7)
    assert len({str(seeded_orders(4, 1, update)) for update in range(20)}) > 10
    assert all(sorted([own, *order]) == [0, 1, 2, 3] for own, order in enumerate(seeded_orders(4, 1, 7)))


def tasks(model: nn.Linear, inputs: torch.Tensor, signs: tuple[float, ...]) -> dict[str, Any]:
    """For each sign a task that pulls the layer's outputs that way, to or from a target of its own.

    Of one target all gradients would be collinear, and nothing would be left of those that conflict.
    """
    generator = torch.Generator().manual_seed(4)
    targets = [0.5 * torch.randn(4, 3, generator=generator) for _ in range(3)]

    def task(sign: float, target: torch.Tensor) -> Any:
        return lambda: (sign * (model(inputs) - target).pow(2).mean(), {})

    return {str(number): task(sign, targets[number]) for number, sign in enumerate(signs) if sign}


def grads(projected: bool, batches: list[torch.Tensor], signs: tuple[float, ...]) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Linear(5, 3)
    combine = TaskGradients(projected=projected, seed=1)
    for inputs in batches:
        combine.backward(tasks(model, inputs, signs), model, OPTIMIZER, 3, ignore=False)
    return [parameter.grad for parameter in model.parameters()]


BATCHES = [torch.randn(4, 5, generator=torch.Generator().manual_seed(number)) for number in (2, 3)]
AGAINST = (1.0, -0.5)


def alone(batches: list[torch.Tensor]) -> list[Any]:
    """The gradients of two tasks that conflict, each by itself; a sign of 0 leaves a task out."""
    found: list[Any] = [grads(False, batches, signs) for signs in ((AGAINST[0], 0.0), (0.0, AGAINST[1]))]
    assert dot(*found) < -0.1 * (dot(found[0], found[0]) * dot(found[1], found[1])).sqrt()
    return found


def test_without_conflict_it_is_the_plain_sum() -> None:
    signs = (1.0, 0.5, 2.0)
    for one, other in zip(grads(True, BATCHES[:1], signs), grads(False, BATCHES[:1], signs), strict=True):
        assert torch.equal(one, other)  # bit for bit; of several batches a step the terms are added in another order
    for one, other in zip(grads(True, BATCHES, signs), grads(False, BATCHES, signs), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)


def test_a_conflict_gives_another_gradient_which_is_not_zero() -> None:
    alone(BATCHES)
    for one, other in zip(grads(True, BATCHES, AGAINST), grads(False, BATCHES, AGAINST), strict=True):
        assert not torch.allclose(one, other)
        assert one.norm() > 1e-3


def test_with_several_batches_a_step_their_sum_is_projected_once() -> None:
    expected = total(project(alone(BATCHES), seeded_orders(2, 1, 3)))
    for found, wanted in zip(grads(True, BATCHES, AGAINST), expected, strict=True):
        assert wanted.norm() > 1e-3
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_new_step_starts_without_the_former_gradients() -> None:
    model, combine = nn.Linear(5, 3), TaskGradients(projected=True, seed=1)
    for inputs in reversed(BATCHES):
        model.zero_grad(set_to_none=True)
        combine.backward(tasks(model, inputs, AGAINST), model, OPTIMIZER, 3, ignore=False)
    found = model.weight.grad.clone()
    model.zero_grad(set_to_none=True)
    TaskGradients(projected=True, seed=1).backward(tasks(model, BATCHES[0], AGAINST), model, OPTIMIZER, 3, ignore=False)
    assert torch.equal(model.weight.grad, found)
    assert found.norm() > 1e-3


@pytest.mark.parametrize("projected", [True, False])
def test_a_batch_that_keeps_processes_in_step_leaves_gradients_of_zero(projected: bool) -> None:
    """Not None: all processes must agree on which parameters have a gradient."""
    model, combine = nn.Linear(5, 3), TaskGradients(projected=projected, seed=1)
    combine.backward(tasks(model, BATCHES[0], AGAINST), model, OPTIMIZER, 3, ignore=True)
    for parameter in model.parameters():
        assert parameter.grad is not None
        assert not parameter.grad.any()


@pytest.mark.parametrize("projected", [True, False])
def test_the_gradients_of_several_processes_are_averaged(
    projected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group of one that says that it has two members: the sum over them is one's own gradient, the mean half of it.

    Their projection is scaled as they are.
    """
    expected = grads(projected, BATCHES[:1], AGAINST)
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        monkeypatch.setattr(dist, "get_world_size", lambda *_: 2)
        found = grads(projected, BATCHES[:1], AGAINST)
    finally:
        monkeypatch.undo()
        dist.destroy_process_group()
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other / 2, rtol=1e-6, atol=1e-7)
