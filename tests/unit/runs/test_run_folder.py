"""run_folder.py: finished steps are skipped, killed ones go on, nothing is overwritten."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from lmfusion.errors import InputError
from lmfusion.runs import run_folder
from lmfusion.runs.run_folder import RunFolder

COMMAND = ["fairseq-train", "data", "--lr", "0.1"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "train.bin").write_bytes(b"binarized")
    (folder / "dict.txt").write_bytes(b"word 1")
    (folder / "preprocess.log").write_text("not data")
    return folder


def test_the_record_says_what_was_run_and_on_what(tmp_path: Path, data: Path) -> None:
    run = RunFolder(tmp_path / "run")
    assert run.record == {}
    run.path.mkdir()
    assert run.begin("train", COMMAND, seed=3, data=data)
    record = run.record
    assert record["state"] == "started"
    assert record["seed"] == 3
    assert set(record["versions"]) >= {"python", "torch", "sacrebleu"}
    assert record["machine"]["cores"] >= 1
    step = record["steps"]["train"]
    assert step["command"] == COMMAND
    assert step["data_sha256"] == {
        name: hashlib.sha256(content).hexdigest()
        for name, content in {"train.bin": b"binarized", "dict.txt": b"word 1"}.items()
    }


def test_a_step_is_begun_again_until_it_is_finished(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    assert run.begin("train", COMMAND)
    run.add_seconds("train", 2.5)
    run.fail("train", "out of memory")
    assert run.record["state"] == "failed"
    assert run.begin("train", COMMAND)
    assert run.record["state"] == "started"
    run.add_seconds("train", 1.5)
    run.finish("train", {"updates": 7})
    assert not run.begin("train", COMMAND)
    step = run.step("train")
    assert (step["seconds"], step["attempts"], step["result"]) == (4.0, 2, {"updates": 7})
    assert run.record["state"] == "finished"


def test_steps_beside_each_other_keep_when_they_began_and_the_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ["2030-01-01T00:00:00Z"]
    monkeypatch.setattr(run_folder, "now", lambda: clock[0])
    run = RunFolder(tmp_path)
    run.begin("train", COMMAND, seed=3)
    clock[0] = "2030-01-02T00:00:00Z"
    run.begin("train", COMMAND, seed=3)
    run.fail("train", "out of memory")
    run.begin("test", ["fairseq-generate", "bin"])
    assert [run.step(name)["started_at"] for name in ("train", "test")] == [
        "2030-01-01T00:00:00Z",
        "2030-01-02T00:00:00Z",
    ]
    assert run.record["seed"] == 3, "a step without a seed takes no other step's away"
    assert run.record["state"] == "failed", "whatever runs beside it"


@pytest.mark.parametrize("changed", ["train.bin", "dict.txt"])
def test_another_command_or_other_data_in_the_same_folder_is_refused(tmp_path: Path, data: Path, changed: str) -> None:
    run = RunFolder(tmp_path)
    run.begin("train", COMMAND, data=data)
    with pytest.raises(InputError, match=r"begun with other flags \(0\.1 then, 0\.2 now\).*--out"):
        run.begin("train", [*COMMAND[:-1], "0.2"], data=data)
    (data / changed).write_bytes(b"changed")
    with pytest.raises(InputError, match="begun on other data"):
        run.begin("train", COMMAND, data=data)
    assert run.step("train")["attempts"] == 1


def test_data_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="absent: no such folder of binarized data"):
        RunFolder(tmp_path).begin("train", COMMAND, data=tmp_path / "absent")
    with pytest.raises(InputError, match="no binarized data in it"):
        RunFolder(tmp_path).begin("train", COMMAND, data=tmp_path)


def test_two_processes_cannot_work_in_one_folder(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.lock()
    other = (
        "from pathlib import Path; from lmfusion.runs.run_folder import RunFolder; import sys\n"
        "RunFolder(Path(sys.argv[1])).lock()"
    )
    done = subprocess.run([sys.executable, "-c", other, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "is still at work in this run folder" in done.stderr


def test_scores_of_several_data_sets_lie_side_by_side(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.add_score("test", {"bleu": 20.0})
    run.add_score("valid", {"bleu": 21.0})
    assert json.loads((tmp_path / "scores.json").read_text()) == {"test": {"bleu": 20.0}, "valid": {"bleu": 21.0}}


@pytest.mark.parametrize("content", ["{broken", "[1, 2]"])
def test_a_spoiled_record_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(InputError, match=r"run\.json"):
        _ = RunFolder(tmp_path).record


def test_how_a_command_was_started_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads, processes and precision change the last digits of every figure."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("HOSTNAME", "node17")
    run = RunFolder(tmp_path)
    run.begin("train", ["torchrun", "--nproc_per_node=2", "fairseq-train", "bin", "--bf16", "--seed", "7"], seed=7)
    started = run.step("train")["launch"]
    assert started["processes"] == {"nproc_per_node": "2"}
    assert started["precision"] == ["bf16"]
    assert started["environment"]["OMP_NUM_THREADS"] == "3"
    assert "node17" not in str(run.record)
    run.begin("launched", ["fairseq-train", "bin"], launch=["torchrun", "--nproc-per-node", "8", "--rdzv", "node17"])
    assert run.step("launched")["launch"]["processes"] == {"nproc-per-node": "8"}
    assert "node17" not in str(run.record)
    run.begin("test", ["fairseq-generate", "bin"])
    assert run.step("test")["launch"]["precision"] == ["fp32"]
