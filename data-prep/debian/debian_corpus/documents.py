"""A package's files -> sentences of each language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePosixPath

from . import catalogs, markup, roff
from .clean import clean, usable
from .debs import Deb
from .entries import family
from .pools import split_of_family
from .segment import sentences
from .units import MIN_MONO_WORDS

_ENGLISH = re.compile(r"C|en|en[-_]US", re.IGNORECASE)


def held_out(name: str) -> bool:
    """Whether the family of this name belongs to the validation or the test set."""
    return split_of_family(family(name)) != "train"


def path_language(path: str, lang: str, languages: tuple[str, ...]) -> str | None:
    """The language a file is in, by its path; None: neither English nor `lang`.

    "share/help/de/x.page", "html/de-DE/x.html", "FAQ/x.de.html", "admin-de_DE.mo" are German; manual pages in no folder
    of a language are English. Where the table gives a package one language, its paths need not say.
    """
    target = re.compile(rf"{re.escape(lang)}(?:[-_][A-Z]{{2}})?", re.IGNORECASE)
    parts = PurePosixPath(path).parts
    endings = re.split(r"[._-](?=[a-z]{2}(?:[-_][A-Z]{2})?\.)", parts[-1])[1:]
    said = [*parts[:-1], *(ending.split(".")[0] for ending in endings)]
    if any(map(target.fullmatch, said)):
        return lang
    if any(map(_ENGLISH.fullmatch, said)) or re.match(r"usr/share/man/man\d/", path):
        return "en"
    return languages[0] if len(languages) == 1 and languages[0] in ("en", lang) else None


def texts(deb: Deb, lang: str, counts: Counter[str]) -> Iterator[tuple[str, str]]:
    """(language, paragraph) of all that is readable in a package; `counts` learns what was left out, and why."""
    for path, data in deb.files():
        stem = PurePosixPath(path).name.split(".")[0]
        spoken = path_language(path, lang, deb.listed.languages)
        if spoken is None:
            continue
        # manpages-de holds the pages, cinnamon-l10n the catalogs of many programs.
        if (path.endswith(".mo") or "/man/" in path) and held_out(stem):
            counts["files of held-out families"] += 1
            continue
        try:
            found = list(_file(path, data, spoken, lang))
        except ValueError:  # not UTF-8, or not what its name says
            counts["unreadable files"] += 1
            continue
        counts["files"] += 1
        yield from found


def _file(path: str, data: bytes, spoken: str, lang: str) -> Iterator[tuple[str, str]]:
    if path.endswith(".mo"):
        for pair in catalogs.messages(data) if spoken == lang else ():
            for language, message in zip(("en", lang), pair):
                yield from ((language, block) for block in catalogs.message_blocks(message))
    elif path.endswith(".page"):
        yield from ((spoken, block) for block in markup.mallard_blocks(data))
    elif "/man/" in path:
        yield from ((spoken, block) for block in roff.paragraphs(data.decode("utf-8")))
    else:
        yield from ((spoken, block) for block in markup.html_blocks(data))


def usable_sentences(block: str, lang: str) -> list[str]:
    """The sentences of a paragraph that are natural language, cleaned as the corpus' own are."""
    found = (clean(sentence) for sentence in sentences(clean(block), lang))
    return [text for text in found if usable(text, MIN_MONO_WORDS)]
