"""What a study spends: bitext sizes, seeds, most updates, patience, and whether settings are searched."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from lmfusion.errors import InputError

ALL = 0
"""A bitext size: all pairs that there are."""
Number = TypeVar("Number", int, float)
SHIPPED, PRETRAINED = "shipped", "pretrained"
FIRST_SEED = 1
"""Of a search, whatever seeds its finals have, as recipes/PROTOCOL.md says; its chosen run is one of them."""


@dataclass(frozen=True)
class Budget:
    """The numbers of a study. All rows get the same ones: nothing is chosen for one row and not for another."""

    name: str
    sizes: tuple[int, ...]
    """In the order in which they are run; ALL for all pairs."""
    seeds: tuple[int, ...]
    """Of the trainings that are scored; what is searched is searched with FIRST_SEED, be it among them or not."""
    updates: tuple[tuple[int, int], ...]
    """(bitext size, most updates): a size gets the updates of the next listed one, and those above it the last."""
    learning_rates: tuple[tuple[int, float], ...] = ((2500, 0.001), (ALL, 0.003))
    """(bitext size, learning rate of all rows there), as in ``updates``: the highest; it rises for the first updates,
    then falls linearly to the last. Chosen by the baseline's validation loss."""
    validate_every: int = 250
    patience: int = 2
    """Training stops after as many validations without a gain; the best checkpoint counts."""
    dropout: float = 0.2
    """Of rows that are not searched."""
    search: bool = False
    """Whether each row's updates, dropouts, learning rate and BPE are searched as recipes/PROTOCOL.md says."""
    finals: tuple[str, ...] = ()
    """Rows that are trained with every seed where there is a search; the others with FIRST_SEED."""
    once: tuple[str, ...] = ()
    """Rows that are trained where the search is, at 10,000 pairs, and with FIRST_SEED alone; those that are not
    among ``rows`` are run where ``--rows`` names them."""
    language_models: str = SHIPPED
    """SHIPPED: those of pretrained/; PRETRAINED: longer trained ones, as the study's first jobs."""
    cloze_updates: int = 20000
    causal_updates: int = 8000
    rows: tuple[str, ...] = ()
    """Rows where they are not the task's own."""
    committed: str = ""
    """Whose committed results these are beside, where it is another budget with the same numbers."""

    @property
    def first_seed(self) -> int:
        """The seed of the search, and of the language models that a study pretrains; without a search the first."""
        return FIRST_SEED if self.search else self.seeds[0]

    def most_updates(self, size: int) -> int:
        """The number of updates that a training on so many pairs ends at if it has not stopped before."""
        return _by_size(self.updates, size)

    def learning_rate(self, size: int) -> float:
        """The learning rate of a training on so many pairs."""
        return _by_size(self.learning_rates, size)

    def numbers(self) -> dict[str, Any]:
        """Everything that decides what comes out of a run, as plain values; not which runs there are."""
        values = dataclasses.asdict(self)
        for name in ("name", "sizes", "seeds", "rows", "committed", "dropout", "search", "finals", "once"):
            del values[name]
        if self.search:
            values.update(search="protocol", tuned_by_seed=FIRST_SEED)
        else:  # in the words of results that were committed when there were grids
            values.update(dropouts=(self.dropout,), representation_dropouts=(0.0,), tuned_by_seed=None)
        return {name: _plain(value) for name, value in values.items()}


def _by_size(entries: Sequence[tuple[int, Number]], size: int) -> Number:
    """What is said of the next listed size; of the last one where all are smaller."""
    listed = sorted(entries, key=lambda entry: (entry[0] == ALL, entry[0]))
    return next((number for limit, number in listed if limit == ALL or size <= limit), listed[-1][1])


def _plain(value: Any) -> Any:
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


