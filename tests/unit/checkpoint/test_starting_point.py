"""Which checkpoint a run starts from."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lmfusion.checkpoint.starting_point import starts_from


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "run/checkpoint_last.pt"),
        ({"finetune_from_model": "other.pt"}, "run/checkpoint_last.pt"),  # started again
        ({"save_dir": "new"}, None),
        ({"save_dir": "new", "finetune_from_model": "other.pt"}, "other.pt"),
        ({"save_dir": "new", "continue_once": "other.pt"}, "other.pt"),
        ({"save_dir": "new", "finetune_from_model": "absent.pt"}, None),
        ({"restore_file": "other.pt"}, "other.pt"),  # of the working directory
        ({"restore_file": "checkpoint_best.pt"}, None),  # which is only in --save-dir
    ],
)
def test_where_a_run_starts_is_what_fairseq_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Any, expected: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run").mkdir()
    for name in ("other.pt", "run/checkpoint_last.pt", "run/checkpoint_best.pt"):
        Path(name).touch()
    defaults = {"restore_file": "checkpoint_last.pt", "save_dir": "run", "finetune_from_model": None}
    path = starts_from(SimpleNamespace(**{**defaults, "continue_once": None, **options}))
    assert (None if path is None else str(path)) == expected
