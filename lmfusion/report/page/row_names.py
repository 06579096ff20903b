"""Which runs are one row: the same strategy with the same flags, whatever the seed.

A cell's runs may differ by their seed only, else their mean means nothing. Between bitext sizes flags may differ, as
the paper tunes some per size. So where runs of one strategy and one size have different flags, data or language
models, they become rows of their own, named by what differs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from lmfusion.report.page import strategy
from lmfusion.report.page.notices import Notices
from lmfusion.report.page.runs import Run

Settings = Mapping[str, str]


def name_rows(runs: Sequence[Run], notices: Notices) -> dict[str, str]:
    """Return the row that each run belongs to by the run's name, and notice where flags make rows of seeds."""
    by_strategy: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_strategy[_strategy(run, runs)].append(run)
    names = {}
    for name, group in by_strategy.items():
        differing = _differing(group)
        if differing:
            notices.note(
                f"{name}: runs of one bitext size differ in {', '.join(differing)}; they are rows of their own, not "
                "seeds of one."
            )
        lms = _lm_names(group)
        for run in group:
            settings = {key: lms.get(value, value) for key, value in _settings(run).items()}
            names[run.name] = _row_name(name, settings, differing)
    return names


def _lm_names(runs: Sequence[Run]) -> Mapping[str, str]:
    """Return what to call the LMs inside, by fingerprint: their kinds, with more words where two are of one kind."""
    found: dict[str, tuple[str, str]] = {}
    for run in runs:
        for side, lm in _language_models(run):
            found[_short(lm)] = str(lm.get("kind", "")), PurePath(run.flags.get(side) or "").name
    kinds = Counter(kind for kind, _ in found.values())
    files = Counter(found.values())
    names = {}
    for fingerprint, (kind, file) in found.items():
        unclear = kinds[kind] > 1 or not kind
        more = file if file and files[kind, file] == 1 else fingerprint
        names[fingerprint] = f"{kind} {more}".strip() if unclear else kind
    return names


def _strategy(run: Run, runs: Sequence[Run]) -> str:
    """Return the run's strategy; one without a language model is marked if its BPE is not that of the others' LMs."""
    lm_dictionaries = {other.data_hashes("dict.") for other in runs if strategy.fusions(other.flags)}
    own = run.data_hashes("dict.")
    plain = run.has_training and not run.found.row and not strategy.fusions(run.flags)
    if plain and lm_dictionaries and own and own not in lm_dictionaries:
        return f"{run.strategy}+{strategy.OWN_BPE}"
    return run.strategy


def _settings(run: Run) -> Settings:
    """Return everything but the seed that decides what comes out, as far as the run has come."""
    settings = dict(run.flags.settings())
    if run.step("train") and run.step("generate"):
        settings.update((f"generation's {name}", value) for name, value in run.generation.settings().items())
    settings.update(_fingerprints(run))
    if hashes := run.data_hashes("train."):
        settings["training data"] = hashes[0][:12]
    return settings


def _fingerprints(run: Run) -> Settings:
    """Return fingerprints of the LMs inside, known once training has finished: their files' names say less."""
    return {side: _short(lm) for side, lm in _language_models(run)}


def _language_models(run: Run) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the flags that gave the LMs inside, and what the checkpoint says of these LMs."""
    sides = {"source": "src-lm", "target": "tgt-lm"}
    return [(sides[lm["side"]], lm) for lm in run.model.get("language_models", ()) if lm.get("fingerprint")]


def _short(lm: Mapping[str, Any]) -> str:
    return str(lm["fingerprint"])[:12]


def _differing(runs: Sequence[Run]) -> list[str]:
    """Return names of settings in which runs of one size differ."""
    found: list[str] = []
    for size in dict.fromkeys(run.pairs for run in runs):
        group = [run for run in runs if run.pairs == size]
        for name in dict.fromkeys(name for run in group for name in _settings(run)):
            if any(len({_settings(run).get(name) for run in known}) > 1 for known in _comparable(group, name)):
                found.append(name)
    return list(dict.fromkeys(found))


def _comparable(group: Sequence[Run], name: str) -> list[list[Run]]:
    """Return the runs in whose value of a setting a difference means something."""
    if name.startswith("generation's "):
        return [[run for run in group if run.step("generate")]]
    finished = [run for run in group if name in _fingerprints(run)]
    return [finished, [run for run in group if run not in finished]] if finished else [list(group)]


def _row_name(name: str, settings: Settings, differing: Sequence[str]) -> str:
    words = [f"{key} {settings[key]}" if key in settings else f"no {key}" for key in differing]
    return f"{name} ({', '.join(words)})" if words else name
