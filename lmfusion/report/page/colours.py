"""One colour and one mark for each strategy, the same in all figures; each colour has a lighter twin for dark pages."""

from __future__ import annotations

from collections.abc import Iterable

from lmfusion.report.page.strategy import PAPER_ORDER

INK, GRID = "#1c2128", "#d5d9de"
DARK = {INK: "#e6e8eb", GRID: "#3b424b"}

_LIGHT_AND_DARK = (
    *(("#5b6470", "#a8b0ba"), ("#946200", "#e3b341"), ("#0b7285", "#4dd0e1"), ("#1d4ed8", "#82aaff")),
    *(("#15803d", "#5fd38a"), ("#b91c1c", "#ff8a80"), ("#c2410c", "#ffb074"), ("#7e22ce", "#d0a2ff")),
    *(("#be185d", "#ff9ac6"), ("#4d7c0f", "#b5e853"), ("#334155", "#cbd5e1"), ("#7c2d12", "#e0b49b")),
)
_MARKS = "osD^vPX*<>hd"
DARK.update(_LIGHT_AND_DARK)


def sequence() -> list[tuple[str, str]]:
    """Return colours and marks for what is no strategy."""
    return [(light, mark) for (light, _), mark in zip(_LIGHT_AND_DARK, _MARKS)]


def styles(strategies: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return colour and mark by strategy: the paper's have their own, others follow in their order, round and round."""
    others = [name for name in dict.fromkeys(strategies) if name not in PAPER_ORDER]
    places = {name: number for number, name in enumerate([*PAPER_ORDER, *others])}
    count = len(_LIGHT_AND_DARK)
    return {name: (_LIGHT_AND_DARK[place % count][0], _MARKS[place % count]) for name, place in places.items()}
