"""The checkpoint of a run's folder, and the folders that a person may have meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion.checkpoint.finding import MOST_NAMED, find_checkpoint
from lmfusion.errors import InputError
from lmfusion.planning.text import prepared
from lmfusion.text.check_data import check_folder


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_the_best_checkpoint_comes_before_the_last(tmp_path: Path) -> None:
    last = touch(tmp_path / "run" / "checkpoints" / "checkpoint_last.pt")
    assert find_checkpoint(tmp_path / "run") == last
    best = touch(last.with_name("checkpoint_best.pt"))
    assert find_checkpoint(tmp_path / "run") == best == find_checkpoint(best)


def test_a_folder_s_own_checkpoint_comes_before_those_of_the_folder_in_it(tmp_path: Path) -> None:
    touch(tmp_path / "checkpoints" / "checkpoint_best.pt")
    (tmp_path / "checkpoint_best.pt").mkdir()  # which is no checkpoint
    last = touch(tmp_path / "checkpoint_last.pt")
    assert find_checkpoint(tmp_path) == last


def test_a_folder_of_several_runs_is_answered_with_their_names(tmp_path: Path) -> None:
    for name in ("baseline", "lstm"):
        touch(tmp_path / name / "checkpoints" / "checkpoint_best.pt")
    touch(tmp_path / "data" / "notes.txt")
    with pytest.raises(InputError) as refused:
        find_checkpoint(tmp_path)
    assert str(tmp_path / "baseline") in str(refused.value)
    assert str(tmp_path / "lstm") in str(refused.value)
    assert str(tmp_path / "data") not in str(refused.value)


def test_as_many_runs_as_are_named_are_all(tmp_path: Path) -> None:
    for number in reversed(range(MOST_NAMED)):
        touch(tmp_path / f"run-{number}" / "checkpoint_last.pt")
    with pytest.raises(InputError) as refused:
        find_checkpoint(tmp_path)
    assert "more" not in str(refused.value)
    places = [str(refused.value).index(f"run-{number}") for number in range(MOST_NAMED)]
    assert places == sorted(places)


def test_of_many_runs_a_few_are_named_and_the_others_counted(tmp_path: Path) -> None:
    for number in range(MOST_NAMED + 3):
        touch(tmp_path / f"run-{number:02}" / "checkpoint_last.pt")
    with pytest.raises(InputError, match="3 more") as refused:
        find_checkpoint(tmp_path)
    assert str(refused.value).count("run-") == MOST_NAMED


@pytest.mark.parametrize("read", [lambda folder: prepared(str(folder)), check_folder], ids=["plan", "check-data"])
def test_the_folder_above_binarized_texts_is_answered_with_those(tmp_path: Path, read: object) -> None:
    touch(tmp_path / "bitext-400" / "train.en-de.en.idx")
    touch(tmp_path / "text" / "train.en")
    assert callable(read)
    with pytest.raises(InputError) as refused:
        read(tmp_path)
    assert str(tmp_path / "bitext-400") in str(refused.value)
    assert str(tmp_path / "text") not in str(refused.value)
