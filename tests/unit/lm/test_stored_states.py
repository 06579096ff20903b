"""Stored states of a frozen language model: the same numbers, computed once, safe when killed, shared."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import resource
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.lm.freezing import state_fingerprint
from lmfusion.lm.interface import PretrainedLM
from lmfusion.state_cache.stored_states import StoredStates

ROWS = [[2, 5, 9, 4, 11, 2], [2, 6, 7, 8, 2], [2, 21, 2]]
LENGTHS = [6, 5, 3]


@pytest.fixture
def lm(make_cloze: Any) -> PretrainedLM:
    frozen: PretrainedLM = make_cloze().freeze()
    return frozen


class Counted:
    """Counts the rows a language model is asked for."""

    def __init__(self, lm: PretrainedLM) -> None:
        self.rows, self._original = 0, lm.states
        lm.states = self  # type: ignore[method-assign, assignment]

    def __call__(self, tokens: Tensor, *args: Any, **kwargs: Any) -> Any:
        self.rows += tokens.size(0)
        return self._original(tokens, *args, **kwargs)


def open_store(lm: PretrainedLM, folder: Path, **flags: Any) -> StoredStates:
    return StoredStates(lm, folder, state_fingerprint(lm), **flags)


def assert_same(ours: list[Tensor], theirs: list[Tensor], rows: list[int], atol: float = 1e-5) -> None:
    """At words; states at padding are unspecified."""
    assert len(ours) == len(theirs)
    for left, right in zip(ours, theirs):
        for row, length in enumerate(rows):
            torch.testing.assert_close(left[row, :length], right[row, :length], rtol=0, atol=atol)


@torch.no_grad()
def test_states_are_those_of_the_lm_first_and_later(lm: PretrainedLM, batch: Any, tmp_path: Path) -> None:
    tokens = batch(ROWS)
    expected = lm.layer_states(tokens)
    counted, stored = Counted(lm), open_store(lm, tmp_path)
    for _ in range(2):
        assert_same(stored(tokens), expected, LENGTHS, atol=0)
    assert counted.rows == 3


@torch.no_grad()
def test_a_sentence_is_known_in_any_batch(lm: PretrainedLM, batch: Any, tmp_path: Path) -> None:
    """Alone, wider padded, in another order; new ones beside it are computed."""
    stored = open_store(lm, tmp_path)
    stored(batch(ROWS[:2]))
    counted = Counted(lm)
    mixed = batch([ROWS[2], ROWS[1], ROWS[0]], width=9)
    assert_same(stored(mixed), lm.layer_states(mixed), LENGTHS[::-1])
    assert counted.rows == 1 + 3  # the new one, and those of the comparison
    assert stored(batch([ROWS[0]]))[0].shape[:2] == (1, 6)


@torch.no_grad()
def test_other_processes_and_runs_read_it(lm: PretrainedLM, batch: Any, tmp_path: Path) -> None:
    """Also what is written while they are at work."""
    first, second = open_store(lm, tmp_path), open_store(lm, tmp_path)
    first(batch(ROWS[:1]))
    counted = Counted(lm)
    second(batch(ROWS[:1]))
    first(batch(ROWS[1:2]))
    second(batch(ROWS[1:2]))
    assert counted.rows == 1
    open_store(lm, tmp_path)(batch(ROWS[:2]))
    assert counted.rows == 1


@torch.no_grad()
@pytest.mark.parametrize("cut", ["states", "index"])
def test_killed_while_writing_it_loses_a_sentence_and_no_more(
    lm: PretrainedLM, batch: Any, tmp_path: Path, cut: str
) -> None:
    stored = open_store(lm, tmp_path)
    for row in ROWS:
        stored(batch([row]))
    (path,) = tmp_path.glob(f"*/*.{cut}")
    with path.open("r+b") as stream:
        stream.truncate(path.stat().st_size - 1)
    counted = Counted(lm)
    again = open_store(lm, tmp_path)
    assert_same(again(batch(ROWS)), lm.layer_states(batch(ROWS)), LENGTHS)
    assert counted.rows == 1 + 3
    again(batch(ROWS))
    assert counted.rows == 1 + 3


@torch.no_grad()
def test_another_lm_precision_or_storage_has_a_store_of_its_own(
    lm: PretrainedLM, make_cloze: Any, batch: Any, tmp_path: Path, shake: Any
) -> None:
    tokens = batch(ROWS)
    open_store(lm, tmp_path)(tokens)
    other = shake(make_cloze()).freeze()
    for change in ("lm", "autocast", "half"):
        counted = Counted(other if change == "lm" else lm)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=change == "autocast"):
            open_store(other if change == "lm" else lm, tmp_path, half=change == "half")(tokens)
        assert counted.rows == 3, change
    assert len(list(tmp_path.iterdir())) == 4


@torch.no_grad()
def test_only_the_chosen_states_are_stored(lm: PretrainedLM, batch: Any, tmp_path: Path) -> None:
    tokens = batch(ROWS)
    expected = lm.layer_states(tokens)
    chosen = [0, len(expected) - 1]
    stored, whole = open_store(lm, tmp_path, chosen=chosen), open_store(lm, tmp_path)
    for _ in range(2):
        assert_same(stored(tokens), [expected[number] for number in chosen], LENGTHS, atol=0)
    (path,) = tmp_path.glob("*/*.states")
    assert path.stat().st_size == sum(LENGTHS) * stored.bytes_per_token() == sum(LENGTHS) * 2 * lm.state_dim * 4
    assert_same(whole(tokens), expected, LENGTHS, atol=0)
    assert len(list(tmp_path.iterdir())) == 2, "stores of other states lie beside it"


@torch.no_grad()
def test_half_precision_halves_the_size_at_a_stated_error(lm: PretrainedLM, batch: Any, tmp_path: Path) -> None:
    tokens = batch(ROWS)
    expected = lm.layer_states(tokens)
    sizes = {}
    for half in (False, True):
        stored = open_store(lm, tmp_path / str(half), half=half)
        states = stored(tokens)
        assert {state.dtype for state in states} == {torch.float32}
        (path,) = (tmp_path / str(half)).glob("*/*.states")
        sizes[half] = path.stat().st_size
        assert sizes[half] == sum(LENGTHS) * stored.bytes_per_token()
        for left, right in zip(states, expected):
            for row, length in enumerate(LENGTHS):
                torch.testing.assert_close(left[row, :length], right[row, :length], rtol=5e-4 * half, atol=1e-6 * half)
    assert sizes[True] * 2 == sizes[False]


@torch.no_grad()
@pytest.mark.parametrize("room", [0, 1000], ids=["none", "for the description"])
def test_a_disk_that_is_full_from_the_beginning(lm: PretrainedLM, batch: Any, tmp_path: Path, room: int) -> None:
    """Under a limit on the size of files, which the operating system enforces."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        with pytest.raises(InputError, match=rf"no space left .*{tmp_path}.* train without --src-lm-cache"):
            open_store(lm, tmp_path)(batch(ROWS))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    counted = Counted(lm)
    open_store(lm, tmp_path)(batch(ROWS))
    open_store(lm, tmp_path)(batch(ROWS))
    assert counted.rows == len(ROWS)


