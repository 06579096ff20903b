"""Which settings a row is trained with: the search of recipes/PROTOCOL.md, by validation alone.

At 10,000 pairs a searched row has five configurations, each in part what the earlier ones say; at other sizes two that
differ in dropout. Nothing here reads a test set.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmfusion.errors import InputError
from lmfusion.rows.scripts import REVERSE
from lmfusion.runs.run_folder import RunFolder
from study.task import representation, without_back_translation

SEARCH_SIZE = 10000
"""Training pairs at which all rows are searched."""
SEARCHED = (
    *("baseline", "shared", "src_elmo", "src_elmo_shdemb", "src_ft", "tgt_elmo", "tgt_ft"),
    *("lstm", "lstm_src_elmo", "denoising", "lstm_denoising"),
)
FIRST = ((4000, 0.2), (4000, 0.3), (8000, 0.3))
"""(updates, dropout) of the first configurations."""
CONFIGURATIONS, LEARNING_RATE = 5, 0.003
FEWER_UPDATES = {2500: 2000, 5000: 4000}
LEAST_UPDATES_FOR_ALL = 8000
SMALL_BPE, REPRESENTATION_DROPOUT = 2000, 0.2
_VALIDATION = "| INFO | valid | "


@dataclass(frozen=True)
class Setting:
    """What a run is trained with; 0 updates, a learning rate of 0: those of the budget; BPE 0: the shipped one."""

    dropout: float
    representation: float
    updates: int = 0
    learning_rate: float = 0.0
    bpe: int = 0

    @property
    def name(self) -> str:
        """Return the name of its folder."""
        searched = f"-updates{self.updates}-lr{self.learning_rate}" if self.updates else ""
        return f"dropout{self.dropout}-rep{self.representation}{searched}" + (f"-bpe{self.bpe}" if self.bpe else "")


@dataclass(frozen=True)
class Tried:
    """A setting that was trained, and its validation loss in bits per character; infinite where it diverged."""

    setting: Setting
    bits: float

    @property
    def finite_bits(self) -> float | None:
        """Return the loss, or None where it is infinite, which JSON cannot say."""
        return self.bits if math.isfinite(self.bits) else None

    def to_json(self) -> str:
        """Return it as text that ``from_json`` reads."""
        values = {"setting": dataclasses.asdict(self.setting), "bits_per_character": self.finite_bits}
        return json.dumps(values) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Tried:
        """Read what ``to_json`` returned."""
        values: dict[str, Any] = json.loads(text)
        bits = values["bits_per_character"]
        return cls(Setting(**values["setting"]), math.inf if bits is None else float(bits))


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say of a file of the study whose content cannot be used that it is damaged.

    Raises:
        InputError: it is; the message names it and the fix.
    """
    try:
        yield
    except InputError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        text = f"{type(error).__name__}: {error}"
        raise InputError(f"{path} is damaged ({text}). Restore it, or delete it and run again.") from error


def best(tried: Sequence[Tried]) -> Tried:
    """Return the one with the lowest loss, of equals the earliest."""
    return min(tried, key=lambda each: each.bits)


def tries(row: str, size: int) -> int:
    """Return the number of configurations that a row has at a bitext size; 0 for rows that take another one's."""
    if row not in SEARCHED:
        return 0
    return CONFIGURATIONS if size == SEARCH_SIZE else 2


def earlier(row: str, size: int, number: int) -> int:
    """Return how many of a row's configurations have to be finished before the one of this number (from 1)."""
    return number - 1 if size == SEARCH_SIZE and row in SEARCHED and number > len(FIRST) else 0


def taken_from(row: str, size: int) -> tuple[tuple[str, int], ...]:
    """Return the (row, size) whose choices have to be made before a row's first configuration or its own choice."""
    if row in SEARCHED:
        return () if size == SEARCH_SIZE else ((row, SEARCH_SIZE),)
    return ((closest(row), size),)


def closest(row: str) -> str:
    """Return the searched row whose settings a row takes that is not searched."""
    kinds = (
        *(("src_elmo_shdemb", "src_elmo_shdemb"), ("src_elmo", "src_elmo"), ("src_attend", "src_elmo")),
        *(("src_", "src_ft"), ("tgt_elmo", "tgt_elmo"), ("tgt_", "tgt_ft"), ("shared", "shared")),
        *(("lstm_src_elmo", "lstm_src_elmo"), ("lstm", "lstm"), (REVERSE, "lstm")),
    )
    alone = without_back_translation(row)
    return next((searched for start, searched in kinds if alone.startswith(start)), "baseline")


def configuration(row: str, size: int, number: int, before: Sequence[Tried], is_all: bool = False) -> Setting:
    """Return a row's configuration of a number (from 1).

    Args:
        before: its earlier configurations in their order; at another size what was chosen at 10,000 pairs.
        is_all: whether the size is all pairs there are.
    """
    if size != SEARCH_SIZE:
        return _at_another_size(best(before).setting, size, number, is_all)
    if number <= len(FIRST):
        updates, dropout = FIRST[number - 1]
        return Setting(dropout, 0.0, updates, LEARNING_RATE)
    found = best(before).setting
    if number < CONFIGURATIONS:
        return dataclasses.replace(found, dropout=0.1 if found.dropout == 0.2 else 0.4)
    if representation(row):
        return dataclasses.replace(found, representation=REPRESENTATION_DROPOUT)
    return dataclasses.replace(found, bpe=SMALL_BPE)


def _at_another_size(found: Setting, size: int, number: int, is_all: bool) -> Setting:
    updates = FEWER_UPDATES.get(size, max(found.updates, LEAST_UPDATES_FOR_ALL) if is_all else found.updates)
    step = 0.0 if number == 1 else 0.1 if size < SEARCH_SIZE else -0.1
    return dataclasses.replace(found, updates=updates, dropout=max(0.0, round(found.dropout + step, 2)))


def bits_per_character(run: RunFolder, references: Sequence[str], pair: tuple[str, str]) -> float:
    """Compute the validation loss of a run's best checkpoint, without label smoothing, so that BPEs can be compared.

    Args:
        run: a finished training.
        references: the validation set's targets as people write them.
        pair: the suffixes of its two sides.

    Returns:
        Negative log-likelihood in bits of all validation symbols, over the characters of the references; infinite where
        there is no finite loss.
    """
    from fairseq.data.data_utils import load_indexed_dataset

    bitext = run.step("train")["command"][1]
    prefix = f"{bitext}/valid.{pair[0]}-{pair[1]}.{pair[1]}"
    targets = load_indexed_dataset(prefix, None)
    if targets is None:
        raise InputError(f"{prefix}: the prepared validation set is gone. Delete {bitext} and run the study again.")
    symbols = int(targets.sizes.sum())  # with the sentences' ends, which the loss counts as well
    return nll_of_best(run.log("train").read_text(encoding="utf-8")) * symbols / sum(map(len, references))


def nll_of_best(log: str) -> float:
    """Return bits per symbol, without label smoothing, where a training log's validation loss is lowest."""
    validations = [json.loads(line.split(_VALIDATION, 1)[1]) for line in log.splitlines() if _VALIDATION in line]
    losses = [(float(each["valid_loss"]), float(each["valid_nll_loss"])) for each in validations]
    return min((pair for pair in losses if all(map(math.isfinite, pair))), default=(math.inf, math.inf))[1]
