"""What the integration tests share: a slice of the embedded corpus, and the real commands."""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Callable

import pytest

ROOT = Path(__file__).parents[2]
EMBEDDED = Path(os.environ.get("LMFUSION_CORPUS", ROOT / "data-prep" / "debian" / "en-de"))
# Test and valid are no multiples of 8: fairseq leaves out the rest if one lets it.
SLICE = {"train": 400, "valid": 25, "test": 25, "mono.train": 600, "mono.valid": 30}
SYNOPSES = {f"synopsis.{split}": SLICE[split] for split in ("train", "valid", "test")}


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    status: int
    output: str


Run = Callable[..., Done]


def open_text(name: str):
    """A file of the embedded corpus, which is compressed."""
    path = EMBEDDED / f"{name}.xz"
    return lzma.open(path, "rt", encoding="utf-8") if path.exists() else (EMBEDDED / name).open(encoding="utf-8")


@pytest.fixture(scope="session")
def small_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first lines of every file of the embedded en-de corpus (or of the one that LMFUSION_CORPUS names)."""
    folder = tmp_path_factory.mktemp("corpus")
    for sizes, sides in ((SLICE, ("en", "de")), (SYNOPSES, ("description", "synopsis"))):
        for split, size in sizes.items():
            for side in sides:
                with open_text(f"{split}.{side}") as stream:
                    lines = list(islice(stream, size))
                (folder / f"{split}.{side}").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def prepared(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The slice as fairseq trains on it: bitext-400, lm.en, lm.de, spm.model, dict.txt."""
    out = tmp_path_factory.mktemp("prepared")
    command = [sys.executable, ROOT / "data-prep" / "prepare.py", small_corpus, "-s", "en", "-t", "de", "--out", out]
    command += ["--bpe-size", "500", "--max-ratio", "0", "--bitext-lines", "400"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="session")
def run_command() -> Iterator[Run]:
    """Runs a command line given as words; see command_server.py."""
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("command_server.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None

    def run(*words: object) -> Done:
        server.stdin.write(json.dumps([str(word) for word in words]) + "\n")
        server.stdin.flush()
        return Done(**json.loads(server.stdout.readline()))

    yield run
    server.stdin.close()
    server.wait()
