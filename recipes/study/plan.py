"""The runs of a study in the order in which they tell most, so that any beginning of it is the best use of its time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lmfusion.errors import InputError
from study.budget import ALL, PRETRAINED, Budget
from study.task import TWO, Task, has_no_training, representation

LM, DROPOUT, REPRESENTATION, FINAL = "language model", "dropout", "representation dropout", "final"


@dataclass(frozen=True)
class Job:
    """One process to run: a language model, a training that helps to choose a dropout, or a training with its score."""

    kind: str
    row: str
    """The row's script; of a language model, "cloze" or "causal"."""
    size: int = 0
    """Training pairs; 0 where nothing is trained on pairs."""
    seed: int = 1
    value: float | None = None
    """The dropout that is tried."""
    updates: int = 0
    needs: tuple[Job, ...] = field(default=(), repr=False)
    """What has to be finished before."""

    @property
    def name(self) -> str:
        """In words."""
        if self.kind == LM:
            return f"{self.row} language model"
        words = [f"{self.size:,} pairs"] if self.size else []
        words += [self.row] + ([f"seed {self.seed}"] if self.updates else [])
        return " ".join(words) + (f", {self.kind} {self.value}" if self.value is not None else "")


def make(budget: Budget, task: Task, rows: Sequence[str], pairs: int) -> list[Job]:
    """All jobs in order: the first seed's two most telling rows over the sizes, its other rows, the further seeds.

    Args:
        rows: those to run.
        pairs: the number of training pairs there are.

    Raises:
        InputError: there is no such row, or a size is larger than the corpus.
    """
    known = list(dict.fromkeys([*task.rows, *budget.rows]))
    if unknown := [row for row in rows if row not in known]:
        raise InputError(f"--rows {' '.join(unknown)}: {task.name} has no such row. It has: {', '.join(known)}.")
    sizes = [pairs if size == ALL else size for size in budget.sizes]
    if max(sizes) > pairs:
        raise InputError(f"--sizes {max(sizes)}: the corpus has {pairs:,} training pairs. Give fewer, or: all.")
    budget = dataclasses.replace(budget, seeds=tuple(dict.fromkeys(budget.seeds)))  # each once
    return [*_in_order(budget, list(dict.fromkeys(rows)), list(dict.fromkeys(sizes)))]


def _in_order(budget: Budget, rows: Sequence[str], sizes: Sequence[int]) -> Iterator[Job]:
    yield from (Job(FINAL, row) for row in rows if has_no_training(row))
    trained = [row for row in rows if not has_no_training(row)]
    models = _language_models(budget, trained)
    yield from models
    tuned: dict[tuple[str, int], list[Job]] = {}
    first = [row for row in trained if row in TWO]
    for seed in budget.seeds:
        for group in (first, [row for row in trained if row not in TWO]):
            for size in sizes:
                for row in group:
                    before = models if representation(row) else ()
                    if (row, size) not in tuned:
                        tuned[row, size] = [*_tuning(budget, row, size, before)]
                        yield from tuned[row, size]
                    needs = (*before, *tuned[row, size])
                    yield Job(FINAL, row, size, seed, None, budget.most_updates(size), needs)


def _language_models(budget: Budget, rows: Sequence[str]) -> tuple[Job, ...]:
    """The language models to be pretrained; every row that reads one waits for all."""
    if budget.language_models != PRETRAINED or not any(map(representation, rows)):
        return ()
    models = [Job(LM, "cloze", updates=budget.cloze_updates)]
    if any(row.startswith("tgt_") for row in rows):
        models.append(Job(LM, "causal", updates=budget.causal_updates))
    return tuple(models)


def _tuning(budget: Budget, row: str, size: int, before: tuple[Job, ...]) -> Iterator[Job]:
    """The trainings by which a row's dropouts are chosen at a size: first the one, then, with it, the other."""
    seed, updates = budget.seeds[0], budget.most_updates(size)
    tried: list[Job] = []
    if len(budget.dropouts) > 1:
        tried = [Job(DROPOUT, row, size, seed, value, updates, before) for value in budget.dropouts]
        yield from tried
    if representation(row):
        # The first value of this grid is what the other dropout was chosen with.
        for value in budget.representation_dropouts if not tried else budget.representation_dropouts[1:]:
            if len(budget.representation_dropouts) > 1:
                yield Job(REPRESENTATION, row, size, seed, value, updates, (*before, *tried))
