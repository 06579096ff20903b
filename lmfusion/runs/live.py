"""Run one fairseq command of a run folder: its output into a log, one live line on the terminal.

    python -m lmfusion.runs.live RUN train --label baseline --updates 1200 --data BIN -- fairseq-train BIN …

A finished step is skipped, a killed one resumes from its last whole checkpoint, a failed one shows the log's last
words. The command dies with this process, and two never work in one run folder.
"""

from __future__ import annotations

import argparse
import errno
import logging
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from lmfusion.child_processes import die_with_parent, end_when_parent_ends
from lmfusion.errors import exit_status
from lmfusion.runs import checkpoints, model_facts
from lmfusion.runs.live_line import LiveLine, clock
from lmfusion.runs.log_tail import last_words
from lmfusion.runs.run_folder import RunFolder
from lmfusion.runs.threads import let_waiting_threads_sleep
from lmfusion.runs.watchers import GenerationWatcher, TrainingWatcher, Watcher

HEARTBEAT = 10.0
STARTED_BY = "LMFUSION_STARTED_BY"
"""The variable by which recipes say which process is to be outlived by nothing: their own number."""
SHOW = "LMFUSION_SHOW_COMMANDS"
"""The variable by which a command asks for every fairseq command to be printed."""


def run_step(run: RunFolder, args: argparse.Namespace, watcher: Watcher, line: LiveLine) -> int:
    """Run the command unless it finished before; return its exit status.

    Args:
        run: the folder that records it and takes its log.
        args: the command (``command``, ``launch``), its step and label, and ``seed`` and ``data`` to record.
        watcher: reads its output.
        line: the line of the terminal that shows the watcher's news.

    Raises:
        InputError: the folder is in use, the step was begun with other flags or on other data, or what it trained
            cannot be read.
    """
    lock = run.lock()
    if os.environ.get(SHOW):
        line.keep("$ " + shlex.join([*args.launch, *args.command]))
    if not run.begin(args.step, args.command, seed=args.seed, data=args.data, launch=args.launch):
        line.keep(f"  {args.label}: finished before ({watcher.summary_text(run.step(args.step)['result'])})")
        return 0
    if isinstance(watcher, TrainingWatcher):
        checkpoints.make_last(run.checkpoints)
    log = run.log(args.step)
    start = log.stat().st_size if watcher.continues and log.exists() else 0
    # By line: what a killed run said last is what one wants to read.
    with log.open("a" if watcher.continues else "w", buffering=1, encoding="utf-8") as stream:
        status = _follow(run, args, watcher, line, stream, lock)
    if status == 0:
        result = watcher.result(log)
        run.finish(args.step, result)
        seconds = run.step(args.step)["seconds"]
        line.keep(f"  {args.label}: {watcher.summary_text(result)}, {clock(seconds)}")
        if isinstance(watcher, TrainingWatcher):
            model_facts.record(run)
        return 0
    reason = last_words(log, start)
    run.fail(args.step, reason)
    line.keep(f"  {args.label}: failed, {describe_status(status)}. The log's last words:\n{reason}\n  All of it: {log}")
    return status if status > 0 else 128 - status


def describe_status(status: int) -> str:
    """Return an exit status in words."""
    if status == -signal.SIGKILL:
        return "killed by the system (out of memory?)"
    return f"ended by signal {-status}" if status < 0 else f"exit status {status}"


def _follow(run: RunFolder, args: argparse.Namespace, watcher: Watcher, line: LiveLine, log: IO[str], lock: int) -> int:
    """Start the command, copy its output into the log and its progress onto the live line."""
    # In another encoding than UTF-8, what is read below would lose letters, and its score with them.
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1", "LOGLEVEL": "INFO"}
    process = subprocess.Popen(
        [*args.launch, *args.command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        pass_fds=(lock,),
        preexec_fn=die_with_parent(),
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    assert process.stdout is not None
    counted = time.monotonic()
    try:
        for text in process.stdout:
            log.write(text)
            watcher.take(text, line)
            if time.monotonic() - counted > HEARTBEAT:
                run.add_seconds(args.step, time.monotonic() - counted)
                counted = time.monotonic()
        return process.wait()
    finally:
        run.add_seconds(args.step, time.monotonic() - counted)
        if process.poll() is None:
            process.terminate()
            process.wait()


def describe_os_error(error: OSError, args: argparse.Namespace) -> str:
    """Say what the system refused, and what to do."""
    if error.filename in (args.command[0], *args.launch[:1]):
        return f"{error.filename}: no such command. Install it and lmfusion by: bash scripts/setup.sh"
    advice = "Free some space, then run the same command again." if error.errno == errno.ENOSPC else ""
    return f"{error.filename or args.run}: {error.strerror}. {advice} Finished steps are kept."


def end_with_parent() -> None:
    """End this process when the one that started it dies, or at once if it died before this could be asked for."""
    end_when_parent_ends()
    starter = os.environ.get(STARTED_BY)
    if starter and not _is_alive(int(starter)):
        sys.exit(128 + signal.SIGTERM)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it belongs to somebody else, so it is there
        return True
    return True


def parse_args(words: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line, by default this process's: flags of our own, then ``--``, then the command to run."""
    parser = argparse.ArgumentParser(
        prog="python -m lmfusion.runs.live",
        usage="%(prog)s RUN STEP --label LABEL (--updates N | --sentences N) [options] -- COMMAND...",
        description=(__doc__ or "").splitlines()[0],
    )
    parser.add_argument("run", type=Path, help="run folder")
    parser.add_argument("step", help="name of the step in run.json and of its log")
    parser.add_argument("--label", required=True, help="what to call it on the terminal")
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--updates", type=int, help="fairseq-train for so many updates")
    kind.add_argument("--sentences", type=int, help="fairseq-generate of so many sentences")
    parser.add_argument("--show-validation", action="store_true", help="a line for every validation")
    parser.add_argument("--seed", type=int, help="to be recorded")
    parser.add_argument("--data", type=Path, help="folder of binarized data, whose hashes are recorded")
    parser.add_argument(
        "--launch",
        type=shlex.split,
        default=[],
        metavar="WORDS",
        help="what starts the command on several devices ('torchrun ...'); recorded without the names of machines",
    )
    words = sys.argv[1:] if words is None else words
    own = words[: words.index("--")] if "--" in words else words
    args = parser.parse_args(own)
    args.command = words[len(own) + 1 :]
    if not args.command:
        parser.error("no command given after --")
    return args


def main() -> int:
    """Run the command and return its exit status."""
    args = parse_args()
    watcher: Watcher
    if args.updates:
        watcher = TrainingWatcher(args.label, args.updates, args.show_validation)
    else:
        watcher = GenerationWatcher(args.label, args.sentences)
    end_with_parent()
    logging.getLogger("fairseq").setLevel(logging.WARNING)  # of this process, which describes what was trained
    let_waiting_threads_sleep(os.environ)  # handed on to the command, and recorded in run.json
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    return exit_status(
        lambda: run_step(RunFolder(args.run), args, watcher, LiveLine(sys.stdout)),
        lambda error: describe_os_error(error, args),
    )


if __name__ == "__main__":
    sys.exit(main())
