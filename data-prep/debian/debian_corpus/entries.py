"""The indices' stanzas -> one Entry per distinct description."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_FIELD = re.compile(r"^([A-Za-z0-9][^:\s]*):\s?(.*)$")
# What sets the members of a family apart, besides version numbers: Debian's ways to package one program several times.
_FAMILY_SUFFIX = re.compile(
    r"-(?:signed-[a-z]+|signed|cross(?:-ports|-mipsen)?|defaults|defaults-ports|ports|mipsen|opensource-src|esr|lts|stable"
    r"|legacy|nonfree|source|src|data|doc|docs|common|legacy-[a-z]+)$"
)


@dataclass(frozen=True)
class Entry:
    """One description, its translation if it has one, and the families of the packages that carry it."""

    md5: str
    families: tuple[str, ...]
    synopsis: str
    lines: tuple[str, ...]
    target_synopsis: str | None = None
    target_lines: tuple[str, ...] = ()


def stanzas(text: str) -> Iterator[dict[str, list[str]]]:
    """Each stanza as field -> lines; continuation lines without the one space that marks them."""
    for chunk in text.split("\n\n"):
        fields: dict[str, list[str]] = {}
        current: list[str] | None = None
        for line in chunk.split("\n"):
            if line.startswith((" ", "\t")):
                if current is not None:
                    current.append(line[1:])
            elif match := _FIELD.match(line):
                current = fields.setdefault(match.group(1), [])
                current.append(match.group(2))
        if fields:
            yield fields


def family(source: str) -> str:
    """The family of a source package: gcc-12, gcc-12-cross and gcc-defaults are all "gcc".

    Digits go wherever they stand. Where this throws together what is unrelated (mp3info, mpinfo) the split only gets
    coarser, which does no harm; what it keeps apart is left to the near-duplicate search.
    """
    name = re.sub(r"\d+(?:[.+~]\d+)*", "", source.lower())
    name = re.sub(r"[-.+_]{2,}", "-", name).strip("-.+_")
    while (shorter := _FAMILY_SUFFIX.sub("", name)) != name:
        name = shorter.strip("-.+_")
    return name or source.lower()


def sources_by_package(packages_text: str) -> dict[str, str]:
    """Binary package -> source package, from the Packages index."""
    sources: dict[str, str] = {}
    for fields in stanzas(packages_text):
        if "Package" in fields:
            package = fields["Package"][0]
            # "Source: gcc-12 (12.2.0-14)"; the field is left out where both have the same name.
            sources[package] = fields.get("Source", [package])[0].split(" ")[0]
    return sources


def descriptions(translation_text: str, lang: str) -> Iterator[tuple[str, str, list[str]]]:
    """(package, md5, description lines) of a Translation index; the first line is the synopsis."""
    field = f"Description-{lang}"
    for fields in stanzas(translation_text):
        if {"Package", "Description-md5", field} <= fields.keys():
            yield fields["Package"][0], fields["Description-md5"][0], fields[field]


def pair_entries(packages: str, english: str, target: str, lang: str) -> list[Entry]:
    """Join the three indices by Description-md5, in an order that does not depend on theirs."""
    sources = sources_by_package(packages)
    by_md5: dict[str, list[str]] = {}
    families: dict[str, set[str]] = {}
    for package, md5, lines in descriptions(english, "en"):
        by_md5.setdefault(md5, lines)
        # A package of another architecture is not in this Packages index: its own name stands in.
        families.setdefault(md5, set()).add(family(sources.get(package, package)))
    translated = {md5: lines for _, md5, lines in descriptions(target, lang)}
    return sorted(_entries(by_md5, families, translated), key=lambda entry: entry.md5)


def _entries(
    by_md5: dict[str, list[str]], families: dict[str, set[str]], translated: dict[str, list[str]]
) -> Iterable[Entry]:
    for md5, lines in by_md5.items():
        other = translated.get(md5)
        yield Entry(
            md5,
            tuple(sorted(families[md5])),
            lines[0],
            tuple(lines[1:]),
            other[0] if other else None,
            tuple(other[1:]) if other else (),
        )
