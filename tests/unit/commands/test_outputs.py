"""What commands write: files with a name of their own, not in the place of an input, and text in UTF-8."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lmfusion import InputError
from lmfusion.checkpoint.atomic_files import replacing
from lmfusion.cli import main
from lmfusion.commands import predict
from lmfusion.errors import check_name, describe_os_error
from lmfusion.text import word_vectors
from lmfusion.text.textio import writing


@pytest.mark.parametrize("name", ["", ".", "/", ".."])
def test_a_path_without_a_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="name"), replacing(name):
        pass
    with pytest.raises(InputError, match="name"), writing(Path(name)):
        pass


@pytest.mark.parametrize("name", ["pipe", "link", "/dev/null", "/dev/full", "/dev/stdout"])
def test_a_device_or_a_pipe_stays_what_it_is(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/null")
    path = tmp_path / name
    before = path.lstat()
    for write in (replacing, writing):
        with pytest.raises(InputError, match="device or a pipe"), write(path):
            pass
    with pytest.raises(InputError, match="device or a pipe"):
        word_vectors.save(None, path, binary=True)
    assert path.lstat() == before
    assert {file.name for file in tmp_path.iterdir()} == {"pipe", "link"}


def test_a_folder_of_files_may_lie_on_a_memory_disk() -> None:
    check_name(Path("/dev/shm/model.pt"))


def test_a_file_where_a_folder_is_needed_is_said_to_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.en").write_text("a\n", encoding="utf-8")
    assert main(["train", str(tmp_path / "train.en"), "--out", str(tmp_path / "runs")]) == 2
    assert "is a file" in capsys.readouterr().err
    with pytest.raises(FileExistsError) as raised:
        (tmp_path / "train.en").mkdir()
    assert "is a file" in describe_os_error(raised.value)


def test_predictions_do_not_take_the_place_of_what_is_labelled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text("sentence\tlabel\nfine\t1\n", encoding="utf-8")
    words = ["predict", str(tmp_path / "model.pt"), "--input", str(path), "--output", str(tmp_path / "." / "mine.tsv")]
    assert main(words) == 2
    assert "mine.tsv" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8").startswith("sentence")


RUN = ["checkpoint_best.pt", "checkpoints/checkpoint3.pt", "run.json", "scores.json", "train.log", "test.hyp"]


@pytest.mark.parametrize("name", RUN)
@pytest.mark.parametrize("model", ["run", "run/checkpoint_best.pt", "run/checkpoints/checkpoint3.pt"])
def test_predictions_do_not_take_the_place_of_a_file_of_the_run(
    failing: Callable[..., str], tmp_path: Path, model: str, name: str
) -> None:
    for each in RUN:
        (tmp_path / "run" / each).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / each).write_text("kept", encoding="utf-8")
    (tmp_path / "new.txt").write_text("fine\n", encoding="utf-8")
    output = tmp_path / "run" / name
    assert name in failing("predict", tmp_path / model, "--input", tmp_path / "new.txt", "--output", output)
    assert output.read_text(encoding="utf-8") == "kept"
    assert sorted(path.name for path in output.parent.iterdir() if path.is_file()) == sorted(
        Path(each).name for each in RUN if (tmp_path / "run" / each).parent == output.parent
    )


def test_what_lies_beside_a_checkpoint_alone_is_none_of_a_runs_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As labels that were written there before, under whatever name; the checkpoint is still kept."""
    for name in ("mood.pt", "other.pt", "labels.json", "labels.log"):
        (tmp_path / name).write_text("kept", encoding="utf-8")
    assert {path.name for path in predict.files_of(tmp_path / "mood.pt")} == {"mood.pt", "other.pt"}
    (tmp_path / "run.json").write_text("{}", encoding="utf-8")
    assert {path.name for path in predict.files_of(tmp_path / "mood.pt")} == {path.name for path in tmp_path.iterdir()}
    inner = tmp_path / "checkpoints"
    inner.mkdir()
    monkeypatch.chdir(inner)
    Path("checkpoint_best.pt").touch()
    found = {path.resolve() for path in predict.files_of(Path("checkpoint_best.pt"))}
    assert found == {inner / "checkpoint_best.pt", *(path for path in tmp_path.iterdir() if path.is_file())}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG], ids=errno.errorcode.get)
def test_a_full_disk_is_told_with_the_file_and_to_make_room(
    failing: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    file = str(tmp_path / "out" / "bpe" / "train.en.partial")

    def make(*_: object) -> None:
        raise OSError(number, os.strerror(number), file)

    monkeypatch.setattr("lmfusion.text.own_data.make", make)
    monkeypatch.setattr("lmfusion.cli._discard_output", lambda: None)  # of this process
    said = failing("data", "--pairs", tmp_path / "train.en", tmp_path / "train.fr", "--out", tmp_path / "out")
    assert file in said
    assert "room" in said
    assert "room" not in describe_os_error(OSError(errno.EACCES, os.strerror(errno.EACCES), file))


@pytest.mark.parametrize("words", ["train d --rows x --set A=1 --set B=2 C=3", "score buckets --hyp a=A --hyp b=B"])
def test_an_option_with_several_values_may_be_given_several_times(words: str) -> None:
    from lmfusion.cli import build_parser

    more = ["--out", "o"] if words.startswith("train") else ["--src", "s", "--ref", "r"]
    args = build_parser().parse_args([*words.split(), *more])
    assert (args.set if "--set" in words else args.hyp) == (
        ["A=1", "B=2", "C=3"] if "--set" in words else ["a=A", "b=B"]
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_one_line() -> None:
    command = [sys.executable, "-m", "lmfusion.cli", "user-dir"]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        printed = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert printed.returncode == 2
    assert printed.stderr.startswith("lmfusion: error: the output: No space left on device")
    assert printed.stderr.count("\n") == 1


def test_a_terminal_that_is_not_utf8_gets_question_marks() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "lmfusion.cli", "--help"]
    printed = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert (printed.returncode, printed.stderr) == (0, b"")


def test_what_is_written_to_a_file_is_utf8_whatever_the_terminal_would_show(tmp_path: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code = "from lmfusion import cli; cli.user_dir.run = lambda args: print('enth\\xe4lt'); cli.main(['user-dir'])"
    with (tmp_path / "new.de").open("wb") as output:
        subprocess.run([sys.executable, "-c", code], env=environment, stdout=output, check=True)
    assert (tmp_path / "new.de").read_text(encoding="utf-8") == "enthält\n"
