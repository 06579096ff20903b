"""docs/own_parts, a user's own family and integration, through the real commands with no other file changed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
OWN = ROOT / "docs" / "own_parts"
TRAIN = ("--optimizer", "adam", "--lr", "0.01", "--max-tokens", "2000", "--num-workers", "0", "--log-format", "json")


@pytest.fixture
def words_file(commands: Any, tmp_path: Path) -> Path:
    """Every other symbol of the target's dictionary: the family looks symbols up, and knows no more."""
    lines = (commands.bitext / "dict.de.txt").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "german.words"
    path.write_text("\n".join(line.split()[0] for line in lines[::2]), encoding="utf-8")
    return path


def test_own_family_and_integration_train_resume_generate_and_are_shown(
    commands: Any, lm_files: dict[str, Path], words_file: Path, tmp_path: Path
) -> None:
    """The family on the target side under `elmo`, the cloze LM on the source side under `mean`."""

    def ran(*words: object, status: int = 0) -> str:
        """A command in a process for which the user's folder is the first that it hears of lmfusion."""
        done = commands.run(*words)
        assert done.status == status, done.output[-3000:]
        return str(done.output)

    out = tmp_path / "run"
    words = [commands.bitext, "-s", "en", "-t", "de", "--user-dir", OWN, "--cpu"]
    model = ["--arch", "lmfusion_tiny", "--src-fusion", "mean", "--src-lm", lm_files["src"], "--src-mean-scale", "0.5"]
    model += ["--tgt-fusion", "elmo", "--tgt-lm", words_file, "--criterion", "label_smoothed_cross_entropy"]
    train = ["fairseq-train", *words, *TRAIN, *model, "--save-dir", out, "--no-epoch-checkpoints"]
    assert "of the dictionary's symbols" in ran(*train, "--max-update", 2)
    planned = ["--max-tokens", 2000, "--max-update", 2, "--user-dir", OWN, *model]
    assert "of them trained" in ran("lmfusion", "plan", "--data", commands.bitext, "--", *planned)
    words_file.unlink()  # a checkpoint is complete in itself
    assert "@ 4 updates" in ran(*train, "--max-update", 4)
    made = ran(
        *("fairseq-generate", *words, "--path", out / "checkpoint_last.pt", "--gen-subset", "test"),
        *("--beam", 2, "--max-len-b", 10, "--batch-size", 16),
    )
    assert len([line for line in made.splitlines() if line.startswith("H-")]) == 25
    shown = ran("lmfusion", "inspect", out / "checkpoint_last.pt", "--json")
    found, _ = json.JSONDecoder().raw_decode(shown)  # what is logged stands behind it
    assert [lm["fusion"] for lm in found["language_models"]] == ["mean", "elmo"]
    assert found["mixes"] == [{"side": "target", "gamma": pytest.approx(1.0, abs=0.1), "shares": {"vectors": 1.0}}]

    where = ["--data", commands.bitext, "--spm", commands.prepared / "spm.model"]
    packed = tmp_path / "own.lmf"
    said = ran("lmfusion", "pack", out / "checkpoint_last.pt", "--out", packed, *where, "--user-dir", OWN)
    card = ran("lmfusion", "inspect", packed, "--card", "--user-dir", OWN)
    assert all(name in text for text in (said, card) for name in ("--user-dir", "mean", "random_vectors"))
    text = tmp_path / "new.en"
    text.write_text("A sentence .\n\n", encoding="utf-8")
    assert ran("lmfusion", "translate", packed, text, "--user-dir", OWN).count("\n") >= 2
    assert re.search("mean is not registered.*--user-dir", ran("lmfusion", "translate", packed, text, status=2))


def test_the_page_shows_the_files_as_they_are() -> None:
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    for file in sorted(OWN.glob("*.py")):
        assert file.read_text(encoding="utf-8").strip() in page, file.name
