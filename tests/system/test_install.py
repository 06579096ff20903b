"""`pip install .`, not editable, gives a complete package, the command and a folder for --user-dir."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(site: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command that finds the installed copy before the clone."""
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(command, cwd=site, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with lmfusion installed from a copy of the clone, without its dependencies."""
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "lmfusion", source / "lmfusion", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    result = subprocess.run([*pip, "--target", site, source], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return site


def test_every_file_is_installed(site: Path) -> None:
    def files(root: Path) -> set[Path]:
        return {path.relative_to(root) for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc"}

    assert files(site / "lmfusion") == files(ROOT / "lmfusion")
    assert len(files(site / "lmfusion")) > 25


def test_user_dir_is_the_installed_copy_and_brings_the_models(site: Path) -> None:
    user_dir = run(site, site / "bin" / "lmfusion", "user-dir").stdout.strip()
    assert Path(user_dir) == site / "lmfusion"

    train = Path(sys.executable).with_name("fairseq-train")
    refused = run(site, train, site, "--user-dir", user_dir, "--arch", "nonsense")
    assert refused.returncode == 2
    for name in ("bi_transformer_lm_big", "uni_transformer_lm_big", "transformer_lmfusion", "src_elmo_wmt_en_de_big"):
        assert f"'{name}'" in refused.stderr or f" {name}" in refused.stderr
