"""Which checkpoint a run starts from."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lmfusion.checkpoint.starting_point import finetunes_from, starts_from
from lmfusion.errors import UserError


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "run/checkpoint_last.pt"),
        ({"finetune_from_model": "other.pt"}, "run/checkpoint_last.pt"),  # started again
        ({"save_dir": "new"}, None),
        ({"save_dir": "new", "finetune_from_model": "other.pt"}, "other.pt"),
        ({"save_dir": "new", "continue_once": "other.pt"}, "other.pt"),
        ({"restore_file": "other.pt"}, "other.pt"),  # of the working directory
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
    settings = SimpleNamespace(**{**defaults, "continue_once": None, **options})
    path = starts_from(settings)
    assert (None if path is None else str(path)) == expected
    is_new = "finetune_from_model" in options and expected == "other.pt"
    assert finetunes_from(settings) == (path if is_new else None)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"save_dir": "new", "finetune_from_model": "absent.pt"}, "--finetune-from-model absent.pt"),
        ({"save_dir": "new", "continue_once": "absent.pt"}, "--continue-once absent.pt"),
        ({"restore_file": "absent.pt"}, "--restore-file absent.pt"),  # checkpoint_best.pt of --save-dir is not meant
        ({"restore_file": "."}, r"--restore-file \. is a folder"),
    ],
)
def test_a_checkpoint_that_was_asked_for_and_is_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Any, named: str
) -> None:
    monkeypatch.chdir(tmp_path)
    defaults = {"restore_file": "checkpoint_last.pt", "save_dir": "run", "finetune_from_model": None}
    with pytest.raises(UserError, match=named):
        starts_from(SimpleNamespace(**{**defaults, "continue_once": None, **options}))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "run/checkpoint_last-shard3.pt"),
        ({"restore_file": "other.pt"}, "other-shard3.pt"),
        ({"save_dir": "new", "finetune_from_model": "other.pt"}, "other.pt"),  # as fairseq reads it
        ({"save_dir": "new", "continue_once": "whole.pt", "finetune_from_model": "other.pt"}, "whole.pt"),
    ],
    ids=str,
)
def test_where_each_process_has_files_of_its_own_it_starts_from_those(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Any, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run").mkdir()
    for name in ("other.pt", "other-shard3.pt", "whole.pt", "run/checkpoint_last.pt", "run/checkpoint_last-shard3.pt"):
        Path(name).touch()
    defaults = {"restore_file": "checkpoint_last.pt", "save_dir": "run", "finetune_from_model": None}
    assert starts_from(SimpleNamespace(**{**defaults, "continue_once": None, **options}), "-shard3") == Path(expected)