@torch.no_grad()
def test_full_disk_is_said_plainly_and_what_is_stored_stays(
    lm: PretrainedLM, batch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = open_store(lm, tmp_path)
    stored(batch(ROWS[:1]))

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("lmfusion.state_cache.store._write_all", full)
        with pytest.raises(InputError, match=r"no space left .* train without --src-lm-cache"):
            stored(batch(ROWS[1:]))
    counted = Counted(lm)
    open_store(lm, tmp_path)(batch(ROWS[:1]))
    assert counted.rows == 0


@torch.no_grad()
def test_damaged_description_is_refused(lm: PretrainedLM, batch: Any, tmp_path: Path) -> None:
    open_store(lm, tmp_path)(batch(ROWS))
    (about,) = tmp_path.glob("*/about.json")
    about.write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"about\.json is damaged: delete the folder"):
        open_store(lm, tmp_path)(batch(ROWS))


@torch.no_grad()
@pytest.mark.parametrize(
    "change", [{"states": 10**12}, {"channels": -3}, {"states": float("inf")}, {"channels": "x"}], ids=str
)
def test_a_description_of_other_sizes_is_refused(lm: PretrainedLM, batch: Any, tmp_path: Path, change: Any) -> None:
    open_store(lm, tmp_path)(batch(ROWS))
    (about,) = tmp_path.glob("*/about.json")
    about.write_text(json.dumps({**json.loads(about.read_text(encoding="utf-8")), **change}), encoding="utf-8")
    with pytest.raises(InputError, match=r"about\.json is damaged: delete the folder"):
        open_store(lm, tmp_path)(batch(ROWS))


