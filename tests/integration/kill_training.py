"""Trains by a command line (words after --), killing it again and again; prints what came of it as one JSON object.

    python kill_training.py FOLDER KILLS SEED -- fairseq-train DATA … (without --save-dir)

One run is left in peace. Others are killed (SIGKILL) at random moments: half of them at any time between start and end,
half while a checkpoint is being written; each goes on by the same command, and when it has come to its end a new one is
begun, until there were enough kills. Moments are told by the processor time of the run, so that a busy machine changes
nothing. Commands run in forks of this process, which has imported fairseq and computed nothing.
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

from lmfusion.checkpoint.reading import read_checkpoint

RESUMED = re.compile(r"Loaded checkpoint \S+ \(epoch \d+ @ (\d+) updates\)")
TRAINS = "Start iterating over samples"
"""What fairseq logs after it has read a checkpoint, or found none."""
COUNTED = (
    *("kills", "while_writing", "left_half_written"),
    *("resumed", "begun_anew", "killed_before_reading", "complete_runs"),
)


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


def processor_time(child: int) -> float:
    """Seconds that a process of ours has computed; it stays in /proc until it is waited for."""
    fields = Path(f"/proc/{child}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def kill_at(child: int, seconds: float) -> bool:
    """Kill a process that has computed for so long; False if it ended before."""
    while processor_time(child) < seconds:
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
        time.sleep(0.001)
    time.sleep(delay)
    return kill(child)


def kill(child: int) -> bool:
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def trained(folder: Path) -> dict[str, torch.Tensor]:
    """All tensors of a run's last checkpoint: weights and the optimizer's."""
    state = read_checkpoint(folder / "checkpoint_last.pt")
    tensors = dict(state["model"])
    for number, values in state["last_optimizer_state"]["state"].items():
        tensors.update({f"optimizer.{number}.{name}": value for name, value in values.items()})
    return {name: torch.as_tensor(value) for name, value in tensors.items()}


def updates_done(folder: Path) -> int:
    """Updates in a run's last checkpoint, which is whole; 0 without one."""
    path = folder / "checkpoint_last.pt"
    if not path.exists():
        return 0
    return int(read_checkpoint(path)["optimizer_history"][-1]["num_updates"])


def same(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> bool:
    """Bit for bit."""
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def went_on(log: Path, before: int) -> bool:
    """Whether a run has read a checkpoint; it must be the one of `before` updates, and whole at the first reading."""
    text = log.read_text(encoding="utf-8", errors="replace")
    resumed = RESUMED.search(text)
    if "DAMAGED" in text or "Traceback" in text or "lmfusion: error" in text:
        raise RuntimeError(text[-3000:])
    if TRAINS in text and int(resumed[1] if resumed else 0) != before:
        raise RuntimeError(f"{before} updates were saved, and the run goes on from another place:\n{text[-3000:]}")
    return resumed is not None


class Killer:
    """Trains and kills."""

    def __init__(self, words: list[str], out: Path, seed: int) -> None:
        self.words, self.out, self.chance = words, out, random.Random(seed)
        self.counts = dict.fromkeys(COUNTED, 0)
        child = start([*words, "--save-dir", str(out / "peace")], out / "peace.log")
        while not has_ended(child):
            self.duration = processor_time(child)
            time.sleep(0.01)
        self.expected = trained(out / "peace")

    def kill_one(self, folder: Path) -> bool:
        """Go on with a run and kill it; False if it ended before."""
        before, log, writing = updates_done(folder), self.out / "killed.log", self.chance.random() < 0.5
        child = start([*self.words, "--save-dir", str(folder)], log)
        if writing:
            killed = kill_while_writing(child, folder, self.chance.randint(1, 12), self.chance.random() * 0.01)
        else:
            killed = kill_at(child, self.chance.random() * self.duration)
        self.counts["kills"] += killed
        self.counts["while_writing"] += killed and writing
        self.counts["left_half_written"] += killed and any(folder.glob("*.unfinished"))
        without = "killed_before_reading" if before else "begun_anew"
        self.counts["resumed" if went_on(log, before) else without] += 1
        if updates_done(folder) < before:
            raise RuntimeError(f"{before} updates were saved in {folder}, and are no more")
        return killed

    def run(self, kills: int) -> list[str]:
        """Kill so often; the runs whose end is not that of the one in peace."""
        unequal = []
        while self.counts["kills"] < kills:
            folder = self.out / f"killed-{self.counts['complete_runs']}"
            while self.counts["kills"] < kills and self.kill_one(folder):
                print(json.dumps(self.counts), file=sys.stderr, flush=True)
            before = updates_done(folder)
            child = start([*self.words, "--save-dir", str(folder)], self.out / "killed.log")
            while not has_ended(child):
                time.sleep(0.01)
            went_on(self.out / "killed.log", before)
            self.counts["complete_runs"] += 1
            if not same(trained(folder), self.expected):
                unequal.append(folder.name)
        return unequal


def main() -> None:
    """Do what the command line says."""
    split = sys.argv.index("--")
    out, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    killer = Killer(sys.argv[split + 1 :], out, seed)
    unequal = killer.run(kills)
    updates = updates_done(out / "peace")
    print(json.dumps({**killer.counts, "unequal": unequal, "updates": updates, "tensors": len(killer.expected)}))


if __name__ == "__main__":
    main()
