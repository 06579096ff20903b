"""The command ``lmfusion``; bad input ends in one line and status 2."""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
from collections.abc import Sequence

from lmfusion.commands import (
    average,
    bench,
    check_data,
    convert,
    data,
    embed,
    export,
    hf,
    inspect,
    pack,
    plan,
    predict,
    recipes,
    report,
    run,
    score,
    train,
    translate,
    user_dir,
)
from lmfusion.commands.parsers import use_own_parts
from lmfusion.errors import LMFusionError, describe_os_error, shown
from lmfusion.runs.threads import let_waiting_threads_sleep

COMMANDS = (
    data,
    train,
    translate,
    predict,
    pack,
    run,
    plan,
    user_dir,
    check_data,
    embed,
    inspect,
    average,
    export,
    convert,
    hf,
    score,
    report,
    recipes,
    bench,
)
_MAKERS = "data train pack run embed average export convert hf report recipes".split()
"""Commands that make files: nothing may be taken for made because a reader of their output has gone."""
SUCCESS, USER_ERROR, INTERRUPTED = 0, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command of ``lmfusion``.

    Args:
        arguments: words of the command line, without the program's name; by default those of this process.

    Returns:
        The exit status: 0, 2 for bad input and for work that broke off, 130 when interrupted.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Files and pipes get UTF-8, as they are read; a terminal that is not UTF-8 a question mark, not a traceback.
        own = sys.stdout.isatty() or os.environ.get("PYTHONIOENCODING")
        sys.stdout.reconfigure(encoding=None if own else "utf-8", errors="replace")
    args = build_parser().parse_args(arguments)
    let_waiting_threads_sleep(os.environ)  # commands load torch from here on
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)  # it asks everybody for tensorboardX
    finished = False
    try:
        if getattr(args, "user_dir", None):
            use_own_parts(args.user_dir)
        args.run(args)
        finished = True
        sys.stdout.flush()
    except LMFusionError as error:
        print(f"lmfusion: error: {shown(error)}", file=sys.stderr)
        return USER_ERROR
    except KeyboardInterrupt:
        print("lmfusion: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (BrokenPipeError, SystemExit) as error:  # the reader has seen enough (lmfusion inspect … | head -1)
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):  # rich ends so, too
            raise
        _discard_output()
        if args.command in _MAKERS and not finished:
            unread = f"nobody reads what {args.command} prints any more, so it ended, perhaps before its work was done"
            print(f"lmfusion: error: {unread}. Run it again, its output into a file.", file=sys.stderr)
            return USER_ERROR
    except OSError as error:
        print(f"lmfusion: error: {describe_os_error(error)}", file=sys.stderr)
        _discard_output()
        return USER_ERROR
    return SUCCESS


def _discard_output() -> None:
    """Send the rest of the output nowhere: writing it would fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; each names the function that runs it by ``set_defaults(run=…)``."""
    parser = argparse.ArgumentParser(
        prog="lmfusion", description="Pretrained language models inside sequence-to-sequence models (fairseq plugin)."
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for command in COMMANDS:
        command.add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
