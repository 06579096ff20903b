"""Generation of one sentence and of many, beside fairseq's transformer."""

from __future__ import annotations

import argparse

from generation import Generation
from results import Table
from rows import ROWS
from steps import LONGEST
from timing import alternate
from training import FAIRSEQ

from on_gpu.sections import Budget, Found, free, quick

NAMES = ("baseline", "SRC-ELMO", "SRC-FT", "TGT-ELMO", "TGT-FT")
COLUMNS = ["row, sentences a batch", "tokens/s", "time / fairseq's"]


def measure(args: argparse.Namespace, budget: Budget, found: Found) -> None:
    """All rows with each number of sentences, as many as there is time for."""
    found.tables.append(Table(f"Generation, {args.models}, {args.precision}, beam {args.beam}", COLUMNS))
    rows = [quick(row) for row in (FAIRSEQ, *(row for row in ROWS if row.name in NAMES))]
    for sentences in args.sentences:
        if not budget.has(args.reserve):
            found.figures[str(sentences)] = "skipped"
            continue
        running = {row.name: Generation(row, False, sentences * LONGEST, args) for row in rows}
        tokens = running[FAIRSEQ.name].run()
        time = alternate({name: generation.run for name, generation in running.items()}, args.rounds, f"{sentences}")
        for name, spread in time.items():
            ratio = spread.over(time[FAIRSEQ.name]).ratio()
            found.tables[0].rows.append([f"{name}, {sentences}", spread.rate(tokens), ratio])
        found.figures[str(sentences)] = {"tokens": tokens, "seconds": time}
        del running
        free()
