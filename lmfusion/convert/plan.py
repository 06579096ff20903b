"""Where every weight of the released format goes: moves, and carrying them out without losing or inventing any."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from lmfusion.errors import InputError

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Move:
    """One weight of the released format.

    Attributes:
        source: its name there.
        shape: that it must have.
        give: the weights of ours that it becomes, by name.
        equals: another weight of the released format of which it must be a copy (the released code saves a weight once
            for every place it is used at); it may then be missing.
    """

    source: str
    shape: Shape
    give: Callable[[Tensor], dict[str, Tensor]]
    equals: str | None = None


def move(source: str, target: str, *shape: int) -> Move:
    """The same weight under another name."""
    return Move(source, shape, lambda value: {target: value})


def flattened(source: str, target: str, size: int) -> Move:
    """1 x 1 x C -> C."""
    return Move(source, (1, 1, size), lambda value: {target: value.flatten()})


def split(source: str, targets: Iterable[tuple[str, int]], *shape: int) -> Move:
    """Rows go to several weights, in order: ``(name, number of rows)``."""
    names, rows = zip(*targets)
    return Move(source, shape, lambda value: dict(zip(names, value.split(list(rows)))))


def copy_of(source: str, other: str, *shape: int, give: Callable[[Tensor], dict[str, Tensor]] | None = None) -> Move:
    """A weight that must equal another one."""
    return Move(source, shape, give or (lambda value: {}), equals=other)


def linear(source: str, target: str, rows: int, columns: int, *, bias: bool = True) -> Iterator[Move]:
    """``nn.Linear``."""
    yield move(f"{source}.weight", f"{target}.weight", rows, columns)
    if bias:
        yield move(f"{source}.bias", f"{target}.bias", rows)


def layer_norm(source: str, target: str, size: int) -> Iterator[Move]:
    """``nn.LayerNorm``."""
    yield move(f"{source}.weight", f"{target}.weight", size)
    yield move(f"{source}.bias", f"{target}.bias", size)


def carry_out(
    moves: Iterable[Move], weights: Mapping[str, Tensor], *, ignored: Iterable[str] = (), what: str
) -> dict[str, Tensor]:
    """Weights of ours.

    Args:
        moves: one for each weight there has to be.
        weights: in the released format, by name.
        ignored: names that may be there and are no weights.
        what: the file and what it was taken for, for the message.

    Raises:
        InputError: listing by name what is missing, not expected, of another shape, not finite, or no copy of what it
            must be.
    """
    moves = list(moves)
    _check(moves, weights, set(ignored), what)
    result: dict[str, Tensor] = {}
    for step in moves:
        if step.source in weights:
            result.update(step.give(weights[step.source]))
    return result


def _check(moves: list[Move], weights: Mapping[str, Tensor], ignored: set[str], what: str) -> None:
    expected = {step.source: step for step in moves}
    assert len(expected) == len(moves), "one weight is moved twice"
    there = {name: step for name, step in expected.items() if name in weights}
    problems = {
        "missing": sorted(name for name, step in expected.items() if name not in weights and step.equals is None),
        "not expected": sorted(set(weights) - set(expected) - ignored),
        "of another shape": [
            f"{name} {tuple(weights[name].shape)} instead of {step.shape}"
            for name, step in sorted(there.items())
            if tuple(weights[name].shape) != step.shape
        ],
        "not finite numbers": sorted(
            name for name in there if not weights[name].is_floating_point() or not weights[name].isfinite().all()
        ),
        "different from what they must be copies of": [
            f"{name} (of {step.equals})"
            for name, step in sorted(there.items())
            if step.equals is not None
            and step.equals in weights
            and not torch.equal(weights[name], weights[step.equals])
        ],
    }
    found = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in problems.items() if names)
    if found:
        raise InputError(f"the weights in {what} are not those of the model its flags describe. {found}.")
