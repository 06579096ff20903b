"""What a result depends on: the commit, and whether files differ from it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lmfusion.runs import provenance


def git(folder: Path, *words: str) -> str:
    own = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *own, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_changed_files_are_told_beside_the_commit_and_new_ones_are_not(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "code.py").write_text("1\n", encoding="utf-8")
    git(tmp_path, "add", "code.py")
    git(tmp_path, "commit", "-qm", "x")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "new.py").write_text("1\n", encoding="utf-8")
    assert provenance.git_commit(tmp_path) == commit
    (tmp_path / "code.py").write_text("2\n", encoding="utf-8")
    assert provenance.git_commit(tmp_path) == f"{commit}+changes"


def test_outside_a_repository_there_is_no_commit(tmp_path: Path) -> None:
    assert provenance.git_commit(tmp_path) is None
