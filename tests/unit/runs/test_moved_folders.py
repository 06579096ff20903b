"""run_folder.py: what was moved is the same run on the same text; what was changed is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmfusion.errors import InputError
from lmfusion.runs.run_folder import RunFolder


def begin(text: Path, runs: Path, lm: str = "weights", dropout: str = "0.1") -> bool:
    """Begin a step as a command does that finds text, runs and a language model in these folders."""
    for path, content in ((text / "bitext/train.bin", "ids"), (text / "spm.model", "BPE"), (runs / "lm.pt", lm)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    files = ["--bpe", "lmfusion", "--src-bpe", f"sentencepiece:{text / 'spm.model'}", "--src-lm", f"{runs / 'lm.pt'}"]
    own = ["--src-lm-cache", f"{runs / 'states'}", "--save-dir", f"{runs / 'row/checkpoints'}"]
    command = ["fairseq-train", f"{text / 'bitext'}", *files, *own, "--dropout", dropout]
    (runs / "row").mkdir(exist_ok=True)
    return RunFolder(runs / "row").begin("train", command, data=text / "bitext")


def test_text_and_runs_that_were_moved_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert begin(tmp_path / "text", tmp_path / "runs")
    (tmp_path / "text").rename(tmp_path / "corpus")
    (tmp_path / "runs").rename(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    assert begin(Path("corpus"), Path("mine")), "by names from here, too"
    run = RunFolder(tmp_path / "mine" / "row")
    assert run.step("train")["attempts"] == 2
    run.finish("train", {"updates": 7})
    (tmp_path / "mine").rename(tmp_path / "yours")
    assert not begin(tmp_path / "corpus", tmp_path / "yours"), "finished is finished wherever it lies"


def test_what_was_changed_as_it_was_moved_is_refused(tmp_path: Path) -> None:
    begin(tmp_path / "text", tmp_path / "runs")
    (tmp_path / "runs").rename(tmp_path / "mine")
    with pytest.raises(InputError, match=r"other flags \(0\.1 then, 0\.2 now\)"):
        begin(tmp_path / "text", tmp_path / "mine", dropout="0.2")
    with pytest.raises(InputError, match=r"runs/lm\.pt then, \S*mine/lm\.pt now"):
        begin(tmp_path / "text", tmp_path / "mine", lm="other")
    assert RunFolder(tmp_path / "mine" / "row").step("train")["attempts"] == 1


def test_a_record_that_does_not_say_what_its_files_were_asks_for_them_where_they_lay(tmp_path: Path) -> None:
    begin(tmp_path / "text", tmp_path / "runs")
    record = tmp_path / "runs" / "row" / "run.json"
    content = json.loads(record.read_text(encoding="utf-8"))
    del content["steps"]["train"]["places"]
    record.write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "text").rename(tmp_path / "corpus")
    with pytest.raises(InputError, match="link"):
        begin(tmp_path / "corpus", tmp_path / "runs")
    (tmp_path / "text").symlink_to(tmp_path / "corpus")
    assert begin(tmp_path / "text", tmp_path / "runs")


def test_a_clone_that_was_moved_goes_on_with_its_runs(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    assert run.begin("train", ["fairseq-train", "data", "--user-dir", "/old/clone/lmfusion", "--seed", "1"])
    assert run.begin("train", ["fairseq-train", "data", "--user-dir", "/new/clone/lmfusion", "--seed", "1"])
    with pytest.raises(InputError, match="with other flags"):
        run.begin("train", ["fairseq-train", "data", "--user-dir", "/new/clone/lmfusion", "--seed", "2"])
