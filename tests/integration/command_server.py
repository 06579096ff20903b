"""Runs fairseq's and lmfusion's real commands, each in a process of its own, without importing fairseq for each anew.

Reads JSON lists of command lines, one list a line, from its input. The commands of a list run side by side, each in a
fork; of each there is a line with its exit status and output. As in a shell, words may begin with settings of the
environment: NAME=value; PWD=folder also changes into it.
It takes the same entry points as the installed commands, or a Python script. Nothing here computes before the fork, so
that no thread of PyTorch's is lost by it.

There are two of these processes. The first knows nothing of lmfusion. The second has done what fairseq does first of
all with ``--user-dir lmfusion``, which takes it as long as many a command takes after that; it gets these commands.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
from argparse import Namespace
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path
from typing import Any, Callable, TextIO

USER_DIR = str(Path(__file__).resolve().parents[2] / "lmfusion")
MODULES = {
    "fairseq-train": "fairseq_cli.train",
    "fairseq-hydra-train": "fairseq_cli.hydra_train",
    "fairseq-generate": "fairseq_cli.generate",
    "fairseq-interactive": "fairseq_cli.interactive",
    "fairseq-validate": "fairseq_cli.validate",
    "fairseq-eval-lm": "fairseq_cli.eval_lm",
    "fairseq-preprocess": "fairseq_cli.preprocess",
}
# Most commands need them; PyTorch's optimizers and attention import 300 modules of it when they are first used.
SLOW_TO_IMPORT = ("sacremoses", "torch._dynamo", "torch.distributed.fsdp", "fairseq.data.token_block_utils_fast")


def run_here(words: list[str]) -> int:
    """Be the command `words`: this process's exit status."""
    settings = list(takewhile(lambda word: "=" in word, words))
    os.environ.update(word.split("=", 1) for word in settings)
    if any(word.startswith("PWD=") for word in settings):
        os.chdir(os.environ["PWD"])
    words = words[len(settings) :]
    sys.argv = list(words)
    try:
        if words[0] == "lmfusion":
            from lmfusion.cli import main

            return main()
        if words[0].endswith(".py"):
            sys.path.insert(0, str(Path(words[0]).resolve().parent))
            runpy.run_path(words[0], run_name="__main__")
        else:
            importlib.import_module(MODULES[words[0]]).cli_main()
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else int(leave.code is not None)
    except BaseException:  # noqa: BLE001  (a process ends with a traceback, whatever the reason)
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def start_forked(run: Callable[[], int], output: int) -> int:
    """Start this in a fork, all that it writes going to a file; its process id."""
    sys.stdout.flush()  # or the fork would write it as well
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    os.dup2(output, 1)
    os.dup2(output, 2)
    status = 1
    try:
        status = run()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def status_of(child: int) -> int:
    """Wait for a process; its exit status."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_side_by_side(commands: list[list[str]], answers: TextIO) -> None:
    """Run command lines at the same time; write the exit status of each and all that it wrote."""
    with ExitStack() as files:
        outputs = [files.enter_context(tempfile.TemporaryFile()) for _ in commands]
        started = [
            start_forked(lambda words=words: run_here(words), output.fileno())
            for words, output in zip(commands, outputs)
        ]
        for child, output in zip(started, outputs):
            status = status_of(child)
            output.seek(0)
            text = output.read().decode("utf-8", errors="replace")
            print(json.dumps({"status": status, "output": text}), file=answers, flush=True)


def run_or_fork(words: Any, **given: Any) -> subprocess.CompletedProcess[Any]:
    """Take the place of ``subprocess.run``: Python with one of MODULES, started by a command, is a fork as well."""
    names = [name for name, module in MODULES.items() if list(words[:4]) == [sys.executable, "-P", "-m", module]]
    files = given.get("stdout")
    if not names or files is None or given != {"stdout": files, "stderr": files, "check": False}:
        return real_run(words, **given)
    child = start_forked(lambda: run_here([*names, *words[4:]]), given["stdout"].fileno())
    return subprocess.CompletedProcess(words, status_of(child))


real_run = subprocess.run


def start_plugged(answers: TextIO) -> tuple[TextIO, int]:
    """Start the process that has lmfusion imported; where it takes its requests, and where it tells of each answer."""
    read, write = os.pipe()
    told, tell = os.pipe()
    if os.fork() == 0:
        os.close(write)
        os.close(told)
        from fairseq.utils import import_user_module

        import_user_module(Namespace(user_dir=USER_DIR))
        gc.freeze()
        with os.fdopen(read, encoding="utf-8") as requests:
            for line in requests:
                run_side_by_side(json.loads(line), answers)
                os.write(tell, b".")
        os._exit(0)
    os.close(read)
    os.close(tell)
    return os.fdopen(write, "w", encoding="utf-8"), told


def is_plugged(words: list[str]) -> bool:
    """Whether a command is one of fairseq's with lmfusion as its ``--user-dir``."""
    name = next(word for word in words if "=" not in word)
    return name != "lmfusion" and ("--user-dir", USER_DIR) in zip(words, words[1:])


def main() -> None:
    """Serve until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what importing fairseq prints is no answer
    for name in (*MODULES.values(), *SLOW_TO_IMPORT):
        importlib.import_module(name)
    subprocess.run = run_or_fork  # type: ignore[assignment]
    plugged, told = start_plugged(answers)
    gc.freeze()  # or each fork's collections would copy all memory
    for line in sys.stdin:
        commands = json.loads(line)
        if all(map(is_plugged, commands)):
            print(line, end="", file=plugged, flush=True)  # it answers by itself
            if not os.read(told, 1):
                sys.exit("the process that has lmfusion imported is gone")  # or the tests would wait for ever
        else:
            run_side_by_side(commands, answers)
    plugged.close()
    os.wait()


if __name__ == "__main__":
    main()
