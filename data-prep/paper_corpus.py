#!/usr/bin/env python3
"""One corpus of the paper, from download to fairseq's data. Run it again: it resumes where it stopped.

    python data-prep/paper_corpus.py newscrawl --lang en --out DATA
    python data-prep/paper_corpus.py wmt18_ende --out DATA
    python data-prep/paper_corpus.py wmt18_entr --out DATA
    python data-prep/paper_corpus.py cnn_dm --out DATA

What it needs and what it makes is in data-prep/README.md; --dry-run tells what would be done and writes nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

from paper_corpora import cnn_dm, newscrawl, sources, stages, wmt18_ende, wmt18_entr
from paper_corpora.workspace import SCALES, SUBSET_NAMES, Workspace

from lmfusion.text import textio

SOURCES_VARIABLE = "LMFUSION_SOURCES"


class Parser(argparse.ArgumentParser):
    """A command line whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """End with status 2."""
        self.exit(2, f"error: {message}. See --help.\n")


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="corpus", required=True, metavar="CORPUS")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--out", type=Path, required=True, metavar="DATA", help="folder that all corpora share")
    common.add_argument("--scale", choices=SCALES, default="full", help="sizes only (default: %(default)s)")
    table = os.environ.get(SOURCES_VARIABLE, str(sources.TABLE))
    common.add_argument("--sources", type=Path, default=table, metavar="FILE", help="table of sources (%(default)s)")
    common.add_argument("--local", action="append", default=[], metavar="NAME=PATH", help="instead of a download")
    common.add_argument("--dry-run", action="store_true", help="tell what would be done")
    common.add_argument("--seed", type=int, default=1, help="of samples and subsets (default: %(default)s)")
    common.add_argument("--workers", type=int, help="processes (default: all cores)")
    newscrawl_command = commands.add_parser("newscrawl", parents=[common], help="2007-2017, English and German")
    newscrawl_command.add_argument("--lang", action="append", required=True, choices=newscrawl.EXPECTED)
    ende = commands.add_parser("wmt18_ende", parents=[common], help="WMT'18 English-German, and newscrawl")
    ende.add_argument("--subsets", nargs="+", choices=SUBSET_NAMES, default=SUBSET_NAMES, metavar="N", help="160K …")
    ende.add_argument("--bitext-bpe", nargs="*", choices=SUBSET_NAMES, metavar="N", help="default: as --subsets")
    commands.add_parser("wmt18_entr", parents=[common], help="WMT'18 English-Turkish")
    commands.add_parser("cnn_dm", parents=[common], help="CNN-DailyMail, and newscrawl English")
    return parser.parse_args()


def plan(args: argparse.Namespace, workspace: Workspace) -> list[stages.Stage]:
    """The stages of the corpus that was asked for."""
    if args.corpus == "newscrawl":
        return [stage for lang in dict.fromkeys(args.lang) for stage in newscrawl.stages(workspace, lang)]
    if args.corpus == "wmt18_ende":
        bitext_bpe = args.subsets if args.bitext_bpe is None else args.bitext_bpe
        return wmt18_ende.stages(workspace, list(args.subsets), list(bitext_bpe))
    return wmt18_entr.stages(workspace) if args.corpus == "wmt18_entr" else cnn_dm.stages(workspace)


def main() -> None:
    """The command line."""
    args = parse_args()
    table = sources.with_local_files(sources.read_table(args.sources), args.local)
    workspace = Workspace(args.out, SCALES[args.scale], table, args.seed, args.workers)
    todo = plan(args, workspace)
    if args.dry_run:
        stages.tell(workspace, todo)
    else:
        stages.run(workspace, todo)


if __name__ == "__main__":
    sys.exit(textio.run_command(main))
