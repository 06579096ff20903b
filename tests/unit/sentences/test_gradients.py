"""PCGrad against vectors worked out by hand, and against the plain sum where nothing conflicts."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest
import torch
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
    """For each sign a task that pulls the layer's outputs that way."""
    return {
        str(number): lambda sign=sign: (sign * model(inputs).pow(2).mean(), {}) for number, sign in enumerate(signs)
    }


def grads(projected: bool, batches: list[torch.Tensor], signs: tuple[float, ...]) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Linear(5, 3)
    combine = TaskGradients(projected=projected, seed=1)
    for inputs in batches:
        combine.backward(tasks(model, inputs, signs), model, OPTIMIZER, 3, ignore=False)
    return [parameter.grad for parameter in model.parameters()]


BATCHES = [torch.randn(4, 5, generator=torch.Generator().manual_seed(number)) for number in (2, 3)]


def test_without_conflict_it_is_the_plain_sum() -> None:
    signs = (1.0, 0.5, 2.0)
    for one, other in zip(grads(True, BATCHES[:1], signs), grads(False, BATCHES[:1], signs), strict=True):
        assert torch.equal(one, other)  # bit for bit; of several batches a step the terms are added in another order
    for one, other in zip(grads(True, BATCHES, signs), grads(False, BATCHES, signs), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)


def test_a_conflict_gives_another_gradient() -> None:
    pairs = combinations([grads(projected, BATCHES, (1.0, -0.5)) for projected in (True, False)], 2)
    assert all(not torch.allclose(one[0], other[0]) for one, other in pairs)


def test_with_several_batches_a_step_their_sum_is_projected_once() -> None:
    signs = (1.0, -0.5)
    alone = [[sum(parts) for parts in zip(*(grads(False, [each], (sign,)) for each in BATCHES))] for sign in signs]
    expected = total(project(alone, seeded_orders(2, 1, 3)))
    for found, wanted in zip(grads(True, BATCHES, signs), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_new_step_starts_without_the_former_gradients() -> None:
    model, combine = nn.Linear(5, 3), TaskGradients(projected=True, seed=1)
    for _ in range(2):
        model.zero_grad(set_to_none=True)
        combine.backward(tasks(model, BATCHES[0], (1.0, -0.5)), model, OPTIMIZER, 3, ignore=False)
        found = model.weight.grad.clone()
    model.zero_grad(set_to_none=True)
    TaskGradients(projected=True, seed=1).backward(
        tasks(model, BATCHES[0], (1.0, -0.5)), model, OPTIMIZER, 3, ignore=False
    )
    assert torch.equal(model.weight.grad, found)
