"""Pairs of a translation memory (TMX). Its text is read as plain data: no entity is expanded, nothing is fetched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lxml import etree

from lmfusion.text.formats import Pairs
from lmfusion.text.opening import open_any
from lmfusion.text.textio import BAD_COMPRESSION, DataError, cut

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
CODES = {"bpt", "ept", "it", "ph", "ut", "sub"}
"""Inline tags that hold the codes of another format, such as <b>, and footnotes; the others (hi) hold text."""


class TmxPairs(Pairs):
    """One pair of each unit that has both languages; a language is that of `xml:lang`, with or without a region."""

    def __init__(self, path: Path, languages: tuple[str, str]) -> None:
        super().__init__(path)
        self.path, self.languages = path, languages

    def read(self) -> Iterator[tuple[str, str]]:
        """Yield the pair of each unit.

        Raises:
            DataError: no well-formed TMX, one that declares entities, or one without the two languages.
        """
        units, seen = 0, Counter[str]()
        pairs = 0
        for unit in self._units():
            units += 1
            texts = _texts(unit)
            seen.update(list(texts))
            sides = [_pick(texts, language) for language in self.languages]
            if sides[0] is not None and sides[1] is not None:
                pairs += 1
                yield sides[0], sides[1]
        if not pairs:
            there = ", ".join(f"{language} ({count:,})" for language, count in seen.most_common(10)) or "none"
            raise DataError(
                f"{self.path}: no unit has both {' and '.join(self.languages)}. Its {units:,} units are in: {there}."
            )
        if pairs < units:
            self.notes.append(f"{self.path}: {units - pairs:,} of {units:,} units lack one of the two languages")

    def _units(self) -> Iterator[Any]:
        try:
            with open_any(self.path) as stream:
                safe = {"resolve_entities": False, "load_dtd": False, "no_network": True, "huge_tree": False}
                for event, element in etree.iterparse(stream, events=("start", "end"), tag=("{*}tmx", "{*}tu"), **safe):
                    if event == "start":
                        self._refuse_entities(element)
                    elif etree.QName(element).localname == "tu":
                        yield element
                        element.clear()
                        while element.getprevious() is not None:
                            del element.getparent()[0]
        except etree.XMLSyntaxError as error:
            raise DataError(f"{self.path}: no well-formed TMX ({error.msg}). Export it again.") from error
        except BAD_COMPRESSION as error:
            raise cut(self.path, 0, error) from error

    def _refuse_entities(self, element: Any) -> None:
        table = element.getroottree().docinfo.internalDTD
        if table is not None and any(True for _ in table.iterentities()):
            raise DataError(f"{self.path}: declares entities, which are not expanded. Export it without them.")


def _texts(unit: Any) -> dict[str, str]:
    """Return language -> text of a unit; of several texts in a language the first."""
    found: dict[str, str] = {}
    for variant in unit.iterchildren("{*}tuv"):
        language = variant.get(XML_LANG) or variant.get("lang") or ""
        segment = next(variant.iterchildren("{*}seg"), None)
        if segment is not None:
            found.setdefault(_code(language), _text(segment))
    return found


def _text(element: Any) -> str:
    parts = [element.text or ""]
    for child in element:
        if isinstance(child.tag, str) and etree.QName(child).localname not in CODES:
            parts.append(_text(child))
        parts.append(child.tail or "")
    return "".join(parts)


def _code(language: str) -> str:
    return language.casefold().replace("_", "-")


def _pick(texts: dict[str, str], language: str) -> str | None:
    """Return the text in a language, or in one of its regions: en takes en-GB, too."""
    wanted = _code(language)
    if wanted in texts:
        return texts[wanted]
    return next((text for code, text in texts.items() if code.startswith(f"{wanted}-")), None)
