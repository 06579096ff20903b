"""A test set that nothing has looked at, out of domain: the help of an office suite in two languages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import PurePosixPath

from .clean import LengthRatio, clean, usable_pair
from .debs import Deb
from .markup import html_texts
from .neardup import STRICT, resembled
from .pools import rank
from .split import MIN_WORDS
from .text import key, words
from .units import Pair, align_block

Lines = dict[str, list[str]]  # language -> lines
_PARAGRAPHS = re.compile(r"(par|hd)_id\w+")
_PAGES = re.compile(r"help/(?P<lang>[a-z]{2})(?:-[A-Z]{2})?/text/(?P<page>.+\.html)$")
MAX_PER_PAGE = 5


def help_pairs(source: Deb, target: Deb, lang: str) -> list[tuple[Pair, str]]:
    """Pairs of two packages with the same help pages in two languages, each with its page, in a repeatable order.

    A paragraph has the same id in every language.
    """
    pages = [_pages(deb, spoken) for deb, spoken in ((source, "en"), (target, lang))]
    blocks: list[tuple[str, str, str]] = []
    for page in sorted(set(pages[0]) & set(pages[1])):
        ours, theirs = (html_texts(side[page], _PARAGRAPHS) for side in pages)
        blocks += [(clean(ours[name]), clean(theirs[name]), page) for name in ours if name in theirs]
    ratio = LengthRatio((source_text, target_text) for source_text, target_text, _ in blocks)
    pairs = [
        (pair, page)
        for source_text, target_text, page in blocks
        for pair in align_block(source_text, target_text, lang, ratio)
        if usable_pair(*pair, ratio)
    ]
    return sorted(pairs, key=lambda item: rank("blind\n" + "\n".join(item[0])))


def _pages(deb: Deb, spoken: str) -> dict[str, bytes]:
    found = ((_PAGES.search(path), data) for path, data in deb.files())
    return {str(PurePosixPath(match["page"])): data for match, data in found if match and match["lang"] == spoken}


def draw(candidates: list[tuple[Pair, str]], known: Lines, lang: str, size: int) -> list[Pair]:
    """The first pairs that resemble no known line, no side of them twice, and not too many of one page.

    Args:
        candidates: pairs with the page they are from, in drawing order.
        known: every line that anything was trained, chosen or tested on.
        lang: language of the pairs' second members.
        size: most pairs.
    """
    fit = [item for item in candidates if all(len(words(text)) >= MIN_WORDS for text in item[0])]
    # What is left out for its likeness is a few percent: a reserve of half as much saves comparing all.
    chosen = _first(fit, size + size // 2 + 100, lambda pair: True)
    like = [
        resembled([pair[side] for pair, _ in chosen], known[spoken], spoken, STRICT)
        for side, spoken in enumerate(("en", lang))
    ]
    clean_pairs = _first(chosen, size, lambda pair: pair[0] not in like[0] and pair[1] not in like[1])
    return [pair for pair, _ in clean_pairs]


def _first(candidates: list[tuple[Pair, str]], size: int, accept: Callable[[Pair], bool]) -> list[tuple[Pair, str]]:
    found: list[tuple[Pair, str]] = []
    seen: set[tuple[int, str]] = set()
    homes: Counter[str] = Counter()
    for pair, home in candidates:
        forms = {(side, key(text)) for side, text in enumerate(pair)}
        if len(found) < size and homes[home] < MAX_PER_PAGE and not forms & seen and accept(pair):
            found.append((pair, home))
            seen |= forms
            homes[home] += 1
    return found
