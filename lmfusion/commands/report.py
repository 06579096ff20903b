"""``lmfusion report``: run folders as one page with tables and figures."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmfusion.commands.parsers import add_command
from lmfusion.errors import InputError

if TYPE_CHECKING:
    from lmfusion.report.page.notices import Notices


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "compare run folders in one HTML page, with the same tables as Markdown and CSV and figures as SVG and PNG"
    parser = add_command(
        commands,
        "report",
        text,
        "lmfusion report runs/mine --out report",
        "lmfusion report baseline=runs/a SRC-ELMO=runs/b --out report --source test.en --reference test.de",
    )
    parser.add_argument(
        "runs",
        metavar="RUN",
        action="extend",
        nargs="+",
        help="run folders, or folders of such; ROW=RUN chooses the row of a run, which its flags tell otherwise",
    )
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="folder to write to")
    parser.add_argument("--title", default="Runs compared", help="of the page")
    parser.add_argument("--examples", metavar="N", type=int, default=10, help="outputs side by side (default: 10)")
    parser.add_argument(
        "--size", metavar="N", type=int, help="bitext size whose examples and curves are shown (default: the fullest)"
    )
    parser.add_argument(
        "--curves",
        metavar="NAME",
        action="extend",
        nargs="+",
        default=[],
        help="runs whose learning curves are shown, as the page names them (default: the first seed of each row)",
    )
    parser.add_argument("--source", metavar="FILE", type=Path, help="raw source text of the test set, for examples")
    parser.add_argument("--reference", metavar="FILE", type=Path, help="raw reference text that was scored against")
    parser.add_argument(
        "--significance",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="test differences to the baseline by paired bootstrap, where the outputs and the reference are there "
        "(default; some seconds the first time, for what was tested is kept in the folder)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion report RUN… --out DIR``: write the page, print the tables.

    Raises:
        InputError: if there is nothing to report, or, after everything else was written, some of it could not be read.
    """
    from lmfusion.report.page import build, render, table

    if args.source and not args.reference:
        raise InputError("--source goes with --reference: give both texts of the test set.")
    if args.examples < 0:
        raise InputError(f"--examples {args.examples}: give 0 or more.")
    options = build.Options(
        title=args.title,
        examples=args.examples,
        size=args.size,
        curves=args.curves,
        source=args.source,
        reference=args.reference,
        significance=args.significance,
        out=args.out,
    )
    report = build.build(args.runs, options)
    page, *files = render.write(report, args.out)
    for each in report.answers:
        print(table.to_markdown(each) if isinstance(each, table.Table) else f"{each.text}\n")
    _say(report.notices)
    print(f"wrote {page} and, beside it, {len(files)} tables and figures")
    unreadable = report.notices.of_kind("bad input")
    if unreadable:
        things = "one thing" if len(unreadable) == 1 else f"{len(unreadable)} things"
        raise InputError(f"{things} could not be read (see above); {page} has all that could be, and says so.")


def _say(notices: Notices) -> None:
    for notice in notices.found:
        print(f"lmfusion: {notice.kind}: {notice.text}", file=sys.stderr)
