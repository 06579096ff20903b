"""Runs -> the sections of a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Union

from lmfusion.errors import InputError
from lmfusion.report.page import curves, mixes
from lmfusion.report.page.bootstrap import FILE, Bootstrap
from lmfusion.report.page.comparison import Comparison, compare
from lmfusion.report.page.cost_table import cost_table
from lmfusion.report.page.curves import Curve
from lmfusion.report.page.difference_figure import difference_figures, published_figure
from lmfusion.report.page.examples import Examples, make_examples
from lmfusion.report.page.figure import Figure
from lmfusion.report.page.find import find_runs
from lmfusion.report.page.notices import Notices
from lmfusion.report.page.read_run import read_run
from lmfusion.report.page.repeat import Commands, commands, repeat_tables
from lmfusion.report.page.run_tables import lm_table, run_table
from lmfusion.report.page.runs import Run
from lmfusion.report.page.score_tables import score_tables
from lmfusion.report.page.significance import Significance, examine, significance_table, verdict
from lmfusion.report.page.speed_table import speed_tables
from lmfusion.report.page.table import Table, size_name
from lmfusion.report.page.texts import Texts, find_texts, is_reference_of
from lmfusion.report.verdict import Verdict

Block = Union[Examples, Verdict, Table, Figure]
MOST_CURVES = 12


@dataclass(frozen=True)
class Options:
    """Choices of the person who asks for a report."""

    title: str = "Runs compared"
    examples: int = 10
    size: int | None = None
    """Bitext size whose learning curves and examples are shown; None for that with the most rows."""
    curves: Sequence[str] = ()
    """Names of the runs whose learning curves are shown; none for the first seed of each row."""
    source: Path | None = None
    reference: Path | None = None
    significance: bool = True
    """Whether differences are tested."""
    out: Path | None = None
    """A folder in which an earlier report may have kept the outcome of its tests."""


@dataclass(frozen=True)
class Section:
    """A heading and what is under it."""

    title: str
    blocks: list[Block]

    def groups(self) -> list[list[Block]]:
        """Return the blocks in their order, figures that follow each other together."""
        return [list(group) for _, group in groupby(self.blocks, key=lambda block: isinstance(block, Figure))]


@dataclass(frozen=True)
class Report:
    """All there is to show."""

    title: str
    notices: Notices
    sections: list[Section]
    commands: list[Commands]
    answers: list[Verdict | Table] = field(default_factory=list)
    """Those of its parts that answer the question, for the terminal."""
    tests: str = ""
    """What was tested, to be kept in a file; empty if nothing was."""


def build(folders: Sequence[str], options: Options) -> Report:
    """Read runs and put everything together.

    Raises:
        InputError: there is no run folder, or an option names something that is not there.
    """
    notices = Notices()
    found = find_runs(folders, notices)
    if not found:
        raise InputError(" ".join(notice.text for notice in notices.found))
    runs = [read_run(each, notices) for each in found]
    comparisons = compare(runs, notices)
    _check(options, runs, comparisons)
    bootstrap = Bootstrap(options.out / FILE if options.out else None)
    sections: list[Section] = []
    answers: list[Verdict | Table] = []
    shown: set[frozenset[str]] = set()
    for comparison in comparisons:
        section, told = _scores_section(comparison, options, notices, bootstrap)
        sections.append(section)
        answers += told
        members = frozenset(run.name for run in comparison.runs)
        if members not in shown:  # several test sets of the same runs
            sections += _runs_sections(comparison, runs, options)
        shown.add(members)
    if not comparisons:
        notices.warn("None of the runs has a score yet, so there is no table of scores.")
        sections += _curve_sections(_named_or_first(runs, options.curves), "", "all runs")
    sections += _closing_sections(runs, comparisons)
    tests = bootstrap.to_json() if options.significance else ""
    return Report(options.title, notices, sections, commands(runs), answers, tests)


def _check(options: Options, runs: Sequence[Run], comparisons: Sequence[Comparison]) -> None:
    """Refuse options that name nothing."""
    names = [run.name for run in runs]
    for name in options.curves:
        if name not in names:
            raise InputError(f"--curves {name}: there is no such run. There are: {', '.join(names)}.")
    sizes = sorted({size for comparison in comparisons for size in comparison.sizes if size is not None})
    if options.size is not None and options.size not in sizes:
        raise InputError(
            f"--size {options.size}: no run has this bitext size. There are: {', '.join(map(str, sizes))}."
        )
    reference = options.reference
    if reference and comparisons and not any(is_reference_of(each, reference) for each in comparisons):
        raise InputError(f"--reference {reference}: none of the runs was scored against this text.")


def _scores_section(
    comparison: Comparison, options: Options, notices: Notices, bootstrap: Bootstrap
) -> tuple[Section, list[Verdict | Table]]:
    """Return examples, verdicts, tables, figures and significance; and those of them that are the answer."""
    texts = _texts(comparison, options, notices)
    significance = examine(comparison, texts, bootstrap) if options.significance else Significance()
    size = options.size if options.size in comparison.sizes else comparison.focus
    blocks: list[Block] = []
    if texts and texts.sources and (examples := make_examples(comparison, size, texts, options.examples)):
        blocks.append(examples)
    tested = [(comparison, significance)]
    if lstms := comparison.of_lstms():
        tested.append((lstms, examine(lstms, texts, bootstrap) if options.significance else Significance()))
    scores = score_tables(comparison, significance)
    answers: list[Verdict | Table] = [said for each, tests in tested if (said := verdict(each, size, tests))]
    answers += scores
    blocks += [*answers, *difference_figures(comparison, significance)]
    blocks += [table for each, tests in tested if (table := significance_table(each, tests))]
    if costs := cost_table(comparison, scores[0]):
        blocks.append(costs)
    return Section(f"Scores: {comparison.task.title}", blocks), answers


def _texts(comparison: Comparison, options: Options, notices: Notices) -> Texts | None:
    if options.reference and is_reference_of(comparison, options.reference):
        return find_texts(comparison, options.source, options.reference, notices)
    return find_texts(comparison, None, None, notices)


def _runs_sections(comparison: Comparison, runs: Sequence[Run], options: Options) -> list[Section]:
    """Return what does not depend on the test set: learning curves, mixing weights, speed."""
    prefix = comparison.prefix
    size = options.size if options.size in comparison.sizes else comparison.focus
    chosen = _named_or_first(runs, options.curves) if options.curves else _first_seeds(comparison, size)
    subject = "chosen runs" if options.curves else f"{size_name(size)} pairs, first seeds"
    sections = _curve_sections(chosen, prefix, subject)
    blocks: list[Block] = []
    for side, found in mixes.mixes_by_side(comparison).items():
        blocks += [*mixes.mix_figures(side, found, prefix), mixes.mix_table(side, found, prefix)]
    if blocks:
        sections.append(Section("Mixing weights", blocks))
    if speeds := speed_tables(comparison):
        sections.append(Section("Speed", list(speeds)))
    return sections


def _first_seeds(comparison: Comparison, size: int | None) -> list[Curve]:
    """Return the run with the lowest seed of each row at a size, also if it is left out of the means."""
    found = []
    for row in comparison.rows:
        runs = sorted(row.cell(size).runs, key=lambda run: (run.seed is None, run.seed or 0))
        found += [Curve(run, row.name, row.strategy) for run in runs[:1] if run.log.updates]
    return found


def _named_or_first(runs: Sequence[Run], names: Sequence[str]) -> list[Curve]:
    """Return runs by name; without names, those that come first."""
    chosen = [run for run in runs if run.name in names or (not names and not run.is_language_model)]
    drawn = [Curve(run, run.name, run.strategy) for run in chosen if not run.broken and run.log.updates]
    return drawn if names else drawn[:MOST_CURVES]


def _curve_sections(chosen: Sequence[Curve], prefix: str, subject: str) -> list[Section]:
    figures = curves.curve_figures(chosen, f"{prefix}curve", subject)
    return [Section(f"Learning curves: {subject}", list(figures))] if figures else []


def _closing_sections(runs: Sequence[Run], comparisons: Sequence[Comparison]) -> list[Section]:
    """Return all runs, language models, the paper's figure, and what it takes to repeat it."""
    sections = [Section("All runs", [run_table(runs, comparisons)])]
    models = [run for run in runs if run.is_language_model and not run.broken]
    if models:
        drawn = [Curve(run, run.name, run.name) for run in models if run.log.updates]
        figures = curves.curve_figures(drawn[:MOST_CURVES], "lm-curve", "language models")
        sections.append(Section("Language models", [lm_table(runs), *figures]))
    if any(each.is_of_the_paper and "BLEU" in each.metrics for each in comparisons):
        sections.append(Section("What was published", [published_figure()]))
    sections.append(Section("To repeat it", list(repeat_tables(runs, comparisons))))
    return sections
