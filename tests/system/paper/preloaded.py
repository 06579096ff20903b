"""A stand-in for starting Python: the recipes' commands, each in a process of its own that has everything imported.

A recipe starts dozens of commands that each import fairseq for four seconds and then work for one. This server imports
it once and runs every command in a fork of itself, with the command's own words, environment, folder and open files:

    python preloaded.py SOCKET FOLDER      serves; fills FOLDER with stand-ins for `python`, `fairseq-train` and so on

A script that finds FOLDER first in its PATH runs as it does elsewhere; only the start of its commands is faster. What
concerns that start itself (signals, installed commands) is tested with the real ones elsewhere.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import logging
import os
import runpy
import signal
import socket
import sys
from pathlib import Path
from typing import Callable

COMMANDS = {
    "fairseq-train": "fairseq_cli.train:cli_main",
    "fairseq-generate": "fairseq_cli.generate:cli_main",
    "lmfusion": "lmfusion.cli:main",
}
PRELOADED = ["lmfusion", "lmfusion.cli", "fairseq_cli.train", "fairseq_cli.generate", "sacremoses", "sentencepiece"]
PRELOADED += [f"lmfusion.runs.{name}" for name in ("run_folder", "watchers", "model_facts")] + ["lmfusion.report.page"]
PRELOADED += ["lmfusion.scoring.bleu", "lmfusion.scoring.rouge", "torch.fx.experimental.symbolic_shapes"]
# Hands words, environment, folder and the three open files over, and ends as the command does.
CLIENT = """#!{python} -SE
import json, os, socket, struct, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    words = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
    request = json.dumps([words, dict(os.environ), os.getcwd()]).encode()
    socket.send_fds(server, [struct.pack("!I", len(request))], [0, 1, 2])
    server.sendall(request)
    answer = server.recv(1)
sys.exit(answer[0] if answer else 1)
"""


def stand_ins(folder: Path, address: str) -> None:
    """Executables that hand their command line to the server."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("python", *COMMANDS):
        path = folder / name
        path.write_text(CLIENT.format(python=sys.executable, address=address), encoding="utf-8")
        path.chmod(0o755)


def run_python(words: list[str]) -> None:
    """What `python WORDS` does, for the ways in which recipes start it."""
    kind, *rest = [word for word in words if word != "-P"]
    if kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    elif kind == "-m":
        sys.argv = rest
        sys.modules.pop(rest[0], None)  # a new interpreter has not imported it, and runpy warns where one has
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [kind, *rest]
        sys.path.insert(0, str(Path(kind).resolve().parent))
        runpy.run_path(kind, run_name="__main__")


def run_command(words: list[str], stand_in: str) -> object:
    """Be this command."""
    logging.root.handlers.clear()
    logging.root.setLevel(logging.WARNING)
    if words[0] == "python":
        sys.executable = stand_in  # for the commands that this one starts
        return run_python(words[1:])
    sys.argv = words
    name, _, function = COMMANDS[words[0]].partition(":")
    module = importlib.reload(importlib.import_module(name))  # fairseq's set up logging when they are imported
    entry: Callable[[], object] = getattr(module, function)
    return entry()


def exit_status(words: list[str], stand_in: str) -> int:
    """Run the command; its exit status, as the interpreter would give it."""
    try:
        status = run_command(words, stand_in)
    except SystemExit as leave:
        status = leave.code
    except BaseException:  # noqa: BLE001  (a process ends with a traceback, whatever the reason)
        sys.excepthook(*sys.exc_info())
        return 1
    if isinstance(status, str):
        print(status, file=sys.stderr)
        return 1
    return status if isinstance(status, int) else 0


def serve_one(client: socket.socket, stand_in: str) -> int:
    """In the fork: take over the client's words, environment, folder and open files, and run its command."""
    size, files, _, _ = socket.recv_fds(client, 4, 3)
    request = b""
    while len(request) < int.from_bytes(size, "big"):
        request += client.recv(1 << 16)
    words, environment, folder = json.loads(request)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    status = exit_status(words, stand_in)
    sys.stdout.flush()
    sys.stderr.flush()
    client.sendall(bytes([status % 256]))
    return status


def main() -> None:
    """Serve until this process is ended."""
    address, folder = sys.argv[1:]
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()  # what is imported is shared with the forks, and stays so
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        stand_ins(Path(folder), address)
        print("ready", flush=True)
        while True:
            client, _ = server.accept()
            if os.fork() == 0:
                server.close()
                os._exit(serve_one(client, str(Path(folder) / "python")) % 256)
            client.close()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


if __name__ == "__main__":
    main()
