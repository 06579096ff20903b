"""Several processes by the documented lines: what they share, what one of them dying does, what is refused."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

import pytest

import lmfusion

DISTRIBUTED = ("--distributed-world-size", 2, "--distributed-rank")
FINE = ("--max-tokens", 500, "--log-interval", 1, "--save-interval-updates", 2, "--keep-interval-updates", 1)


@pytest.fixture(scope="module")
def trained(commands: Any, lm_files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SRC-ELMO+SHDEMB after two updates."""
    out = tmp_path_factory.mktemp("trained")
    flags = ["--arch", "src_elmo_tiny", "--src-lm", lm_files["src"], "--share-decoder-input-output-embed"]
    commands.ok(*commands.training(out, 2, *flags))
    return out / "checkpoint_last.pt"


def hypotheses(output: str) -> list[str]:
    """Hypotheses and their scores."""
    return [line for line in output.splitlines() if line.startswith("H-")]


@pytest.mark.slow
def test_generation_in_shards_is_generation(commands: Any, trained: Path) -> None:
    """25 sentences in batches of 4: seven batches, of which the shards have four and three."""
    line = [*commands.generation(trained), "--batch-size", 4]
    whole = hypotheses(commands.ok(*line))
    shards = [hypotheses(commands.ok(*line, *DISTRIBUTED, rank)) for rank in (0, 1)]
    assert len(whole) == 25
    assert min(map(len, shards)) > 8
    assert sorted(shards[0] + shards[1]) == sorted(whole)


@pytest.mark.slow
def test_validation_by_two_processes_is_validation(
    commands: Any, run_two: Callable[..., list[Any]], trained: Path
) -> None:
    line = ["fairseq-validate", commands.bitext, "--path", trained, "--task", "translation", "--max-tokens", 500]
    line += ["--user-dir", lmfusion.USER_DIR, "--cpu", "--log-format", "json", "--valid-subset", "valid"]
    one = re.search(r'"valid_nll_loss": "[\d.]+"', commands.ok(*line))
    both = run_two(*line)
    assert [done.status for done in both] == [0, 0], both[0].output[-3000:]
    two = re.search(r'"valid_nll_loss": "[\d.]+"', both[0].output)
    assert one is not None
    assert two is not None
    assert one[0] == two[0]


def torchrun(words: list[object], log: Path) -> subprocess.Popen[bytes]:
    """The documented line."""
    program = Path(sys.executable).with_name("fairseq-train")
    line = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", program, *words[1:]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with log.open("wb") as stream:
        return subprocess.Popen([str(word) for word in line], stdout=stream, stderr=stream, env=environment)


def text_of(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")


def workers(launcher: subprocess.Popen[bytes]) -> list[int]:
    """Processes that a launcher started, in order of their ranks."""
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text(encoding="utf-8")
    training = [int(pid) for pid in children.split() if b"fairseq-train" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return sorted(training)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")
def test_a_killed_worker_ends_the_job_and_the_run_resumes(
    commands: Any, lm_files: dict[str, Path], tmp_path: Path
) -> None:
    """The second process of two is killed while they train; the same line, given again, finishes the run."""
    flags = ["--arch", "tgt_ft_tiny", "--tgt-lm", lm_files["tgt"], *FINE]
    endless = commands.training(tmp_path / "run", 100_000, *flags)
    launcher = torchrun(endless, tmp_path / "first.log")
    saved = tmp_path / "run" / "checkpoint_last.pt"
    while not saved.exists():
        assert launcher.poll() is None, text_of(tmp_path / "first.log")[-3000:]
        time.sleep(0.2)
    ranks = workers(launcher)
    assert len(ranks) == 2
    os.kill(ranks[1], signal.SIGKILL)
    assert launcher.wait(timeout=600) != 0
    assert not [pid for pid in ranks if Path(f"/proc/{pid}").exists()], "a process of the job lives on"
    updates = max(int(number) for number in re.findall(r"@ (\d+) updates", text_of(tmp_path / "first.log")))

    again = commands.training(tmp_path / "run", updates + 4, *flags)
    assert torchrun(again, tmp_path / "second.log").wait() == 0, text_of(tmp_path / "second.log")[-3000:]
    log = text_of(tmp_path / "second.log")
    assert "training on 2 devices" in log
    resumed = re.search(r"Loaded checkpoint \S+ \(epoch \d+ @ (\d+) updates\)", log)
    assert resumed is not None
    assert 2 <= int(resumed[1]) <= updates
    assert f"num_updates: {updates + 4} >= max_update: {updates + 4}" in log
