"""The plan of a folder of runs: numbers that are fixed before anything trains, and kept afterwards."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lmfusion.errors import InputError
from lmfusion.rows import amounts
from lmfusion.rows.scripts import FOLDERS, REVERSE, defaults, pretrains
from lmfusion.rows.settable import is_number, wanted_instead
from lmfusion.runs.places import hash_model
from lmfusion.runs.provenance import hash_file
from lmfusion.runs.record import write_json
from lmfusion.text import prepared
from lmfusion.text.json_text import parse
from lmfusion.text.prepared import Prepared
from lmfusion.text.printable import told

FILE = "plan.json"
LM_SHARE = 0.4
"""Of the minutes, where language models are trained."""
RESERVE = 0.85
"""Of the minutes left to training: the rest goes to starting, validating, translating."""
SLOWER_BESIDE = 1.15
"""How much longer an update takes beside another run than alone."""
TRANSLATED = 0.1
"""Updates of the model of the other direction in whose time it translates a line of plain text: 0.09 were measured."""
MOST_TRANSLATING = 0.15
"""Of the time left, that it translates for."""
LEAST = 100
"""Updates below which a schedule makes no sense."""
_NEEDED = ("LM_UPDATES", "S2S_UPDATES")
MOST = 0.5
"""Share of the updates by the amount of text below which it is said what the minutes cut."""


@dataclass(frozen=True)
class Plan:
    """Keep what decides what comes out of training.

    Attributes:
        data: SHA-256 of the prepared folder's description.
        seed: of all runs.
        language_models: SHA-256 of a given language model by side ("src", "tgt").
        set: numbers given on the command line.
        numbers: all numbers that differ from the scripts' defaults.
    """

    data: str
    seed: int
    language_models: dict[str, str]
    set: dict[str, str]
    numbers: dict[str, str]

    def save(self, out: Path) -> None:
        """Write the plan into the folder of runs."""
        out.mkdir(parents=True, exist_ok=True)
        write_json(out / FILE, asdict(self))


def new(data: Prepared, seed: int, language_models: Mapping[str, Path], given: Mapping[str, str]) -> Plan:
    """Make a plan by the amount of text.

    Args:
        data: prepared text.
        seed: of all runs.
        language_models: files of given language models, by side.
        given: numbers that the user sets.

    Raises:
        InputError: there is no such number, or its value is none.
    """
    check_numbers(given)
    numbers = {**amounts.schedules({**amounts.numbers(data), **given}), **given}
    hashes = {side: hash_model(path) for side, path in language_models.items()}
    return Plan(hash_file(data.folder / prepared.FILE), seed, hashes, dict(given), numbers)


def check_numbers(given: Mapping[str, str]) -> None:
    """Refuse numbers by hand that the recipes do not have, or that nothing can be trained with.

    Raises:
        InputError: naming the number.
    """
    known = {name: default for name, default in defaults().items() if is_number(default)}
    for name, value in given.items():
        if name not in known:
            raise InputError(f"--set {name}={value}: there is no such number. There are: {', '.join(sorted(known))}.")
        if wanted := wanted_instead(name, value):
            raise InputError(f"--set {name}={value}: give {wanted}.")


def read(out: Path) -> Plan | None:
    """Return the plan of a folder of runs, None before there is one.

    Raises:
        InputError: it is damaged.
    """
    path = out / FILE
    if not path.is_file():
        return None
    try:
        found = Plan(**parse(path.read_text(encoding="utf-8")))
        if type(found.numbers) is not dict or not all(type(value) is str for value in found.numbers.values()):
            raise ValueError("its numbers are no texts by name")
        if missing := [name for name in _NEEDED if name not in found.numbers]:
            raise ValueError(f"it has no {', '.join(missing)}")
        check_numbers(found.numbers)
    except (ValueError, TypeError, InputError) as error:
        raise InputError(f"{path}: is damaged ({error}). Delete it; runs that began stay as they are.") from error
    return found


def check_same(before: Plan, now: Plan, out: Path) -> None:
    """Refuse a command that would train something else than the folder holds.

    Raises:
        InputError: naming what differs.
    """
    names = {"data": "DATA", "seed": "--seed", "set": "--set", "language_models": "--src-lm or --tgt-lm"}
    for name, flag in names.items():
        then, given = getattr(before, name), getattr(now, name)
        if then != given:
            said = f": {told(then)} then, {told(given)} now" if name in ("seed", "set") else ""
            raise InputError(f"{out} was begun with another {flag}{said}. Choose another --out, or delete that folder.")


def within(plan: Plan, minutes: float, spent: float, seconds: Mapping[str, float], jobs: int) -> Plan:
    """Return the plan with as many updates as fit into the time, and the dropout that is right for them.

    Args:
        plan: with the updates by the amount of text, which are not exceeded.
        minutes: for everything.
        spent: minutes of these that are over.
        seconds: of an update, by the name of the script: rows, and the language models to be trained.
        jobs: that run beside each other.

    Raises:
        InputError: the time is too short.
    """
    check_minutes(minutes, spent, seconds, jobs)
    stages = _stages(seconds, jobs)
    left = (minutes - spent) * 60 * RESERVE
    line, lines = TRANSLATED * seconds.get(REVERSE, 0.0), int(plan.numbers["MADE_UP"])
    if line and "MADE_UP" not in plan.set:
        lines = min(lines, max(1, int(MOST_TRANSLATING * left / line)))
    left -= line * lines
    if left <= 0:
        raise InputError(
            f"--minutes {minutes:g}: too short to translate {lines:,} lines: give a smaller --set MADE_UP."
        )
    fitting = {
        name: str(min(int(plan.numbers[name]), int(share * left / one))) for name, (one, share) in stages.items()
    }
    free = {name: value for name, value in fitting.items() if name not in plan.set}
    if 2 * int(free.get("S2S_UPDATES", plan.numbers["S2S_UPDATES"])) <= int(plan.numbers["S2S_UPDATES"]):
        free["S2S_DROPOUT"] = str(min(float(plan.numbers["S2S_DROPOUT"]), amounts.SHORT_DROPOUT))
    numbers = amounts.schedules({**plan.numbers, **free, "MADE_UP": str(lines)})
    return Plan(plan.data, plan.seed, plan.language_models, plan.set, {**numbers, **plan.set})


def check_minutes(minutes: float, spent: float, seconds: Mapping[str, float], jobs: int) -> None:
    """Refuse a time in which not even short schedules fit; see :func:`within`, but some scripts may be missing.

    Raises:
        InputError: saying how many minutes are enough, by the scripts that there are.
    """
    stages = _stages(seconds, jobs)
    training = 1 - MOST_TRANSLATING if REVERSE in seconds else 1.0  # the share of the time that is left for it
    least = spent + LEAST * max(one / share for one, share in stages.values()) / 60 / RESERVE / training
    if least > minutes:
        *names, last = (f"language model {name}" if name in FOLDERS else name for name in seconds)
        takes = f"{', '.join(names)} and {last} take" if names else f"{last} takes"
        fewer = ", fewer --rows" if names else ", --rows without it" if pretrains(next(iter(seconds))) else ""
        time = "1 minute" if least <= 1 else f"{math.ceil(least)} minutes"
        updates = " ".join(f"{name}=N" for name in stages)
        raise InputError(
            f"--minutes {minutes:g}: too short: {takes} {time} at least here. Give more{fewer}, or "
            f"updates instead of minutes: --set {updates}."
        )


def whole_minutes(plan: Plan, spent: float, seconds: Mapping[str, float], jobs: int) -> float:
    """Return the minutes that all updates of a plan take, with those that are over; see :func:`within`."""
    stages = _stages(seconds, jobs)
    translating = TRANSLATED * seconds.get(REVERSE, 0.0) * int(plan.numbers["MADE_UP"])
    updates = sum(one * int(plan.numbers[name]) for name, (one, _) in stages.items())
    return spent + (updates + translating) / 60 / RESERVE


def what_is_cut(
    wanted: Mapping[str, str], fitting: Mapping[str, str], whole: float, seconds: Mapping[str, float]
) -> str:
    """Return a line about updates that do not fit into the minutes; empty where few are missing.

    Args:
        wanted: numbers by the amount of text.
        fitting: those that fit.
        whole: minutes that all updates take.
        seconds: of an update, by what is trained.
    """
    names = {"LM_UPDATES": "language models", "S2S_UPDATES": "rows"}
    shares = {names[name]: int(fitting[name]) / int(wanted[name]) for name in _stages(seconds, 1)}
    if min(shares.values()) >= MOST:
        return ""
    listed = ", ".join(f"{text} {share:.0%}" for text, share in shares.items() if share < 1)
    is_hardly_trained = shares.get(names["LM_UPDATES"], 1) < MOST
    hardly = ", and a language model that is hardly trained may cost more than it gives" if is_hardly_trained else ""
    return (
        f"The minutes are short of this much text: {listed} of the updates that it is worth{hardly}. All of them would "
        f"take about {whole:,.0f} minutes.\n"
    )


def _stages(seconds: Mapping[str, float], jobs: int) -> dict[str, tuple[float, float]]:
    """Return seconds of one update of all that has a number of updates, and its share of the time, by that number.

    The model of the other direction has as many updates as the rows, and is trained before them.
    """
    lms = [value for name, value in seconds.items() if pretrains(name) and name != REVERSE]
    rows = [value for name, value in seconds.items() if not pretrains(name)]
    reverse = [seconds[REVERSE]] if REVERSE in seconds else []
    share = LM_SHARE if lms and (rows or reverse) else 1.0 if lms else 0.0
    found = {}
    for name, stages, part in (("LM_UPDATES", [lms], share), ("S2S_UPDATES", [rows, reverse], 1 - share)):
        one = sum(_together(costs, jobs) for costs in stages if costs)
        if one:
            found[name] = (one, part)
    return found


def _together(costs: Sequence[float], jobs: int) -> float:
    """Return the seconds in which every one of some runs has made an update."""
    beside = SLOWER_BESIDE if min(jobs, len(costs)) > 1 else 1.0
    return beside * max(sum(costs) / jobs, max(costs))
