"""A figure of what systems gain over the first one in each part of a test set."""

from __future__ import annotations

from collections.abc import Sequence

from lmfusion.report.page.colours import INK, sequence
from lmfusion.report.page.figure import Figure, drawing, finish, legend_below, legend_label
from lmfusion.scoring.buckets import PartScores

NAME = "buckets"


def buckets_figure(scores: Sequence[PartScores]) -> Figure:
    """Draw the difference in BLEU to the first system, a line of marks for each part.

    Args:
        scores: of two or more systems on every part; they keep their order from top to bottom.
    """
    baseline, *others = scores[0].bleu
    marks = sequence()
    labels, places, place, question = [], [], 0.0, ""
    for each in scores:
        place += 1.6 if each.part.question != question and question else 1.0
        question = each.part.question
        places.append(place)
        labels.append(f"{each.part.name} ({len(each.part.lines):,})")
    with drawing(len(others), height=0.6 + 0.24 * place) as (canvas, axes):
        axes.axvline(0, color=INK, linewidth=1)
        for number, name in enumerate(others):
            colour, mark = marks[number % len(marks)]
            gains = [each.bleu[name] - each.bleu[baseline] for each in scores]
            axes.plot(gains, places, color=colour, marker=mark, linestyle="none", label=legend_label(name))
        for each, at in zip(scores, places):
            if each.part.question != question:
                question = each.part.question
                axes.text(0, at - 0.75, question, transform=axes.get_yaxis_transform(), fontsize=9, weight="bold")
        axes.set_yticks(places)
        axes.set_yticklabels(labels)
        axes.set_ylim(place + 0.7, -0.2)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(f"BLEU minus that of {baseline}")
        legend_below(canvas, axes)
        caption = f"BLEU minus that of {baseline} in parts of the test set; in brackets the number of sentences."
        return finish(canvas, NAME, "Where the difference comes from", caption)
