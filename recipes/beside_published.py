#!/usr/bin/env python3
"""Scores of run folders, and the published figures of the same rows beneath.

python recipes/beside_published.py runs/160K/seed-1/src_elmo --pair en-de --pairs 160000
python recipes/beside_published.py runs/cnn_dm/seed-1/lead3 --data-set cnn_dm
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lmfusion.errors import exit_status
from lmfusion.report.page import published
from lmfusion.runs.run_folder import RunFolder

STRATEGIES = {
    "lead3": "Lead-3",
    "baseline": "baseline",
    "shared": "SHARED",
    "shared_bitext_bpe": "SHARED+bitext-BPE",
    "src_elmo": "SRC-ELMO",
    "src_ft": "SRC-FT",
    "tgt_elmo": "TGT-ELMO",
    "tgt_ft": "TGT-FT",
    "src_elmo_shdemb": "SRC-ELMO+SHDEMB",
}
ROUGE = {"ROUGE-1": "rouge1", "ROUGE-2": "rouge2", "ROUGE-L": "rougeL"}
Line = dict[str, "float | None"]


def bleu_lines(scores: dict[str, Any], strategy: str, pair: str, pairs: int) -> tuple[Line, Line]:
    """Ours and the paper's BLEU of every WMT test set, and their average where there are several."""
    names = sorted(name for name in scores if published.year_of(name))
    source, target = pair.split("-")
    ours: Line = {name: scores[name]["bleu"] for name in names}
    theirs: Line = {name: published.score([name], (source, target), strategy, pairs, "BLEU") for name in names}
    if len(names) > 1:
        ours["average"] = statistics.fmean(scores[name]["bleu"] for name in names)
        theirs["average"] = published.score(names, (source, target), strategy, pairs, "BLEU")
    return ours, theirs


def rouge_lines(score: dict[str, Any], strategy: str, data_set: str) -> tuple[Line, Line]:
    """Ours and the paper's ROUGE F1, in percent."""
    ours: Line = {name: 100 * score[key]["f1"]["mean"] for name, key in ROUGE.items()}
    return ours, {name: published.score([data_set], ("", ""), strategy, None, name) for name in ROUGE}


def show(rows: Sequence[tuple[str, Line, Line]], source: str) -> str:
    """A line of ours and one of the paper's for each row, under the names of what is scored."""
    heads = list(dict.fromkeys(head for _, ours, _ in rows for head in ours))
    width = max(len(name) for name, _, _ in rows)
    lines = [" ".join([" " * (width + 8), *(f"{head:>12}" for head in heads)])]
    for name, ours, theirs in rows:
        for who, line in (("ours", ours), ("paper", theirs)):
            cells = ("-" if line.get(head) is None else f"{line[head]:.2f}" for head in heads)
            lines.append(" ".join([f"  {name:{width}} {who:5}", *(f"{cell:>12}" for cell in cells)]))
    return "\n".join([*lines, f"  paper: {source}"])


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", help="run folders with scores.json")
    parser.add_argument("--row", help="the script's name, where the run folder is not called so")
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--pair", help="translation: en-de, en-tr")
    kind.add_argument("--data-set", help="summarization: its name in scores.json")
    parser.add_argument("--pairs", type=int, default=0, help="bitext size of the published figures")
    return parser.parse_args()


def _report(args: argparse.Namespace) -> None:
    """Print the table; run folders without scores are named."""
    rows: list[tuple[str, Line, Line]] = []
    for path in args.runs:
        strategy, scores = STRATEGIES.get(args.row or path.name, ""), RunFolder(path).scores
        if args.data_set and args.data_set in scores:
            rows.append((path.name, *rouge_lines(scores[args.data_set], strategy, args.data_set)))
        elif args.pair and any(published.year_of(name) for name in scores):
            rows.append((path.name, *bleu_lines(scores, strategy, args.pair, args.pairs)))
        else:
            print(f"  {path.name}: no scores yet")
    if rows:
        print(show(rows, published.source()))


def main() -> int:
    """The command line."""
    args = parse_args()
    return exit_status(lambda: _report(args))


if __name__ == "__main__":
    sys.exit(main())
