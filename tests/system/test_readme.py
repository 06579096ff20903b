"""Command lines of docs/, run as they are written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lmfusion.checkpoint.reading import read_checkpoint

ROOT = Path(__file__).parents[2]
README_LINE = re.compile(r"^fairseq-hydra-train (?:.*\\\n)*.*$", re.MULTILINE)


@pytest.mark.slow
def test_fairseq_hydra_train_runs_as_written(small_corpus: Path, tmp_path: Path) -> None:
    line = README_LINE.findall((ROOT / "docs" / "use.md").read_text(encoding="utf-8"))
    assert len(line) == 1
    shipped = ROOT / "pretrained"
    (tmp_path / "pretrained").symlink_to(shipped)
    prepare = [sys.executable, ROOT / "data-prep" / "prepare.py", small_corpus, "-s", "en", "-t", "de"]
    prepare += ["--out", tmp_path / "runs" / "quickstart" / "data", "--spm", shipped / "spm.model"]
    prepare += ["--dict", shipped / "dict.txt", "--bitext-lines", "400", "--max-ratio", "0"]
    subprocess.run([str(word) for word in prepare], check=True, capture_output=True)
    data = tmp_path / "runs" / "quickstart" / "data"
    (data / "bitext-400").rename(data / "bitext-10000")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", "-c", f"{line[0]} optimization.max_update=1"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    model = read_checkpoint(tmp_path / "runs" / "hydra" / "checkpoint_last.pt")["cfg"]["model"]
    assert (model["encoder_embed_dim"], model["src_elmo_dropout"]) == (64, 0.2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pretrained", "runs"]
