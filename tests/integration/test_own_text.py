"""A person's own text, in four commands: data, train, translate, pack; and what is packed works alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import torch

import lmfusion
from lmfusion.checkpoint.reading import read_checkpoint

TINY = {
    **dict.fromkeys(("LM_DIM", "LM_FFN", "S2S_DIM", "S2S_FFN"), "8"),
    **dict.fromkeys(("LM_LAYERS", "S2S_LAYERS", "LM_HEADS", "S2S_HEADS", "BEAM"), "2"),
    **dict.fromkeys(("LM_UPDATES", "S2S_UPDATES"), "4"),
}


def run(folder: Path, *words: object, text: str | None = None, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run ``lmfusion`` in a folder."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    command = [sys.executable, "-m", "lmfusion.cli", *map(str, words)]
    done = subprocess.run(command, cwd=folder, env=environment, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def folder(small_corpus: Path, run_command: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a person's files, prepared."""
    folder = tmp_path_factory.mktemp("own")
    for ours, theirs in (("train", "train"), ("mono.train", "plain")):
        for language in ("en", "de"):
            shutil.copy(small_corpus / f"{ours}.{language}", folder / f"{theirs}.{language}")
    pairs = "--pairs train.en train.de --text plain.en plain.de"
    words = ["lmfusion", "data", *pairs.split(), "--held-out", 20, "--bpe-size", 300, "--out", "data"]
    done = run_command(f"PWD={folder}", *words)
    assert done.status == 0, done.output
    return folder


ROWS = ("baseline", "src_elmo", "denoising", "lstm_denoising", "lstm_src_elmo_shdemb", "lstm_back_translation")


@pytest.fixture(scope="module")
def runs(folder: Path) -> Path:
    """Two rows, trained, and then the others."""
    numbers = [f"{name}={value}" for name, value in TINY.items()]
    words = ["train", "data", "--rows", "baseline,src_elmo", "--out", "runs/mine", "--set", *numbers]
    done = run(folder, *words)
    assert "$ fairseq-train data/bitext-all" in done.stdout
    again = run(folder, *words[:3], ",".join(ROWS), *words[4:], "--jobs", 1, "--title", "Mine")
    assert again.stdout.count("finished before") >= 3, "what is finished is not done again"
    changed = run(folder, *words, "S2S_LR=0.1", status=2)
    assert "S2S_LR" in changed.stderr
    return folder / "runs" / "mine"


def test_the_data_are_split_and_described(folder: Path) -> None:
    lines = {
        name: (folder / "data" / "text" / name).read_text(encoding="utf-8").splitlines()
        for name in ("train.en", "valid.en", "test.en", "train.de", "valid.de", "test.de")
    }
    given = list(zip(*((folder / f"train.{side}").read_text(encoding="utf-8").splitlines() for side in ("en", "de"))))
    normal = {tuple(" ".join(side.split()) for side in pair) for pair in given}
    made = {split: list(zip(lines[f"{split}.en"], lines[f"{split}.de"])) for split in ("train", "valid", "test")}
    assert len(made["valid"]) == len(made["test"]) == 20
    assert {pair for pairs in made.values() for pair in pairs} <= normal
    assert not set(lines["train.en"]) & {*lines["valid.en"], *lines["test.en"]}


def test_the_same_files_are_not_prepared_again_and_others_are_refused(folder: Path) -> None:
    words = ["data", "--pairs", "train.en", "train.de", "--text", "plain.en", "plain.de", "--out", "data"]
    assert "learning" not in run(folder, *words, "--held-out", 20, "--bpe-size", 300).stdout
    assert "held_out" in run(folder, *words, "--held-out", 21, "--bpe-size", 300, status=2).stderr


@pytest.mark.slow
def test_rows_end_in_scores_and_a_report(runs: Path) -> None:
    for row in ROWS:
        assert (runs / row / "scores.json").is_file()
    assert (runs / "report" / "report.html").stat().st_size > 10_000


