"""What a study consists of: its cells (row, bitext size, seed), and what each waits for, as names of small files.

Snakemake knows of a job by the file that it leaves. Those files are marks in OUT/done, not the run folders: Snakemake
deletes what a job has begun when it fails, and a run folder is what the job resumes from.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lmfusion.errors import InputError
from lmfusion.rows.scripts import REVERSE, is_back_translated
from study import search
from study.budget import ALL, PRETRAINED, Budget
from study.results import Results
from study.search import Setting, Tried
from study.task import (
    AFTER,
    DECODED_ONLY,
    TWO,
    Task,
    count_pairs,
    earlier_lm,
    has_no_training,
    representation,
)


@dataclass(frozen=True)
class Cell:
    """One model of a study; a size of 0 where nothing is trained on pairs."""

    row: str
    size: int = 0
    seed: int = 1

    @property
    def name(self) -> str:
        """Return it in words."""
        words = [f"{self.size:,} pairs"] if self.size else []
        return " ".join([*words, self.row, *([f"seed {self.seed}"] if self.size else [])])


@dataclass(frozen=True)
class Plan:
    """A study: its folder, and everything that decides what is run."""

    out: Path
    task: Task
    budget: Budget
    rows: tuple[str, ...]
    results: Results
    store_states: bool = False
    """Whether the frozen LM's states of the training sentences are kept on disk (on a CPU it saves time)."""

    def cells(self) -> list[Cell]:
        """Return the models whose scores are wanted; where there is a search, further seeds for its finals alone."""
        pairs = count_pairs(self.task)
        sizes = list(dict.fromkeys(pairs if size == ALL else size for size in self.budget.sizes))
        if max(sizes) > pairs:
            raise InputError(f"--sizes {max(sizes)}: the corpus has {pairs:,} training pairs. Give fewer, or: all.")
        found = [Cell(row) for row in self.rows if has_no_training(row)]
        trained = [row for row in self.rows if not has_no_training(row)]
        for seed in dict.fromkeys(self.budget.seeds):
            is_for_all = seed == self.budget.first_seed or not self.budget.search
            rows = [row for row in trained if is_for_all or row in self.budget.finals]
            for group in ([row for row in rows if row in TWO], [row for row in rows if row not in TWO]):
                wanted = [(size, row) for size in sizes for row in group if self._belongs(row, size)]
                found += [Cell(row, size, seed) for size, row in wanted]
        if not found:
            words = " ".join(map(str, self.budget.seeds))
            only = f"trained with seed {self.budget.first_seed} alone"
            raise InputError(f"--seeds {words}: {', '.join(trained)}: {only}.")
        return found

    def _belongs(self, row: str, size: int) -> bool:
        return size == search.SEARCH_SIZE or row not in self.budget.once

    def targets(self) -> list[str]:
        """Return the marks of what is not among the committed results: scores, and translations of the blind test."""
        cells = self.cells()
        scores = [self.mark("score", cell) for cell in cells if not self.results.has(cell)]
        return scores + [self.mark("blind", cell) for cell in cells if self._may_see_the_blind_test(cell)]

    def _may_see_the_blind_test(self, cell: Cell) -> bool:
        """Whether a cell's choice is committed and its model, which is trained here, has not translated that test."""
        if not (self.task.blind and self.budget.search and cell.size) or cell.row in DECODED_ONLY:
            return False
        is_trained_here = not self.results.has(cell) or Path(self.mark("train", cell)).is_file()
        is_chosen = (cell.row, cell.size) in self.results.chosen()
        return is_chosen and is_trained_here and not self.results.has_blind(cell)

    def mark(self, kind: str, cell: Cell, number: int = 0) -> str:
        """Return the file that a job leaves; a number for the configuration that it tries."""
        own = f"{kind}-{number}" if number else kind
        return str(self.out / "done" / f"bitext-{cell.size}" / f"seed-{cell.seed}" / cell.row / own)

    def data(self, size: int) -> list[str]:
        """Return what has to be prepared before a run of a size."""
        return [str(self.out / "done" / f"data-{size}")] if size else []

    def language_models(self, row: str) -> list[str]:
        """Return the marks of the language models to be pretrained for a row."""
        kinds: tuple[str, ...] = ()
        if kind := earlier_lm(row):
            kinds = (f"earlier-{kind}",)
        elif self.budget.language_models == PRETRAINED and representation(row):
            kinds = ("cloze", "causal")
        return [str(self.out / "done" / f"language-model-{kind}") for kind in kinds]

    def before_try(self, row: str, size: int, number: int) -> list[str]:
        """Return the marks that decide a configuration: earlier ones, or choices of other rows or sizes."""
        if count := search.earlier(row, size, number):
            return self._open_tries(row, size, count)
        return self._open_choices(row, size)

    def before_choice(self, row: str, size: int) -> list[str]:
        """Return the marks that a choice is made by."""
        if count := search.tries(row, size):
            return self._open_tries(row, size, count)
        return self._open_choices(row, size)

    def before_training(self, row: str, size: int, seed: int) -> list[str]:
        """Return the marks that a final training waits for."""
        first = [self.mark("train", other) for other in self._trained_first(row, size, seed)]
        is_chosen = not self.budget.search or (row, size) in self.results.chosen()
        choice = [] if is_chosen or not size else [self.mark("choice", self._tuning(row, size))]
        return [*self.data(size), *self.language_models(row), *choice, *first]

    def _trained_first(self, row: str, size: int, seed: int) -> list[Cell]:
        if not (self.budget.search and is_back_translated(row)):
            return [Cell(other, size, seed) for other in AFTER.get(row, ())]
        return [] if self.results.synthetic(size) else [self.reverse(size)]

    def reverse(self, size: int) -> Cell:
        """Return the one model that translates the other way for all rows with back-translation of a size."""
        return Cell(REVERSE, size, self.budget.first_seed)

    def tried(self, row: str, size: int, number: int) -> Setting:
        """Return the setting of a configuration, whose marks before it are there."""
        before = self._tried(row, size, search.earlier(row, size, number))
        is_all = size == count_pairs(self.task)
        return search.configuration(row, size, number, before, is_all)

    def setting(self, cell: Cell) -> Setting:
        """Return what a cell is trained with.

        Raises:
            FileNotFoundError: it is not chosen yet.
        """
        if not self.budget.search or not cell.size:
            return Setting(self.budget.dropout, 0.0)
        return self._chosen(cell.row, cell.size).setting

    def choose(self, row: str, size: int) -> Tried:
        """Return the best of a row's configurations, or the choice of the row that it takes its settings from."""
        return search.best(self._tried(row, size, search.tries(row, size)))

    def choices(self) -> list[dict[str, object]]:
        """Return every choice that has been made, with the losses by setting, as plain values."""
        found: list[dict[str, object]] = []
        tries = sorted(self.tries().items())
        for (row, size), choice in self._own_choices().items():
            losses = {tried.setting.name: tried.finite_bits for name, tried in tries if name[:2] == (row, size)}
            setting = dataclasses.asdict(choice.setting)
            found.append({"row": row, "size": size, **setting, "bits_per_character": losses})
        return found

    def chosen(self) -> dict[tuple[str, int], Tried]:
        """Return every choice by row and size; committed ones among them."""
        return {**self._own_choices(), **self.results.chosen()}

    def _own_choices(self) -> dict[tuple[str, int], Tried]:
        paths = sorted((self.out / "done").glob("bitext-*/seed-*/*/choice"))
        return {_row_and_size(path): read(str(path)) for path in paths}

    def tries(self) -> dict[tuple[str, int, int], Tried]:
        """Return the configurations that were trained, by row, size and number; committed ones among them."""
        found = {}
        for path in (self.out / "done").glob("bitext-*/seed-*/*/try-*"):
            if path.suffix != ".partial":
                found[(*_row_and_size(path), int(path.name.removeprefix("try-")))] = read(str(path))
        return {**found, **self.results.tries()}

    def _tried(self, row: str, size: int, count: int) -> list[Tried]:
        """Return the first configurations of a row, or what was chosen for the rows and sizes that it follows."""
        if not count:
            return [self._chosen(*other) for other in search.taken_from(row, size)]
        known, first = self.results.tries(), self._tuning(row, size)
        numbers = range(1, count + 1)
        return [known.get((row, size, each)) or read(self.mark("try", first, each)) for each in numbers]

    def _open_tries(self, row: str, size: int, count: int) -> list[str]:
        """Return the marks of a row's first configurations that are not among the committed ones."""
        known = self.results.tries()
        numbers = [each for each in range(1, count + 1) if (row, size, each) not in known]
        return [self.mark("try", self._tuning(row, size), each) for each in numbers]

    def _open_choices(self, row: str, size: int) -> list[str]:
        known = self.results.chosen()
        others = [other for other in search.taken_from(row, size) if other not in known]
        return [self.mark("choice", self._tuning(*other)) for other in others]

    def _chosen(self, row: str, size: int) -> Tried:
        known = self.results.chosen().get((row, size))
        return known or read(self.mark("choice", self._tuning(row, size)))

    def _tuning(self, row: str, size: int) -> Cell:
        return Cell(row, size, self.budget.first_seed)


def _row_and_size(mark: Path) -> tuple[str, int]:
    return mark.parent.name, int(mark.parents[2].name.removeprefix("bitext-"))


def read(path: str) -> Tried:
    """Read a configuration's or a choice's mark.

    Raises:
        InputError: it is damaged.
    """
    with search.reading(Path(path)):
        return Tried.from_json(Path(path).read_text(encoding="utf-8"))


def check_rows(task: Task, budget: Budget, rows: Sequence[str]) -> tuple[str, ...]:
    """Return the rows, each once; where none is named, those of the budget, else of the task.

    Raises:
        InputError: the recipe folder has no such row.
    """
    rows = rows or _with_a_script(task, budget.rows) or task.rows
    known = list(dict.fromkeys([*task.rows, *_with_a_script(task, [*budget.rows, *budget.once])]))
    if unknown := [row for row in rows if row not in known]:
        raise InputError(f"--rows {' '.join(unknown)}: {task.name} has no such row. It has: {', '.join(known)}.")
    return tuple(dict.fromkeys(rows))


def _with_a_script(task: Task, rows: Sequence[str]) -> list[str]:
    return [row for row in rows if (task.recipe / f"{row}.sh").is_file()]