@torch.no_grad()
def test_states_beyond_half_precision_are_refused_and_none_is_stored(
    lm: PretrainedLM, batch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = lm.states

    def large(tokens: Tensor, *args: Any, **kwargs: Any) -> Any:
        found = original(tokens, *args, **kwargs)
        found.layers = [1e6 * state for state in found.layers]
        return found

    monkeypatch.setattr(lm, "states", large)
    with pytest.raises(InputError, match=r"--src-lm-cache-half: .* above 65,504"):
        open_store(lm, tmp_path, half=True)(batch(ROWS))
    assert not [path for path in tmp_path.rglob("*.states") if path.stat().st_size]


@torch.no_grad()
def test_a_store_that_is_deleted_while_it_is_read_is_one_clear_error(
    lm: PretrainedLM, batch: Any, tmp_path: Path
) -> None:
    open_store(lm, tmp_path)(batch(ROWS))
    stored = open_store(lm, tmp_path)
    assert stored._open() is not None, "its index is read"
    (path,) = tmp_path.rglob("*.states")
    path.unlink()
    with pytest.raises(InputError, match=rf"{path} is gone"):
        stored(batch(ROWS))


@torch.no_grad()
@pytest.mark.parametrize("change", ["lm", "autocast", "half"])
def test_a_store_that_was_renamed_to_another_lms_is_refused(
    lm: PretrainedLM, make_cloze: Any, batch: Any, tmp_path: Path, shake: Any, change: str
) -> None:
    other = shake(make_cloze()).freeze() if change == "lm" else lm
    names = []
    for model, changed in ((lm, False), (other, True)):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=changed and change == "autocast"):
            stored = open_store(model, tmp_path, half=changed and change == "half")
            stored(batch(ROWS))
            names.append(stored._folder())
    names[1].rename(tmp_path / "away")
    names[0].rename(names[1])
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=change == "autocast"):
        stored = open_store(other, tmp_path, half=change == "half")
        difference = {"lm": state_fingerprint(lm), "autocast": "autocast off", "half": "half is False"}[change]
        with pytest.raises(InputError, match=rf"{names[1]} holds other states.*{difference}"):
            stored(batch(ROWS))


@torch.no_grad()
def test_a_store_of_the_former_format_is_computed_again_with_one_line(
    lm: PretrainedLM, batch: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stored = open_store(lm, tmp_path)
    expected = stored(batch(ROWS))
    settings = json.dumps([2, state_fingerprint(lm), lm.config, "torch.float32, autocast off"], sort_keys=True)
    older = tmp_path / hashlib.sha256(settings.encode()).hexdigest()[:16]
    stored._folder().rename(older)
    about = json.loads((older / "about.json").read_text(encoding="utf-8"))
    del about["settings"]
    (older / "about.json").write_text(json.dumps(about), encoding="utf-8")
    counted, again = Counted(lm), open_store(lm, tmp_path)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert_same(again(batch(ROWS)), expected, LENGTHS, atol=0)
    assert counted.rows == len(ROWS)
    assert [str(older) in record.getMessage() for record in caplog.records] == [True]
