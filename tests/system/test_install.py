"""`pip install .`, not editable, gives a complete package, the command, a folder for --user-dir, and the recipes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = {"recipes": "recipes", "data-prep": "data_prep", "docs/own_parts": "own_parts"}
"""Folders of the clone, and what they are called in the package."""


def run(site: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command that finds the installed copy before the clone."""
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(command, cwd=site, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with lmfusion installed from a copy of the clone, without its dependencies."""
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for folder in ("lmfusion", *SCRIPTS):
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__", "*.xz", "results"))
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    result = subprocess.run([*pip, "--target", site, source], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return site


def test_every_file_is_installed(site: Path) -> None:
    installed = files(site / "lmfusion")
    scripts = {path for path in installed if path.parts[0] in SCRIPTS.values()}
    assert installed - scripts == files(ROOT / "lmfusion")
    assert len(installed) > 25


def files(root: Path) -> set[Path]:
    """Files under a folder, by their names in it."""
    return {path.relative_to(root) for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc"}


@pytest.fixture(scope="module")
def written(site: Path) -> Path:
    """The folder that ``lmfusion recipes`` of the installed copy wrote."""
    out = site / "written"
    done = run(site, site / "bin" / "lmfusion", "recipes", "--out", out)
    assert done.returncode == 0, done.stderr
    return out


def test_installed_recipes_are_those_of_the_clone(written: Path) -> None:
    for folder in SCRIPTS:
        scripts = {path for path in files(ROOT / folder) if path.suffix in (".sh", ".py", ".smk", ".tsv", ".sbatch")}
        wanted = {path for path in scripts if "results" not in path.parts}
        found = {path for path in files(written / folder) if path.suffix != ".md"}
        assert found == wanted
        assert all((written / folder / name).read_bytes() == (ROOT / folder / name).read_bytes() for name in wanted)


def test_recipes_are_not_written_over_others(site: Path, written: Path) -> None:
    mine = written / "recipes" / "mine.sh"
    mine.write_text("mine")
    done = run(site, site / "bin" / "lmfusion", "recipes", "--out", written)
    assert done.returncode == 2
    assert str(written) in done.stderr
    assert mine.read_text() == "mine"
    mine.unlink()


def test_recipes_run_with_the_installed_copy_and_no_setup(site: Path, written: Path) -> None:
    path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(site)}
    own = {"env": {**os.environ, **path}, "cwd": site, "capture_output": True, "text": True, "check": False}
    train = subprocess.run(["bash", written / "recipes/wmt18_ende/baseline.sh", "--dry-run", "--gpus", "8"], **own)
    assert train.returncode == 0, train.stderr
    assert f"--user-dir {site / 'lmfusion'} " in train.stdout
    prepare = subprocess.run(["bash", written / "data-prep/wmt18_ende.sh", "--out", site / "data", "--dry-run"], **own)
    assert prepare.returncode == 0, prepare.stderr
    assert "wmt18_ende/text.bitext" in prepare.stdout


def test_recipes_that_need_the_repository_say_so(site: Path, written: Path) -> None:
    path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(site)}
    environment = {**os.environ, **path, "OUT": str(site / "runs")}
    for script in ("debian_ende/baseline", "quickstart"):
        row = subprocess.run(
            ["bash", written / "recipes" / f"{script}.sh"],
            env=environment,
            cwd=site,
            capture_output=True,
            text=True,
            check=False,
        )
        assert row.returncode != 0
        assert "pretrained" in row.stderr.splitlines()[-1]


def test_the_example_of_run_is_installed(site: Path) -> None:
    command = site / "bin" / "lmfusion"
    example = run(site, command, "run", "--example")
    (site / "mine.yaml").write_text(example.stdout, encoding="utf-8")
    shown = run(site, command, "run", "--dry-run", "mine.yaml")
    assert (shown.returncode, shown.stderr) == (0, "")
    rows = ",".join(yaml.safe_load(example.stdout)["train"]["rows"])
    assert f"lmfusion train data --rows {rows} " in shown.stdout


def test_user_dir_is_the_installed_copy_and_brings_the_models(site: Path) -> None:
    user_dir = run(site, site / "bin" / "lmfusion", "user-dir").stdout.strip()
    assert Path(user_dir) == site / "lmfusion"

    train = Path(sys.executable).with_name("fairseq-train")
    refused = run(site, train, site, "--user-dir", user_dir, "--arch", "nonsense")
    assert refused.returncode == 2
    for name in ("bi_transformer_lm_big", "uni_transformer_lm_big", "transformer_lmfusion", "src_elmo_wmt_en_de_big"):
        assert f"'{name}'" in refused.stderr or f" {name}" in refused.stderr