def listen_to_ctrl_c() -> None:
    """Undo what a shell does to a job in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
def test_training_that_is_interrupted_or_killed_goes_on_to_the_same_models(runs: Path, folder: Path) -> None:
    """Ctrl-C in the first training of a row, then a sudden end in the next, then to the end."""
    numbers = [f"{name}={value}" for name, value in TINY.items()]
    words = ["train", "data", "--rows", "baseline,src_elmo", "--out", "runs/again", "--set", *numbers]
    for number, (signal_sent, awaited) in enumerate(((signal.SIGINT, "baseline: "), (signal.SIGKILL, "src_elmo: "))):
        command = [sys.executable, "-m", "lmfusion.cli", *words]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        pipes["env"] = {**os.environ, "OMP_NUM_THREADS": "1"}  # as run() has it: with more, sums round otherwise
        with subprocess.Popen(
            command, cwd=folder, start_new_session=True, preexec_fn=listen_to_ctrl_c, **pipes
        ) as process:
            assert process.stdout is not None
            seen = list(takewhile(lambda line, awaited=awaited: awaited not in line, process.stdout))
            os.killpg(process.pid, signal_sent)
            rest = process.stdout.read()
        assert process.returncode != 0, [*seen, rest]
        assert not (folder / "runs" / "again" / "src_elmo" / "scores.json").exists(), number
        assert "Traceback" not in rest
    run(folder, *words)
    for row in ("baseline", "src_elmo"):
        assert_same_weights(runs / row, folder / "runs" / "again" / row)


def assert_same_weights(*trained: Path) -> None:
    """Compare the best checkpoints of two runs."""
    first, second = (read_checkpoint(run / "checkpoints" / "checkpoint_best.pt")["model"] for run in trained)
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name


@pytest.mark.slow
def test_a_language_model_of_the_text_is_given_by_the_folder_of_its_run(runs: Path, folder: Path) -> None:
    lm = lmfusion.load_lm(runs / "lm.en")
    assert {state.size(-1) for state in lm.layer_states(lm.encode("A library."))} == {lm.state_dim}
    numbers = [f"{name}={value}" for name, value in TINY.items()]
    words = ["--rows", "src_elmo", "--src-lm", "runs/mine/lm.en", "--out", "runs/given", "--set", *numbers]
    run(folder, "train", "data", *words)
    assert_same_weights(runs / "src_elmo", folder / "runs" / "given" / "src_elmo")


@pytest.mark.slow
@pytest.mark.parametrize(("row", "arch"), [("src_elmo", "src_elmo_tiny"), ("lstm_src_elmo_shdemb", "lstm_lmfusion")])
def test_what_is_packed_translates_where_nothing_else_is(
    runs: Path, folder: Path, tmp_path: Path, row: str, arch: str
) -> None:
    sentences = (folder / "data" / "text" / "test.en").read_text(encoding="utf-8").splitlines()[:7]
    (folder / "new.en").write_text("\n".join([*sentences[:3], "", *sentences[3:]]) + "\n", encoding="utf-8")
    here = run(folder, "translate", f"runs/mine/{row}", "new.en", "--beam", 2).stdout
    assert len(here.splitlines()) == 8
    assert here.splitlines()[3] == ""

    run(folder, "pack", f"runs/mine/{row}", "--out", tmp_path / "m.lmf", "--full", "--licence", "CC0")
    away = tmp_path / "elsewhere"
    away.mkdir()
    shutil.move(tmp_path / "m.lmf", away)
    os.rename(folder / "data", folder / "gone")
    try:
        piped = (folder / "new.en").read_text(encoding="utf-8")
        assert run(away, "translate", "m.lmf", "--beam", 2, text=piped).stdout == here
        model = lmfusion.load_model(away / "m.lmf")
        assert model.translate(["", *sentences[:3]], beam=2) == ["", *here.splitlines()[:3]]
        assert arch in run(away, "inspect", "m.lmf").stdout
    finally:
        os.rename(folder / "gone", folder / "data")


@pytest.mark.slow
def test_text_comes_back_as_it_was_written(runs: Path) -> None:
    """Moses would put blanks into all of these: ``C + +``, ``XML:: Parser``, ``and / or``."""
    lm = lmfusion.load_lm(runs / "lm.en" / "checkpoints" / "checkpoint_best.pt")
    for line in ("C++ and XML::Parser", "and/or single,double", "a-b (f) - g"):
        assert lm.decode(lm.encode(line)) == line


@pytest.mark.slow
def test_exported_checkpoints_translate(runs: Path, tmp_path: Path) -> None:
    best = runs / "baseline" / "checkpoints" / "checkpoint_best.pt"
    run(tmp_path, "export", best, "--out", "exported.pt")
    texts = ["A library.", "A longer sentence about a program."]
    assert lmfusion.load_model(tmp_path / "exported.pt").translate(texts) == lmfusion.load_model(best).translate(texts)


@pytest.mark.slow
def test_translate_prints_scores_and_several_hypotheses(runs: Path) -> None:
    done = run(runs, "translate", "baseline", "--beam", 3, "--nbest", 2, text="A library.\n\nA program.\n")
    cells = [line.split("\t") for line in done.stdout.splitlines()]
    assert [cell[0] for cell in cells] == ["1", "1", "2", "3", "3"]
    assert float(cells[0][1]) >= float(cells[1][1])
    assert "--nbest" in run(runs, "translate", "baseline", "--nbest", 9, text="A.\n", status=2).stderr
    assert run(runs, "translate", "baseline", "--beems", 3, status=2).stderr
    assert "nowhere" in run(runs, "translate", "nowhere", text="A.\n", status=2).stderr


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--rows nonsense", "nonsense"),
        ("--rows baseline --set S2S_UPDATE=3", "S2S_UPDATE"),
        ("--rows src_elmo --src-lm nowhere.pt", "nowhere.pt"),
        ("--rows baseline --minutes -1", "--minutes"),
        ("--rows ,", "--rows"),
        ("--rows baseline --set S2S_UPDATES=1.5", "S2S_UPDATES=1.5"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_is(
    folder: Path, failing: Any, monkeypatch: pytest.MonkeyPatch, words: str, named: str
) -> None:
    monkeypatch.chdir(folder)
    assert named in failing("train", "data", *words.split(), "--out", "runs/refused")
    assert not (folder / "runs" / "refused").exists()


def test_runs_do_not_go_into_the_folder_of_the_text(
    folder: Path, failing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert "--out" in failing("train", "data", "--rows", "baseline", "--out", "runs/../data")
    assert not (folder / "data" / "plan.json").exists()
