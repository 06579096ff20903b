"""A mistake on the command line ends a command of fairseq's in one line, which names what was given."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lmfusion
from lmfusion.checkpoint.locks import lock_folder

BASELINE = ("--arch", "lmfusion_tiny")
SRC_ELMO = ("--arch", "src_elmo_tiny", "--src-lm", "{src}")
STOCK = ("--arch", "transformer", "--encoder-embed-dim", 16, "--encoder-ffn-embed-dim", 16, "--encoder-layers", 1)
STOCK += ("--decoder-embed-dim", 16, "--decoder-ffn-embed-dim", 16, "--decoder-layers", 1)
STOCK += ("--encoder-attention-heads", 2, "--decoder-attention-heads", 2)

IN_TRAINING = {
    "checkpoint that is not there": ((*BASELINE, "--restore-file", "nowhere.pt"), r"--restore-file nowhere\.pt"),
    "folder instead of a checkpoint": ((*BASELINE, "--restore-file", "."), r"--restore-file \. is a folder"),
    "model to fine-tune that is not there": ((*BASELINE, "--finetune-from-model", "no.pt"), r"-model no\.pt"),
    "another kind of model to go on from": ((*SRC_ELMO, "--restore-file", "{stock}"), r"{stock}"),
    "another kind of model to fine-tune": ((*SRC_ELMO, "--finetune-from-model", "{stock}"), r"{stock}"),
    "larger model than the one to fine-tune": (
        (*BASELINE, "--src-fusion", "attend", "--src-lm", "{src}", "--finetune-from-model", "{stock}"),
        r"{stock} does not fit .*: its encoder\.\S+ is \d+ x 16 and not \d+ x 64",
    ),
    "heads that do not divide": ((*BASELINE, "--encoder-attention-heads", 3), r"--encoder-attention-heads 3 .* 64"),
    "no channels": ((*BASELINE, "--decoder-embed-dim", 0), r"--decoder-embed-dim 0"),
    "language without data": ((*BASELINE, "-t", "fr"), r"dict\.fr\.txt.* -t"),
    "validation set without data": ((*BASELINE, "--valid-subset", "valod"), r"valod.*--valid-subset"),
}


@pytest.fixture(scope="session")
def stock(commands: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of fairseq's own transformer."""
    out = tmp_path_factory.mktemp("stock")
    commands.ok(*commands.training(out, 1, *STOCK))
    return out / "checkpoint_last.pt"


