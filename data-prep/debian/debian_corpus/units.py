"""Entries -> the three corpora's units: bitext pairs, monolingual sentences, description/synopsis pairs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from .clean import LengthRatio, clean, copied, usable, usable_pair
from .entries import Entry
from .segment import Block, paragraphs, sentences
from .text import count_words

Pair = tuple[str, str]

MIN_MONO_WORDS = 3
MIN_DESCRIPTION_WORDS, MAX_DESCRIPTION_WORDS = 10, 100
MIN_SYNOPSIS_WORDS = 3


def bitext(entry: Entry, lang: str, ratio: LengthRatio) -> list[Pair]:
    """The pairs of one entry, as fine as both sides split alike."""
    if entry.target_synopsis is None:
        return []
    pairs = [(clean(entry.synopsis), clean(entry.target_synopsis))]
    source, target = paragraphs(list(entry.lines)), paragraphs(list(entry.target_lines))
    if len(source) != len(target):
        # Paragraph breaks differ, but the blocks may still correspond one to one.
        source, target = [list(chain(*source))], [list(chain(*target))]
    for source_blocks, target_blocks in zip(source, target):
        if [block.kind for block in source_blocks] == [block.kind for block in target_blocks]:
            for source_block, target_block in zip(source_blocks, target_blocks):
                pairs.extend(align_block(clean(source_block.text), clean(target_block.text), lang, ratio))
    return [pair for pair in pairs if usable_pair(*pair, ratio)]


def align_block(source: str, target: str, lang: str, ratio: LengthRatio) -> list[Pair]:
    """The pairs of two blocks: sentence by sentence if the counts agree and all look right, else whole."""
    pairs = list(zip(sentences(source, "en"), sentences(target, lang)))
    alike = len(sentences(source, "en")) == len(sentences(target, lang))
    if alike and all(ratio.fits(*pair) for pair in pairs):
        return pairs
    return [(source, target)]


def mono(synopsis: str, lines: tuple[str, ...], lang: str) -> list[str]:
    """The sentences of one side of an entry, synopsis and list items among them."""
    texts = [clean(synopsis)]
    for blocks in paragraphs(list(lines)):
        for block in blocks:
            texts.extend(sentences(clean(block.text), lang))
    return [text for text in texts if usable(text, MIN_MONO_WORDS)]


def target_mono(entry: Entry, lang: str) -> list[str]:
    """The translation's sentences, without those that were left in English."""
    if entry.target_synopsis is None:
        return []
    english = " ".join([entry.synopsis, *entry.lines])
    return [text for text in mono(entry.target_synopsis, entry.target_lines, lang) if not copied(english, text)]


def synopsis_pair(entry: Entry) -> Pair | None:
    """(description on one line, synopsis), if both are of a sensible length."""
    description = " ".join(_flat(blocks) for blocks in paragraphs(list(entry.lines)))
    synopsis = clean(entry.synopsis)
    length = count_words(description)
    if not MIN_DESCRIPTION_WORDS <= length <= MAX_DESCRIPTION_WORDS or length <= count_words(synopsis):
        return None
    return (description, synopsis) if usable(synopsis, MIN_SYNOPSIS_WORDS) else None


def _flat(blocks: list[Block]) -> str:
    """A paragraph on one line; list items are set apart by semicolons, as they would be in running text."""
    text = ""
    for index, block in enumerate(blocks):
        part = clean(block.text)
        after = blocks[index + 1].kind if index + 1 < len(blocks) else "text"
        if block.kind == "item" and after == "item" and not part.endswith((".", ";", ",", ":", "!", "?")):
            part += ";"
        text += (" " if text else "") + part
    return text


def synopses(entries: list[Entry]) -> Iterator[Pair]:
    """The translated synopses: what the usual length ratio is measured on."""
    for entry in entries:
        if entry.target_synopsis:
            yield entry.synopsis, entry.target_synopsis
