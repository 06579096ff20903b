"""Which languages a person's files are in, by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from lmfusion.text.codes import ISO_639_1, SLIPS, base
from lmfusion.text.own_request import ending
from lmfusion.text.textio import DataError

ROLES = frozenset("src trg tgt ref hyp sys txt doc abs sum raw tok bpe out inp new old one two".split())
"""Three letters that name a file's role more often than one of the world's smaller languages."""
_CODE = re.compile(r"([a-z]{2,3})(?:[-_][A-Za-z0-9]{2,8})*")


def is_language(name: str) -> bool:
    """Return whether a name looks like a language's code: ``en``, ``pt_BR``, ``zh-Hant``, ``nds``."""
    match = _CODE.fullmatch(name)
    return match is not None and (match[1] in ISO_639_1 or (len(match[1]) == 3 and match[1] not in ROLES))


def name_sides(
    given: Sequence[str | None], files: Sequence[Path] | None, fields: Sequence[str] | None, text_language: str | None
) -> tuple[str, str]:
    """Return the names of the two sides, which are languages unless ``text_language`` is set.

    Args:
        given: by -s and -t; None where they are not.
        files: the two files of --pairs.
        fields: names or numbers of --fields.
        text_language: the language of both sides, where they are not named by languages.

    Raises:
        DataError: a side has no name, or one that is no language's; says which flag names it.
    """
    found = [name or _guess(place, files, fields) for place, name in enumerate(given)]
    for place, (name, side, flag) in enumerate(zip(found, ("source", "target"), ("-s", "-t"))):
        if not name:
            what = f" ({files[place]} has no suffix such as .en)" if files else ""
            raise DataError(f"which language is the {side} side?{what} Say it: {flag} en.")
        if not re.fullmatch(r"[\w@-]+", name):
            raise DataError(f"the {side} side cannot be called {name!r}: give it a name by {flag}.")
    source, target = (name for name in found if name)
    if source == target:
        raise DataError(f"both sides are called {source}: name them by -s and -t (and say --text-lang {source}).")
    if text_language is None:
        _check_languages(given, source, target)
    elif not is_language(text_language):
        code = SLIPS.get(base(text_language), "en")
        raise DataError(f"--text-lang {text_language}: is no language's code. Give one such as {code}.")
    return source, target


def _guess(place: int, files: Sequence[Path] | None, fields: Sequence[str] | None) -> str | None:
    if files:
        return ending(files[place])
    if fields and not fields[place].isdecimal():
        return fields[place].rsplit(".", 1)[-1]
    return None


def _check_languages(given: Sequence[str | None], source: str, target: str) -> None:
    """Refuse names that are no languages, unless -s and -t say them and they have the form of a code."""
    for name, said, flag in zip((source, target), given, ("-s", "-t")):
        if not (is_language(name) or (said and _CODE.fullmatch(said))):
            if (meant := SLIPS.get(base(name))) is not None:
                raise DataError(f"{name} is no language's code. If {meant} is meant, say it: {flag} {meant}.")
            raise DataError(
                f"{name} is no language's code. If both sides are in one language (texts and their summaries), say "
                f"which: --text-lang en. If they are in two, say these: -s en -t fr."
            )
