"""Training that is killed again and again, while it writes checkpoints too, ends with the weights of an unbroken run.

LMFUSION_KILLS=50 makes this the long test; the default is what continuous integration has time for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lmfusion

KILLS = int(os.environ.get("LMFUSION_KILLS", "5"))
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processor time in /proc")
UPDATES = 20  # into the second epoch
HERE = Path(__file__).parent
OFTEN = ("--max-update", UPDATES, "--save-interval-updates", 1, "--keep-interval-updates", 2, "--log-interval", 1)


def kill(out: Path, *words: object) -> dict[str, object]:
    command = [sys.executable, HERE / "kill_training.py", out, KILLS, 1, "--", "fairseq-train", *words, *OFTEN]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    print(result)
    return result


def check(result: dict[str, object]) -> None:
    assert result["unequal"] == []
    assert result["updates"] == UPDATES
    assert result["kills"] == KILLS
    for happened in ("while_writing", "resumed", "complete_runs"):
        assert result[happened] >= 1, happened  # type: ignore[operator]
    assert result["tensors"] > 20  # type: ignore[operator]


@pytest.mark.slow
def test_pretraining(commands: Any, tmp_path: Path) -> None:
    flags = ["--task", "language_modeling", "--self-target", "--sample-break-mode", "eos", "--tokens-per-sample", 256]
    flags += ["--arch", "bi_transformer_lm", "--decoder-embed-dim", 16, "--decoder-ffn-embed-dim", 16]
    flags += ["--decoder-layers", 2, "--decoder-attention-heads", 2, "--share-decoder-input-output-embed"]
    flags += ["--optimizer", "adam", "--lr", 0.01, "--max-tokens", 2000, "--num-workers", 0, "--log-format", "json"]
    flags += ["--no-epoch-checkpoints", "--user-dir", lmfusion.USER_DIR, "--cpu"]
    check(kill(tmp_path, commands.prepared / "lm.en", *flags))


@pytest.mark.slow
def test_seq2seq_training(commands: Any, lm_files: dict[str, Path], tmp_path: Path) -> None:
    """With the frozen LM in a file of its own, dropout, and the counts of --patience."""
    flags = ["--arch", "src_elmo_tiny", "--src-lm", lm_files["src"], "--src-elmo-dropout", 0.2, "--store-lm-once"]
    words = commands.training("SAVE_DIR", UPDATES, *flags, "--patience", 50)
    place = words.index("--save-dir")
    check(kill(tmp_path, *words[1:place], *words[place + 2 :]))
