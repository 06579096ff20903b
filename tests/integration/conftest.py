"""What the integration tests share: a slice of the embedded corpus as fairseq trains on it, and the real commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import pytest

import lmfusion

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    status: int
    output: str


Run = Callable[..., Done]


class CommandServer:
    """The process of command_server.py."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("command_server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            text=True,
        )

    def run(self, *commands: Sequence[object]) -> list[Done]:
        """Run command lines side by side; what became of each."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([[str(word) for word in words] for words in commands]) + "\n")
        self.process.stdin.flush()
        return [Done(**json.loads(self.process.stdout.readline())) for _ in commands]

    def close(self) -> None:
        """End the server."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@pytest.fixture(scope="session")
def server() -> Iterator[CommandServer]:
    """The command server of all tests; it lives as long as the session."""
    started = CommandServer()
    yield started
    started.close()


@pytest.fixture(scope="session")
def run_command(server: CommandServer) -> Run:
    """Runs a command line given as words; see command_server.py."""

    def run(*words: object) -> Done:
        return server.run(words)[0]

    return run


@pytest.fixture(scope="session")
def prepared(small_corpus: Path, run_command: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The slice as fairseq trains on it: bitext-400, lm.en, lm.de, spm.model, dict.txt."""
    out = tmp_path_factory.mktemp("prepared")
    words = [ROOT / "data-prep" / "prepare.py", small_corpus, "-s", "en", "-t", "de", "--out", out]
    done = run_command(*words, "--bpe-size", 500, "--max-ratio", 0, "--bitext-lines", 400)
    assert done.status == 0, done.output
    return out


USER = ("--user-dir", lmfusion.USER_DIR, "--cpu")
LM_TASK = ("--task", "language_modeling", "--sample-break-mode", "eos", "--tokens-per-sample", 256)
LM_SIZE = ("--decoder-embed-dim", 16, "--decoder-ffn-embed-dim", 16, "--decoder-layers", 2)
LM_SIZE += ("--decoder-attention-heads", 2, "--share-decoder-input-output-embed")
TRAIN = ("--optimizer", "adam", "--lr", 0.01, "--max-tokens", 2000, "--num-workers", 0, "--seed", 1)
TRAIN += ("--log-format", "json", "--no-epoch-checkpoints")
TRANSLATION = ("-s", "en", "-t", "de", "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1)


@dataclass(frozen=True)
class Commands:
    """The commands a person gives, with the flags all tests share."""

    run: Run
    prepared: Path

    @property
    def bitext(self) -> Path:
        """The binarized slice."""
        return self.prepared / "bitext-400"

    @property
    def text_flags(self) -> list[object]:
        """How raw text becomes the slice's tokens."""
        words = ROOT.joinpath("lmfusion", "text", "tokenizer.flags").read_text(encoding="utf-8").splitlines()
        flags = [word for line in words for word in line.split("#")[0].split()]
        return [*flags, "--sentencepiece-model", self.prepared / "spm.model"]

    def ok(self, *words: object) -> str:
        """A command that succeeds; its output."""
        done = self.run(*words)
        assert done.status == 0, done.output[-3000:]
        return done.output

    def refused(self, *words: object) -> str:
        """A command that ends in one line of ours; that line."""
        done = self.run(*words)
        errors = [line for line in done.output.splitlines() if line.startswith("lmfusion: error: ")]
        assert done.status != 0
        assert len(errors) == 1, done.output[-3000:]
        assert "Traceback" not in done.output
        assert done.output.rstrip().endswith(errors[0])
        return errors[0]

    def training(self, out: Path, updates: int, *flags: object, data: Path | None = None) -> list[object]:
        """fairseq-train of a translation model, up to `updates`; given again with more, it resumes."""
        words = ["fairseq-train", data or self.bitext, "--save-dir", out, "--max-update", updates]
        return [*words, *TRANSLATION, *TRAIN, *USER, *flags]

    def pretraining(self, lang: str, out: Path, updates: int, *flags: object) -> list[object]:
        """fairseq-train of a language model of the slice's text."""
        words = ["fairseq-train", self.prepared / f"lm.{lang}", "--save-dir", out, "--max-update", updates]
        return [*words, *LM_TASK, *LM_SIZE, *TRAIN, *USER, *flags]

    def with_lm(self, command: str, lang: str, checkpoint: Path, *flags: object) -> list[object]:
        """Another of fairseq's commands with a language model, on its validation text."""
        data = self.prepared / f"lm.{lang}"
        return [command, data, "--path", checkpoint, "--gen-subset", "valid", *LM_TASK, *USER, *flags]

    def generation(self, checkpoint: Path | str, *flags: object, data: Path | None = None) -> list[object]:
        """fairseq-generate of the slice's test set."""
        words = ["fairseq-generate", data or self.bitext, "--path", checkpoint, "--gen-subset", "test"]
        return [*words, "-s", "en", "-t", "de", "--beam", 2, "--max-len-b", 10, "--batch-size", 16, *USER, *flags]


@pytest.fixture(scope="session")
def commands(run_command: Run, prepared: Path) -> Commands:
    """Real commands on the slice."""
    return Commands(run_command, prepared)


@pytest.fixture(scope="session")
def lm_files(commands: Commands, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A cloze LM of English ("src") and a causal LM of German ("tgt"), of 16 channels, after two updates."""
    kinds = {"src": ("lm.en", ["--self-target"], "bi_transformer_lm"), "tgt": ("lm.de", [], "uni_transformer_lm")}
    files = {}
    for side, (data, targets, arch) in kinds.items():
        out = tmp_path_factory.mktemp(arch)
        flags = [*LM_TASK, *targets, "--arch", arch, *LM_SIZE, *TRAIN, *USER, "--max-update", 2, "--save-dir", out]
        commands.ok("fairseq-train", commands.prepared / data, *flags)
        files[side] = out / "checkpoint_last.pt"
    return files
