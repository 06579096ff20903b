"""What the flags of ``--task lmfusion_sentences`` say of each task."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from fairseq import utils

from lmfusion.errors import InputError

logger = logging.getLogger(__name__)


def places_of(data: str) -> dict[str, str]:
    """Return the place of each task's data by its name.

    Raises:
        InputError: naming the place, if its name is none, or another one's.
    """
    places: dict[str, str] = {}
    for part in utils.split_paths(data):
        name, given, place = part.partition("=")
        place = place if given else part
        name = name if given else re.sub(r"\W", "_", Path(place).name.removeprefix("ids-"))
        if not re.fullmatch(r"[A-Za-z]\w*", name):
            raise InputError(f"{part}: {name!r} is no name of a task: give NAME=PLACE, NAME of letters and digits.")
        if name in places:
            raise InputError(f"{part}: there are two tasks {name}: name one by NAME=PLACE.")
        places[name] = place
    return places


def by_task(
    flag: str, text: str | None, places: Iterable[str], known: Collection[str] | None = None, *, stored: bool = False
) -> dict[str, str]:
    """Return the values that ``NAME=VALUE,…`` gives to tasks.

    Args:
        flag: for messages.
        text: its value.
        places: names of the tasks that there are.
        known: the values that there are; None: numbers above 0.
        stored: the value is a checkpoint's, which may have learned further tasks; these are passed over.

    Raises:
        InputError: naming the flag, if there is no such task or value.
    """
    values = {}
    for part in text.split(",") if text else ():
        name, _, value = part.strip().partition("=")
        if name not in places and stored:
            continue
        if name not in places:
            raise InputError(f"{flag} {part}: there is no task {name!r}; there are {', '.join(places)}.")
        if value not in known if known is not None else not (value.isdecimal() and int(value) > 0):
            wanted = "one of " + ", ".join(known) if known is not None else "a number above 0"
            raise InputError(f"{flag} {part}: give {wanted}.")
        values[name] = value
    return values


def warn_of_tokens(dataset: Mapping[str, Any], size: int) -> None:
    """Say which numbers of tokens are passed over; no error, for runs that were begun with them have to go on.

    Args:
        dataset: that section of the run's configuration.
        size: examples of a batch in training.
    """
    tokens, valid = dataset["max_tokens"], dataset["max_tokens_valid"]
    given = [f"--max-tokens {tokens}"] if tokens is not None else []
    given += [f"--max-tokens-valid {valid}"] if valid not in (None, tokens) else []
    if given:
        logger.warning(
            f"{' and '.join(given)} {'are' if len(given) > 1 else 'is'} not used: batches of sentence tasks are "
            f"counted in examples, by --batch-size ({size}) or --task-batches, in validation also by "
            f"--batch-size-valid."
        )
