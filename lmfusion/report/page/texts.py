"""Source, reference and hypotheses of a test set as plain text.

Hypotheses and logs lie in the run folder (see read_run.py). Source and reference lie elsewhere, beside the data, and a
folder from a stranger may name any file there: so one is read only where its SHA-256 is the one that was recorded when
the run was scored. What is shown by it is a text whose digest the folder's author had.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lmfusion.errors import InputError
from lmfusion.report.page.comparison import Comparison
from lmfusion.report.page.notices import Notices
from lmfusion.report.page.runs import Run
from lmfusion.runs import provenance
from lmfusion.scoring import generate_output
from lmfusion.scoring.text_files import read_lines

_PRINTED = re.compile(r"([ST])-(\d+)\t(.*)")


@dataclass(frozen=True)
class Texts:
    """The sentences of a test set; item k of each list is the same sentence."""

    sources: list[str]
    """Empty if they are not at hand: then there are no examples."""
    references: list[str]
    raw_source: bool
    """Whether it is the text itself, not what fairseq-generate printed of it."""
    raw_reference: bool


def find_texts(comparison: Comparison, source: Path | None, reference: Path | None, notices: Notices) -> Texts | None:
    """Read texts given by hand, those the scores name if they are the same still, or those in a generation's log.

    Raises:
        InputError: a file given by hand cannot be read.
    """
    runs = [run for row in comparison.rows for cell in row.cells.values() for run in cell.used]
    if len(comparison.data_sets) > 1 or not runs:
        return None
    data_set = comparison.task.data_set
    reference = reference or _unchanged(runs, data_set, "reference")
    source = source or _unchanged(runs, data_set, "source")
    printed: dict[str, list[str]] = {}
    if source is None or reference is None:
        printed = next((found for run in runs if (found := _printed(run)).get("S")), {})
    sources = read_lines(source) if source else printed.get("S", [])
    references = read_lines(reference) if reference else printed.get("T", [])
    if not sources or len(sources) != len(references):
        notices.warn(
            f"{comparison.task.title}: source and reference texts are not at hand ({len(sources):,} source and "
            f"{len(references):,} reference lines), so there are no examples. Give them with --source and --reference."
        )
        if not references:
            return None
        sources = []
    return Texts(sources, references, raw_source=bool(source), raw_reference=bool(reference))


def hypotheses(run: Run, data_set: str, count: int) -> list[str] | None:
    """Return a run's output, a sentence an item; None if the file is not whole."""
    if data_set not in run.outputs:
        return None  # its absence has been noted when the run was read
    try:
        lines = read_lines(run.outputs[data_set])
    except InputError:  # no text, so of another length than was scored, which has been noted, too
        return None
    return lines if len(lines) == count else None


def is_reference_of(comparison: Comparison, path: Path) -> bool:
    """Tell whether a file is the text that a comparison's runs were scored against.

    Raises:
        InputError: there is no such file.
    """
    if not path.is_file():
        raise InputError(f"--reference {path}: there is no such file. Check the path.")
    return comparison.task.reference_sha256 in (None, provenance.hash_file(path)) and len(comparison.data_sets) == 1


def _unchanged(runs: Sequence[Run], data_set: str, name: str) -> Path | None:
    """Return a text that scores.json names, where it lay then or beside a run folder that was moved."""
    for run in runs:
        recorded, digest = run.scores[data_set].get(name), run.scores[data_set].get(f"{name}_sha256")
        if not recorded or not digest:
            continue
        for path in (Path(recorded), run.found.path.parent / "data" / "text" / Path(recorded).name):
            if path.is_file() and provenance.hash_file(path) == digest:
                return path
    return None


def _printed(run: Run) -> dict[str, list[str]]:
    """Return source (S) and target (T) lines of a generation in order; fairseq decodes them if it is given --bpe."""
    if run.printed is None:
        return {}
    texts: dict[str, dict[int, str]] = {"S": {}, "T": {}}
    with run.printed.open(encoding="utf-8", errors="replace") as stream:
        for match in filter(None, map(_PRINTED.match, stream)):
            texts[match[1]][int(match[2])] = generate_output.remove_bpe(match[3])
    return {kind: [lines[number] for number in sorted(lines)] for kind, lines in texts.items()}
