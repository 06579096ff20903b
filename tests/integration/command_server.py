"""Runs fairseq's and lmfusion's real commands, each in a process of its own, without importing fairseq for each anew.

Reads one JSON list of words a line (the command line) from its input, runs it in a fork of this process and answers
with its exit status and output. As in a shell, words may begin with settings of the environment: NAME=value.
It takes the same entry points as the installed commands. Nothing here computes
before the fork, so that no thread of PyTorch's is lost by it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import tempfile
from itertools import takewhile

MODULES = {
    "fairseq-train": "fairseq_cli.train",
    "fairseq-hydra-train": "fairseq_cli.hydra_train",
    "fairseq-generate": "fairseq_cli.generate",
    "fairseq-interactive": "fairseq_cli.interactive",
    "fairseq-validate": "fairseq_cli.validate",
    "fairseq-eval-lm": "fairseq_cli.eval_lm",
    "fairseq-preprocess": "fairseq_cli.preprocess",
}
SLOW_TO_IMPORT = "sacremoses"  # most commands need it


def run_here(words: list[str]) -> int:
    """Be the command `words`: this process's exit status."""
    settings = list(takewhile(lambda word: "=" in word, words))
    os.environ.update(word.split("=", 1) for word in settings)
    words = words[len(settings) :]
    sys.argv = list(words)
    try:
        if words[0] == "lmfusion":
            from lmfusion.cli import main

            return main()
        importlib.import_module(MODULES[words[0]]).cli_main()
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else int(leave.code is not None)
    except BaseException:  # noqa: BLE001  (a process ends with a traceback, whatever the reason)
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def run_forked(words: list[str]) -> tuple[int, str]:
    """Run `words` in a fork; its exit status and all it wrote."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            status = 1
            try:
                status = run_here(words)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        return status, output.read().decode("utf-8", errors="replace")


def main() -> None:
    """Serve until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what importing fairseq prints is no answer
    for name in (*MODULES.values(), SLOW_TO_IMPORT):
        importlib.import_module(name)
    gc.freeze()  # or each fork's collections would copy all memory
    for line in sys.stdin:
        status, output = run_forked(json.loads(line))
        print(json.dumps({"status": status, "output": output}), file=answers, flush=True)


if __name__ == "__main__":
    main()
