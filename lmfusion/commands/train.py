"""``lmfusion train``: language models, rows of the paper's table, scores and a report from prepared text."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from lmfusion.checkpoint.finding import checkpoint_of
from lmfusion.commands.parsers import add_command, check_seed
from lmfusion.errors import InputError


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "pretrain language models, train with them, translate, score and report"
    parser = add_command(
        commands,
        "train",
        text,
        "lmfusion train data --rows baseline,src_elmo_shdemb,tgt_elmo --minutes 60 --out runs/mine",
        more=". Prints every fairseq command it runs. Interrupted, the same command goes on. Rows: baseline, shared, "
        "src_elmo, src_elmo_shdemb, src_ft, tgt_elmo, tgt_ft, for few pairs lstm, lstm_src_elmo, "
        "lstm_back_translation, denoising, and others (docs/own_text.md).",
    )
    parser.add_argument("data", type=Path, metavar="DATA", help="folder that `lmfusion data` filled")
    parser.add_argument("--rows", default="baseline,src_elmo_shdemb", metavar="ROW,…", help="(default: %(default)s)")
    parser.add_argument("--minutes", type=float, metavar="N", help="for all of it (default: by the amount of text)")
    parser.add_argument("--src-lm", type=Path, metavar="LM", help="use it on the source side rather than train one")
    parser.add_argument("--tgt-lm", type=Path, metavar="LM", help="use it on the target side rather than train one")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for runs and report")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of all runs (default: 1)")
    parser.add_argument("--jobs", type=int, metavar="N", help="runs at once (default: one a GPU, else one a core)")
    parser.add_argument(
        "--set", action="extend", nargs="+", default=[], metavar="NAME=N", help="numbers of recipes, S2S_DROPOUT=0.3"
    )
    parser.add_argument("--title", default="", help="of the report")
    parser.set_defaults(run=run, check=check)


def check(args: argparse.Namespace) -> None:
    """Refuse what no data can be trained with: called before there are any, too, by ``lmfusion run``.

    Raises:
        InputError: naming the flag.
    """
    from lmfusion.rows import plan, scripts

    for flag, value in (("--minutes", args.minutes), ("--jobs", args.jobs)):
        if value is not None and not 0 < value < math.inf:
            raise InputError(f"{flag} {value:g}: give a number above 0.")
    check_seed(args.seed)
    scripts.check_rows(rows_of(args))
    for side, path in _language_models(args).items():
        if not path.exists():
            raise InputError(f"--{side}-lm {path}: does not exist.")
    plan.check_numbers(_numbers(args))


def rows_of(args: argparse.Namespace) -> list[str]:
    """Return the names of the rows that are asked for, each once."""
    return list(dict.fromkeys(row for word in args.rows.split(",") if (row := word.strip())))


def _language_models(args: argparse.Namespace) -> dict[str, Path]:
    given = {side: path for side, path in (("src", args.src_lm), ("tgt", args.tgt_lm)) if path}
    return {side: checkpoint_of(path) or path for side, path in given.items()}


def _numbers(args: argparse.Namespace) -> dict[str, str]:
    pairs = [word.partition("=") for word in args.set]
    if odd := [name for name, equals, _ in pairs if not equals]:
        raise InputError(f"--set {odd[0]}: give NAME=NUMBER.")
    numbers = {name: value for name, _, value in pairs}
    if len(numbers) < len(pairs):
        names = [name for name, _, _ in pairs]
        raise InputError(f"--set {max(names, key=names.count)}: is given twice. Give each number once.")
    return numbers


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion train DATA --out DIR``."""
    from lmfusion.rows.asked import Asked
    from lmfusion.rows.train import read_data, train

    check(args)
    asked = Asked(
        read_data(args.data),
        rows_of(args),
        args.out,
        args.minutes,
        _language_models(args),
        args.seed,
        args.jobs,
        _numbers(args),
        args.title,
    )
    if failed := train(asked):
        raise InputError(f"failed: {', '.join(failed)}. What they said is above; with that mended, the same goes on.")
    print(f"All of it: {args.out} (report: {args.out / 'report' / 'report.html'})")
