"""Trains by a command line (words after --), killing it again and again; prints what came of it as one JSON object.

    python kill_training.py FOLDER KILLS SEED -- fairseq-train DATA … (without --save-dir)

One run is left in peace. Others are killed (SIGKILL) at random moments: half of them at any time between start and end,
half while a checkpoint is being written; each goes on by the same command, and when it has come to its end a new one is
begun, until there were enough kills. Commands run in forks of this process, which has imported fairseq and computed
nothing.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import time
from pathlib import Path

import fairseq_cli.train
import torch

import lmfusion  # noqa: F401

RESUMED = re.compile(r"Loaded checkpoint \S+ \(epoch \d+ @ (\d+) updates\)")


def start(words: list[str], log: Path) -> int:
    """The command in a fork; its process id."""
    child = os.fork()
    if child:
        return child
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    status = 1
    sys.argv = words
    try:
        fairseq_cli.train.cli_main()
        status = 0
    except BaseException:  # noqa: BLE001  (a process ends with a traceback, whatever the reason)
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def has_ended(child: int) -> bool:
    """Whether a process is over; one that failed is an error."""
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended and status:
        raise RuntimeError("a run ended with an error")
    return bool(ended)


def kill_at(child: int, seconds: float) -> bool:
    """Kill a process after some time; False if it ended before."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if has_ended(child):
            return False
        time.sleep(0.002)
    return kill(child)


def kill_while_writing(child: int, folder: Path, times: int, delay: float) -> bool:
    """Kill a process when it writes a checkpoint file for the n-th time; False if it ended before."""
    writing, seen = False, 0
    while seen < times:
        if has_ended(child):
            return False
        before, writing = writing, folder.is_dir() and any(".unfinished" in name for name in os.listdir(folder))
        seen += writing and not before
    time.sleep(delay)
    return kill(child)


def kill(child: int) -> bool:
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def trained(folder: Path) -> dict[str, torch.Tensor]:
    """All tensors of a run's last checkpoint: weights and the optimizer's."""
    state = torch.load(folder / "checkpoint_last.pt", weights_only=True)
    tensors = dict(state["model"])
    for number, values in state["last_optimizer_state"]["state"].items():
        tensors.update({f"optimizer.{number}.{name}": value for name, value in values.items()})
    return {name: torch.as_tensor(value) for name, value in tensors.items()}


def same(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> bool:
    """Bit for bit."""
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def main() -> None:
    """Do what the command line says."""
    split = sys.argv.index("--")
    out, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    words, chance = sys.argv[split + 1 :], random.Random(seed)
    began = time.monotonic()
    child = start([*words, "--save-dir", str(out / "peace")], out / "peace.log")
    while not has_ended(child):
        time.sleep(0.01)
    duration, expected = time.monotonic() - began, trained(out / "peace")
    counts = {"kills": 0, "while_writing": 0, "left_half_written": 0, "resumed": 0, "begun_anew": 0, "complete_runs": 0}
    unequal, log, folder = [], out / "killed.log", out / "killed-0"
    while counts["kills"] < kills or folder.exists():
        had = (folder / "checkpoint_last.pt").exists()
        child = start([*words, "--save-dir", str(folder)], log)
        writing = chance.random() < 0.5
        if counts["kills"] >= kills:
            was_killed = kill_at(child, 1e9)
        elif writing:
            was_killed = kill_while_writing(child, folder, chance.randint(1, 12), chance.random() * 0.01)
        else:
            was_killed = kill_at(child, chance.random() * duration)
        counts["kills"] += was_killed
        counts["while_writing"] += was_killed and writing
        counts["left_half_written"] += was_killed and any(folder.glob("*.unfinished"))
        text = log.read_text(encoding="utf-8", errors="replace")
        if "DAMAGED" in text or "Traceback" in text:
            raise RuntimeError(text[-3000:])
        counts["resumed" if RESUMED.search(text) else "begun_anew"] += 1
        if had and not was_killed and not RESUMED.search(text):
            raise RuntimeError("a run with a checkpoint began anew")
        if not was_killed:
            counts["complete_runs"] += 1
            if not same(trained(folder), expected):
                unequal.append(folder.name)
            folder = out / f"killed-{counts['complete_runs']}"
    updates = re.findall(r'"num_updates": "(\d+)"', (out / "peace.log").read_text(encoding="utf-8"))
    print(json.dumps({**counts, "unequal": unequal, "updates": int(updates[-1]), "tensors": len(expected)}))


if __name__ == "__main__":
    main()