UPDATES = ((2500, 2000), (5000, 3000), (10000, 4000), (20000, 6000), (ALL, 8000))
"""So many that training on the smallest size stops by itself; the larger ones end with the learning rate's fall."""
CPU = Budget(
    "cpu",
    sizes=(10000, 2500, ALL),
    seeds=(1, 2),
    updates=UPDATES,
    patience=3,
)
CPU_LONG = dataclasses.replace(CPU, name="cpu-long", sizes=(10000,), updates=((ALL, 8000),))
"""10,000 pairs with as many updates as ``cpu`` gives to all pairs: there, tied embeddings are cut off at 4,000."""
OTHERS = (
    *("baseline", "shared", "src_elmo", "src_elmo_shdemb", "src_ft", "tgt_elmo", "tgt_ft"),
    *("src_attend", "src_initialise", "src_tgt_initialise", "tgt_initialise", "tgt_cold", "tgt_deep", "tgt_lm_prior"),
    *("src_attend_second", "tgt_deep_second"),
    *("tgt_shallow", "src_elmo_bilm", "src_elmo_recurrent", "src_elmo_skipgram", "src_elmo_cbow", "src_elmo_bert"),
    *("src_elmo_causal", "src_ft_bilm", "src_ft_recurrent", "src_ft_causal", "src_ft_skipgram"),
    *("src_ft_bert", "lstm", "lstm_shdemb", "lstm_src_elmo", "lstm_src_elmo_shdemb"),
    *("prefix_lm", "prefix_lm_causal", "denoising", "lstm_denoising", "self_training", "copied", "distill"),
    *("back_translation", "back_translation_src_elmo_shdemb"),
)
CPU_OTHERS = dataclasses.replace(CPU, name="cpu-others", sizes=(10000,), seeds=(1,), rows=OTHERS, committed="cpu")
"""Other language models and other ways of using one, beside the paper's rows and by their numbers."""
FINALS = ("baseline", "shared", "src_elmo_shdemb", "lstm", "lstm_src_elmo", "denoising", "lstm_denoising")
BACK_TRANSLATED = ("shared_back_translation", "back_translation_src_elmo_shdemb")
ROWS = (
    *(*FINALS, "src_elmo", "src_ft", "tgt_elmo", "tgt_ft", "lstm_src_elmo_shdemb"),
    *(*BACK_TRANSLATED, "lstm_back_translation"),
)
PROTOCOL = Budget(
    "protocol",
    sizes=(10000,),
    seeds=(1, 2, 3),
    updates=UPDATES,
    patience=-1,  # no early stopping
    search=True,
    finals=(*FINALS, *BACK_TRANSLATED),
    rows=ROWS,
    once=tuple(row for row in OTHERS if row not in ROWS),
)
"""recipes/PROTOCOL.md at 10,000 pairs, its first part; ``--sizes`` and ``--rows`` name others. All rows without a
language model get all seeds, for which of them is the best is known after the search only."""
GPU = dataclasses.replace(
    PROTOCOL, name="gpu", sizes=(10000, ALL, 2500, 5000, 20000), rows=(*PROTOCOL.rows, *PROTOCOL.once)
)
"""All parts of the protocol together: its rows at every size, other families of language models and integrations."""
PRESETS = {budget.name: budget for budget in (CPU, CPU_LONG, CPU_OTHERS, PROTOCOL, GPU)}


def read(words: Sequence[str]) -> Budget:
    """A budget by the words of ``--budget``: a preset's name and changes to it, ``NAME=VALUE``.

    Raises:
        InputError: there is no such preset or number, or the value is none.
    """
    names = [word for word in words if "=" not in word]
    unknown = [name for name in names if name not in PRESETS]
    if len(names) > 1 or unknown:
        raise InputError(f"--budget {' '.join(words)}: give {', '.join(PRESETS)}, then NAME=VALUE … to change it.")
    budget = PRESETS[names[0]] if names else CPU
    for word in words:
        if "=" in word:
            budget = _changed(budget, *word.split("=", 1))
    return budget


def _changed(budget: Budget, name: str, text: str) -> Budget:
    readers: dict[str, Callable[[str], Any]] = {
        "updates": _updates,
        "dropout": _dropout,
        "language_models": _language_models,
        "learning_rates": _learning_rates,
        **dict.fromkeys(("validate_every", "patience", "cloze_updates", "causal_updates"), _count),
    }
    if name not in readers:
        raise InputError(f"--budget {name}={text}: there is no such number. There are: {', '.join(readers)}.")
    try:
        value = readers[name](text)
    except ValueError as error:
        raise InputError(f"--budget {name}={text}: {error}") from error
    return dataclasses.replace(budget, **{name: value, "name": "custom"})


def size(text: str) -> int:
    """A bitext size: a number, or "all".

    Raises:
        ValueError: it is neither.
    """
    return ALL if text == "all" else _count(text)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError("give a whole number above 0")
    return int(text)


def _dropout(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise ValueError("give a dropout from 0 up to below 1")
    return value


def _updates(text: str) -> tuple[tuple[int, int], ...]:
    return _listed(text, _count, "2500:1750,all:4000")


def _learning_rates(text: str) -> tuple[tuple[int, float], ...]:
    return _listed(text, _learning_rate, "2500:0.001,all:0.003")


def _listed(text: str, read_number: Callable[[str], Number], example: str) -> tuple[tuple[int, Number], ...]:
    parts = [part.partition(":") for part in text.split(",")]
    if not all(number for _, _, number in parts):
        raise ValueError(f"give SIZE:NUMBER, with commas between them, e.g. {example}")
    return tuple((size(limit), read_number(number)) for limit, _, number in parts)


def _learning_rate(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise ValueError("give a learning rate above 0 and below 1")
    return value


def _language_models(text: str) -> str:
    if text not in (SHIPPED, PRETRAINED):
        raise ValueError(f"give {SHIPPED} or {PRETRAINED}")
    return text