@pytest.fixture(scope="session")
def baseline(commands: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of our transformer without a language model."""
    out = tmp_path_factory.mktemp("baseline")
    commands.ok(*commands.training(out, 1, *BASELINE))
    return out / "checkpoint_last.pt"


@pytest.mark.parametrize("case", IN_TRAINING)
def test_training(commands: Any, lm_files: dict[str, Path], stock: Path, tmp_path: Path, case: str) -> None:
    flags, message = IN_TRAINING[case]
    words = [str(flag).format(**lm_files, stock=stock) for flag in flags]
    line = commands.refused(*commands.training(tmp_path / "run", 1, *words))
    assert re.search(message.format(stock=re.escape(str(stock))), line), line
    assert not list((tmp_path / "run").glob("*.pt"))


def test_training_without_data_or_optimizer(commands: Any, tmp_path: Path) -> None:
    words = commands.training(tmp_path / "run", 1, *BASELINE)
    assert "nodata/dict.en.txt" in commands.refused(*commands.training(tmp_path, 1, *BASELINE, data=Path("nodata")))
    place = words.index("--optimizer")
    assert "--optimizer" in commands.refused(*words[:place], *words[place + 2 :])


@pytest.mark.parametrize("arch", ["uni_transformer_lm", "bi_transformer_lm"])
def test_pretraining_without_channels(commands: Any, tmp_path: Path, arch: str) -> None:
    targets = ["--self-target"] if arch.startswith("bi") else []
    words = commands.pretraining("de", tmp_path, 1, "--arch", arch, *targets, "--decoder-embed-dim", 0)
    assert "--decoder-embed-dim 0" in commands.refused(*words)


def test_generation(commands: Any, lm_files: dict[str, Path], baseline: Path) -> None:
    for side in ("src", "tgt"):
        assert "language model" in commands.refused(*commands.generation(lm_files[side]))
    assert "tset" in commands.refused(*commands.generation(baseline, "--gen-subset", "tset"))
    assert "--beam 0" in commands.refused(*commands.generation(baseline, "--beam", 0))


def test_a_folder_that_another_process_trains_into(commands: Any, tmp_path: Path) -> None:
    """Here the test is that process; when it has done the run starts."""
    held = lock_folder(tmp_path)
    line = commands.refused(*commands.training(tmp_path, 1, *BASELINE))
    assert f"--save-dir {tmp_path} " in line
    assert f"process {os.getpid()} on " in line
    assert not list(tmp_path.glob("*.pt"))
    commands.ok(*commands.training(tmp_path, 1, *BASELINE, "--no-save"))  # writes nothing there
    del held
    commands.ok(*commands.training(tmp_path, 1, *BASELINE))
    assert (tmp_path / "checkpoint_last.pt").exists()


def test_data_of_another_bpe(commands: Any, tmp_path: Path) -> None:
    """Every word is unknown; the share of the real data is told on every side."""
    output = commands.ok(*commands.training(tmp_path / "real", 1, *BASELINE))
    shares = re.findall(r"<unk>\) in (\w+), (\w+) \(\w+\): ([\d.]+)%", output)
    assert [share[:2] for share in shares] == [("valid", "en"), ("valid", "de"), ("train", "en"), ("train", "de")]
    assert all(float(share) < 1 for *_, share in shares)
    for lang in ("en", "de"):
        (tmp_path / f"train.{lang}").write_text("@@zzz qqq@@ xxx@@\n" * 9, encoding="utf-8")
    words = ["fairseq-preprocess", "-s", "en", "-t", "de", "--trainpref", tmp_path / "train", "--destdir", tmp_path]
    words += [word for side in ("src", "tgt") for word in (f"--{side}dict", commands.prepared / "dict.txt")]
    commands.ok(*words, "--validpref", tmp_path / "train")
    line = commands.refused(*commands.training(tmp_path / "run", 1, *BASELINE, data=tmp_path))
    assert re.search(r"100\.0% .* valid, en \(source\)", line), line


def test_interrupted_training_says_so_in_one_line(commands: Any, tmp_path: Path) -> None:
    """A shell sees status 130: the process ends by the signal, as a program should that was interrupted."""
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # a shell's background ignores it
    code = f"{heard}; import fairseq_cli.train; fairseq_cli.train.cli_main()"
    words = [sys.executable, "-c", code, *commands.training(tmp_path, 10**6, *BASELINE)[1:], "--log-interval", 1]
    words += ["--num-workers", 1]
    with subprocess.Popen(
        [str(word) for word in words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert any('"num_updates": "2"' in line for line in running.stdout)
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        running.stdout.read()
        errors = running.stderr.read()
    assert running.returncode == -signal.SIGINT
    assert errors.splitlines()[-1] == "lmfusion: interrupted"
    assert "Traceback" not in errors


@pytest.fixture(scope="session")
def short(commands: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cloze language model that takes 40 tokens."""
    out = tmp_path_factory.mktemp("short")
    flags = ["--arch", "bi_transformer_lm", "--self-target", "--tokens-per-sample", 40]
    commands.ok(*commands.pretraining("en", out, 1, *flags, "--skip-invalid-size-inputs-valid-test"))
    return out / "checkpoint_last.pt"


@pytest.mark.slow
def test_sources_longer_than_the_language_model_takes(commands: Any, short: Path, tmp_path: Path) -> None:
    flags = ["--arch", "src_elmo_tiny", "--src-lm", short]
    line = commands.refused(*commands.training(tmp_path / "refused", 1, *flags))
    assert "(40, 1024)" in line
    assert "--truncate-source" in line
    commands.ok(*commands.training(tmp_path / "cut", 1, *flags, "--truncate-source"))
    checkpoint = tmp_path / "cut" / "checkpoint_last.pt"
    assert "(40, 1024)" in commands.refused(*commands.generation(checkpoint))
    whole = (commands.prepared / "bpe" / "test.en").read_text(encoding="utf-8").splitlines()
    output = commands.ok(*commands.generation(checkpoint, "--truncate-source"))
    sources = dict(re.findall(r"^S-(\d+)\t(.*)$", output, re.MULTILINE))
    assert max(len(line.split()) for line in whole) > 39
    assert sources == {str(number): " ".join(line.split()[:39]) for number, line in enumerate(whole)}


@pytest.mark.slow
def test_overlong_lines_of_interactive(commands: Any, short: Path, tmp_path: Path) -> None:
    """Lines 2 and 4 are too long for the language model; cut by hand they give what --truncate-source gives."""
    out = tmp_path / "run"
    commands.ok(*commands.training(out, 2, "--arch", "src_elmo_tiny", "--src-lm", short, "--truncate-source"))
    words = (commands.prepared / "bpe" / "train.en").read_text(encoding="utf-8").split()
    lines = [words[:5], words[:45], words[7:15], words[20:60], words[30:69]]

    def interactive(kept: list[list[str]], *flags: object) -> list[object]:
        (tmp_path / "input").write_text("".join(" ".join(line) + "\n" for line in kept), encoding="utf-8")
        command = ["fairseq-interactive", commands.bitext, "--path", out / "checkpoint_last.pt", "-s", "en", "-t", "de"]
        command += ["--input", tmp_path / "input", "--beam", 2, "--max-len-b", 10, "--cpu"]
        return [*command, "--user-dir", lmfusion.USER_DIR, *flags]

    def translations(output: str) -> dict[str, str]:
        return dict(re.findall(r"^H-(\d+)\t(.*)$", output, re.MULTILINE))

    assert re.search(r"line 2 .* 46 tokens.* 40 ", commands.refused(*interactive(lines)))
    by_hand = translations(commands.ok(*interactive([line[:39] for line in lines])))
    assert sorted(by_hand) == list("01234")
    skip = "--skip-invalid-size-inputs-valid-test"
    for size in (1, 2, 5):
        buffer = ("--buffer-size", size, "--batch-size", size)
        output = commands.ok(*interactive(lines, skip, *buffer))
        assert re.findall(r"line (\d+) of the input has (\d+) tokens", output) == [("2", "46"), ("4", "41")]
        assert translations(output).keys() == {"0", "2", "4"}
        cut = translations(commands.ok(*interactive(lines, "--truncate-source", *buffer)))
        assert [text.split("\t")[1] for text in cut.values()] == [text.split("\t")[1] for text in by_hand.values()]
