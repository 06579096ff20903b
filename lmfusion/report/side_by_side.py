"""Runs side by side on the terminal: scores, example translations, mixing weights, times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lmfusion.inspection import Mix
from lmfusion.runs.live_line import clock
from lmfusion.scoring.bleu import PairedResult

BAR_WIDTH = 40


@dataclass(frozen=True)
class Example:
    """A sentence, its reference, and what each system made of it."""

    number: int
    source: str
    reference: str
    hypotheses: dict[str, str]


@dataclass(frozen=True)
class StageTime:
    """How long a stage took, how fast it went, and what came of it."""

    name: str
    seconds: float | None
    tokens_per_second: float | None = None
    remark: str = ""


def pick_examples(
    sources: Sequence[str], references: Sequence[str], systems: dict[str, Sequence[str]], count: int
) -> list[Example]:
    """`count` examples at equal distances through the data set: nobody chose them."""
    step = max(1, len(sources) // max(1, count))
    numbers = list(range(step // 2, len(sources), step))[:count]
    return [
        Example(n + 1, sources[n], references[n], {name: hypotheses[n] for name, hypotheses in systems.items()})
        for n in numbers
    ]


def print_scores(
    console: Console, comparisons: Sequence[PairedResult], chrf: dict[str, float], signatures: Iterable[str]
) -> None:
    """BLEU of each system with its interval and its p value against the first."""
    table = Table(title="Test set, detokenized and case-sensitive", title_justify="left")
    table.add_column("model")
    for heading in ("BLEU", "95% interval", "chrF", f"p against {comparisons[0].name}"):
        table.add_column(heading, justify="right")
    for row in comparisons:
        interval = f"{row.mean - row.ci:.2f} to {row.mean + row.ci:.2f}"
        p_value = "" if row.p_value is None else f"{row.p_value:.4f}"
        table.add_row(row.name, f"{row.bleu:.2f}", interval, f"{chrf[row.name]:.2f}", p_value)
    console.print(table)
    for signature in signatures:
        console.print(Text(signature, style="dim"))


def verdict(comparisons: Sequence[PairedResult]) -> str:
    """What the paired bootstrap says of the last system against the first, in a sentence."""
    first, last = comparisons[0], comparisons[-1]
    difference = last.bleu - first.bleu
    p_value = 1.0 if last.p_value is None else last.p_value
    sure = "more than chance" if p_value < 0.05 else "not more than chance"
    direction = "above" if difference >= 0 else "below"
    return (
        f"{last.name} is {abs(difference):.2f} BLEU {direction} {first.name}: {sure} (p = {p_value:.4f}, "
        f"paired bootstrap)."
    )


def print_examples(console: Console, examples: Sequence[Example]) -> None:
    """Source, reference and translations under each other, one block a sentence."""
    console.print(Text(f"\n{len(examples)} translations, at equal distances through the test set", style="bold"))
    for example in examples:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        table.add_row(f"#{example.number} source", Text(example.source))
        table.add_row("reference", Text(example.reference))
        for name, hypothesis in example.hypotheses.items():
            table.add_row(name, Text(hypothesis))
        console.print(table)
        console.print()


def print_mixes(console: Console, mixes: Sequence[Mix]) -> None:
    """The learned shares of the LM's layers as bars."""
    for mix in mixes:
        console.print(Text(f"Learned mix of the {mix.side} LM's layers (gamma {mix.gamma:.3f})", style="bold"))
        largest = max(mix.shares.values())
        table = Table.grid(padding=(0, 2))
        for name, share in mix.shares.items():
            table.add_row(name, f"{share:.3f}", Text(bar(share / largest, BAR_WIDTH), style="cyan"))
        console.print(table)
        console.print()


def bar(fraction: float, width: int) -> str:
    """A bar of `fraction` of `width` characters, in eighths of a character."""
    eighths = round(fraction * width * 8)
    return "█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]


def print_times(console: Console, stages: Sequence[StageTime]) -> None:
    """Time and speed of each stage."""
    table = Table(title="Times", title_justify="left")
    table.add_column("stage")
    table.add_column("time", justify="right")
    table.add_column("tokens/s", justify="right")
    table.add_column("")
    for stage in stages:
        time = "" if stage.seconds is None else clock(stage.seconds)
        speed = "" if stage.tokens_per_second is None else f"{stage.tokens_per_second:,.0f}"
        table.add_row(stage.name, time, speed, stage.remark)
    total = sum(stage.seconds or 0 for stage in stages)
    table.add_section()
    table.add_row("all", clock(total), "", "")
    console.print(table)
