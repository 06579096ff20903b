"""A switch with a form for no, in the file of ``lmfusion run``."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion import cli


@pytest.mark.parametrize(("written", "flag"), [("yes", "--significance"), ("no", "--no-significance")])
def test_a_switch_is_written_as_it_is_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], written: str, flag: str
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"report: {{runs: r, out: o, significance: {written}}}\n", encoding="utf-8")
    assert cli.main(["run", str(path), "--dry-run"]) == 0
    assert capsys.readouterr().out.split()[1:] == ["lmfusion", "report", "r", "--out", "o", flag]
