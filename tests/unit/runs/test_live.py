"""live.py and what it is made of, with small stand-ins for fairseq's commands."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from lmfusion.runs import checkpoints, live, live_line, log_tail, watchers
from lmfusion.runs.run_folder import RunFolder

TRAINED = """
import json, sys
for updates in (10, 20):
    values = {"loss": "4", "ppl": "16", "wps": "50", "num_updates": str(updates), "lr": "1"}
    print(f"now | INFO | train_inner | {json.dumps(values)}")
values = {"valid_loss": "3", "valid_ppl": "8", "valid_num_updates": "20"}
print(f"now | INFO | valid | {json.dumps(values)}")
"""
GENERATED = """
for number in range(3):
    print(f"S-{number}\\tsource")
    print(f"H-{number}\\t-0.1\\tx")
print("now | INFO | Translated 3 sentences (1,234 tokens) in 2.0s (1.50 sentences/s, 617.00 tokens/s)")
"""
FAILED = "print('some news'); raise ValueError('the reason')"


def run_live(run: Path, code: str, *flags: str) -> tuple[int, str]:
    """Run a step in this process; return its status and what it showed."""
    words = [str(run), "train", "--label", "toy", *flags, "--", sys.executable, "-c", code]
    args = live.parse_args(words)
    shown = io.StringIO()
    watcher: watchers.Watcher = watchers.GenerationWatcher("toy", args.sentences)
    if args.updates:
        watcher = watchers.TrainingWatcher("toy", args.updates, args.show_validation)
    status = live.run_step(RunFolder(run), args, watcher, live_line.LiveLine(shown))
    return status, shown.getvalue()


def test_a_training_is_followed_logged_recorded_and_not_done_twice(tmp_path: Path) -> None:
    status, shown = run_live(tmp_path, TRAINED, "--updates", "20", "--show-validation")
    assert status == 0
    assert "toy: update 20, validation perplexity 8.0" in shown
    assert "toy: 20 updates, 50 tokens/s, validation perplexity 8.00 at the lowest loss, 0:0" in shown
    step = json.loads((tmp_path / "run.json").read_text())["steps"]["train"]
    assert step["state"] == "finished"
    assert step["result"]["best_valid_perplexity"] == 8.0
    assert "train_inner" in (tmp_path / "train.log").read_text()
    before = (tmp_path / "train.log").read_bytes()
    status, shown = run_live(tmp_path, TRAINED, "--updates", "20", "--show-validation")
    assert (status, (tmp_path / "train.log").read_bytes()) == (0, before)
    assert "finished before (20 updates" in shown


def test_training_that_stops_early_says_so(tmp_path: Path) -> None:
    """--patience ends a run before its last update; that is no failure."""
    status, shown = run_live(tmp_path, TRAINED, "--updates", "30", "--show-validation")
    assert status == 0
    assert "toy: 20 updates (early stop), 50 tokens/s, validation perplexity 8.00 at the lowest loss, 0:0" in shown


def test_a_generation_is_counted_and_timed(tmp_path: Path) -> None:
    status, shown = run_live(tmp_path, GENERATED, "--sentences", "3")
    assert status == 0
    assert "toy: 3 sentences, 617 tokens/s" in shown
    assert RunFolder(tmp_path).step("train")["result"] == {"sentences": 3, "tokens": 1234, "tokens_per_second": 617.0}


def test_a_failure_shows_the_last_words_and_the_log(tmp_path: Path) -> None:
    status, shown = run_live(tmp_path, FAILED, "--updates", "20")
    assert status == 1
    assert "failed, exit status 1" in shown
    assert "    ValueError: the reason\n" in shown
    assert str(tmp_path / "train.log") in shown
    assert "some news" not in shown
    assert RunFolder(tmp_path).record["state"] == "failed"
    assert "ValueError" in RunFolder(tmp_path).step("train")["reason"]


def test_the_command_ends_when_its_parent_is_killed_and_the_step_goes_on(tmp_path: Path) -> None:
    marker = tmp_path / "alive"
    code = f"import time, pathlib\nwhile True:\n    pathlib.Path({str(marker)!r}).touch()\n    time.sleep(0.05)"
    words = [sys.executable, "-m", "lmfusion.runs.live", str(tmp_path / "run"), "train", "--label", "toy"]
    parent = subprocess.Popen([*words, "--updates", "9", "--", sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    wait_for(marker.exists)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()

    def gone() -> bool:
        marker.unlink(missing_ok=True)
        time.sleep(1)
        return not marker.exists()

    wait_for(gone)
    assert RunFolder(tmp_path / "run").record["state"] == "started"


@pytest.mark.parametrize("starter_lives", [True, False])
def test_a_step_does_nothing_if_its_starter_is_gone_before_it_begins(tmp_path: Path, starter_lives: bool) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    marker = tmp_path / "ran"
    words = [str(tmp_path / "run"), "train", "--label", "toy", "--updates", "9", "--", "touch", str(marker)]
    environment = {**os.environ, live.STARTED_BY: str(os.getpid() if starter_lives else gone.pid)}
    step = subprocess.run([sys.executable, "-m", "lmfusion.runs.live", *words], env=environment, check=False)
    assert marker.exists() == (tmp_path / "run").exists() == starter_lives
    assert (step.returncode == 128 + signal.SIGTERM) != starter_lives


def wait_for(condition: Callable[[], bool], seconds: float = 200) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def test_a_command_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(tmp_path), "train", "--label", "toy", "--updates", "9", "--", "no-such-command"]
    monkeypatch.setattr(sys, "argv", ["live", *words])
    monkeypatch.setattr(live, "end_with_parent", lambda: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert live.main() == 1
    assert "error: no-such-command: no such command. Install it" in capsys.readouterr().err


def test_a_full_disk_is_named() -> None:
    args = live.parse_args(["runs/x", "train", "--label", "toy", "--updates", "9", "--", "command"])
    error = OSError(28, "No space left on device")
    assert live.describe_os_error(error, args).startswith("runs/x: No space left on device. Free some space")


def test_a_command_must_follow_the_dashes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        live.parse_args(["run", "train", "--label", "x", "--updates", "3"])
    assert "no command given after --" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "words"), [(2, "exit status 2"), (-15, "ended by signal 15"), (-9, "killed by the system")]
)
def test_an_exit_status_in_words(status: int, words: str) -> None:
    assert words in live.describe_status(status)


def write_checkpoint(path: Path, content: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", content)


def test_a_last_checkpoint_that_is_missing_comes_from_the_newest_whole_one(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "checkpoint_1_10.pt", "older")
    os.utime(tmp_path / "checkpoint_1_10.pt", (1, 1))
    write_checkpoint(tmp_path / "checkpoint_1_20.pt", "newer")
    write_checkpoint(tmp_path / "checkpoint_best.pt", "best")
    whole = (tmp_path / "checkpoint_1_20.pt").read_bytes()
    (tmp_path / "checkpoint_1_30.pt").write_bytes(whole[:-30])
    assert checkpoints.make_last(tmp_path) == tmp_path / "checkpoint_1_20.pt"
    assert (tmp_path / "checkpoint_last.pt").read_bytes() == whole
    assert checkpoints.make_last(tmp_path) is None


def test_a_last_checkpoint_that_was_cut_short_is_left_to_the_training(tmp_path: Path) -> None:
    """Which falls back to any whole one, the best among them, or says that there is none."""
    write_checkpoint(tmp_path / "checkpoint_1_20.pt", "newer")
    (tmp_path / "checkpoint_last.pt").write_bytes(b"cut")
    assert checkpoints.make_last(tmp_path) is None
    assert (tmp_path / "checkpoint_last.pt").read_bytes() == b"cut"


def test_without_a_whole_checkpoint_training_starts_anew(tmp_path: Path) -> None:
    (tmp_path / "checkpoint_1_20.pt").write_bytes(b"cut")
    assert checkpoints.make_last(tmp_path) is None
    assert not (tmp_path / "checkpoint_last.pt").exists()
    assert checkpoints.make_last(tmp_path / "absent") is None


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("news\nTraceback (most recent call last):\n  File x\n    y\nKeyError: 'z'\n", ["KeyError: 'z'"]),
        ("usage: many flags\nfairseq-train: error: unrecognized arguments: --foo\n", ["fairseq-train: error: unre"]),
        (
            "Traceback (most recent call last):\n  File x\nOldError: old\nnews\nlmfusion: error: new\n",
            ["lmfusion: error: new"],
        ),
        ("a\nb\n\n", ["a", "b"]),
        ("", ["(nothing)"]),
    ],
)
def test_the_last_words_of_a_log(tmp_path: Path, log: str, words: list[str]) -> None:
    (tmp_path / "log").write_text(log)
    lines = log_tail.last_words(tmp_path / "log").splitlines()
    assert len(lines) == len(words)
    assert all(line.strip().startswith(word) for line, word in zip(lines, words))


def test_what_earlier_attempts_said_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("old: error: gone\nnew end\n")
    assert log_tail.last_words(tmp_path / "log", start=17).strip() == "new end"


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (59.6, "1:00"), (754, "12:34"), (3723, "1:02:03")])
def test_the_clock(seconds: float, text: str) -> None:
    assert live_line.clock(seconds) == text


def test_output_is_utf8_whatever_the_locale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "")
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("PYTHONCOERCECLOCALE", "0")
    monkeypatch.setenv("PYTHONUTF8", "0")
    status, _ = run_live(tmp_path, "print('Größe der Würfel')", "--updates", "20")
    assert status == 0
    assert "Größe der Würfel" in (tmp_path / "train.log").read_text(encoding="utf-8")


def test_what_launches_a_command_is_run_and_not_recorded(tmp_path: Path) -> None:
    """It names machines and ports, which differ when a job goes on elsewhere."""
    launched = "import os, sys; print('launched'); os.execvp(sys.argv[1], sys.argv[1:])"
    words = shlex.join([sys.executable, "-u", "-c", launched])
    status, _ = run_live(tmp_path, TRAINED, "--updates", "20", "--launch", words)
    assert status == 0
    assert "launched\n" in (tmp_path / "train.log").read_text()
    step = json.loads((tmp_path / "run.json").read_text())["steps"]["train"]
    assert step["command"] == [sys.executable, "-c", TRAINED]
    status, shown = run_live(tmp_path, TRAINED, "--updates", "20")
    assert status == 0
    assert "finished before" in shown
