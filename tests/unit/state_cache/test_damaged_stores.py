"""Stores of states that are cut, damaged, full or of something else: computed again, or refused in a clear line."""

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


@torch.no_grad()
@pytest.mark.parametrize("cut", ["states", "index"])
def test_killed_while_writing_it_loses_a_sentence_and_no_more(
    lm: PretrainedLM, tmp_path: Path, cut: str, count_rows: Any, open_store: Any, assert_same: Any, tokens: Tensor
) -> None:
    stored = open_store(lm)
    for row in tokens:
        stored(row[None])
    (path,) = tmp_path.glob(f"*/*.{cut}")
    with path.open("r+b") as stream:
        stream.truncate(path.stat().st_size - 1)
    counted = count_rows(lm)
    again = open_store(lm)
    assert_same(again(tokens), lm.layer_states(tokens), tokens, atol=1e-5)
    assert counted.rows == 1 + 3
    again(tokens)
    assert counted.rows == 1 + 3


@torch.no_grad()
@pytest.mark.parametrize("room", [0, 1000], ids=["none", "for the description"])
def test_a_disk_that_is_full_from_the_beginning(
    lm: PretrainedLM, tmp_path: Path, room: int, count_rows: Any, open_store: Any, tokens: Tensor
) -> None:
    """Under a limit on the size of files, which the operating system enforces."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        with pytest.raises(InputError, match=rf"no space left .*{tmp_path}.* train without --src-lm-cache"):
            open_store(lm)(tokens)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    counted = count_rows(lm)
    open_store(lm)(tokens)
    open_store(lm)(tokens)
    assert counted.rows == 3


@torch.no_grad()
def test_full_disk_is_said_plainly_and_what_is_stored_stays(
    lm: PretrainedLM, monkeypatch: pytest.MonkeyPatch, count_rows: Any, open_store: Any, tokens: Tensor
) -> None:
    stored = open_store(lm)
    stored(tokens[:1])

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("lmfusion.state_cache.store._write_all", full)
        with pytest.raises(InputError, match=r"no space left .* train without --src-lm-cache"):
            stored(tokens[1:])
    counted = count_rows(lm)
    open_store(lm)(tokens[:1])
    assert counted.rows == 0


@torch.no_grad()
def test_damaged_description_is_refused(lm: PretrainedLM, tmp_path: Path, open_store: Any, tokens: Tensor) -> None:
    open_store(lm)(tokens)
    (about,) = tmp_path.glob("*/about.json")
    about.write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"about\.json is damaged: delete the folder"):
        open_store(lm)(tokens)


@torch.no_grad()
@pytest.mark.parametrize(
    "change", [{"states": 10**12}, {"channels": -3}, {"states": float("inf")}, {"channels": "x"}], ids=str
)
def test_a_description_of_other_sizes_is_refused(
    lm: PretrainedLM, tmp_path: Path, change: Any, open_store: Any, tokens: Tensor
) -> None:
    open_store(lm)(tokens)
    (about,) = tmp_path.glob("*/about.json")
    about.write_text(json.dumps({**json.loads(about.read_text(encoding="utf-8")), **change}), encoding="utf-8")
    with pytest.raises(InputError, match=r"about\.json is damaged: delete the folder"):
        open_store(lm)(tokens)


@torch.no_grad()
def test_states_beyond_half_precision_are_refused_and_none_is_stored(
    lm: PretrainedLM, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_store: Any, tokens: Tensor
) -> None:
    original = lm.states

    def large(tokens: Tensor, *args: Any, **kwargs: Any) -> Any:
        found = original(tokens, *args, **kwargs)
        found.layers = [1e6 * state for state in found.layers]
        return found

    monkeypatch.setattr(lm, "states", large)
    with pytest.raises(InputError, match=r"--src-lm-cache-half: .* above 65,504"):
        open_store(lm, half=True)(tokens)
    assert not [path for path in tmp_path.rglob("*.states") if path.stat().st_size]


@torch.no_grad()
def test_a_store_that_is_deleted_while_it_is_read_is_one_clear_error(
    lm: PretrainedLM, tmp_path: Path, open_store: Any, tokens: Tensor
) -> None:
    open_store(lm)(tokens)
    stored = open_store(lm)
    assert stored._open() is not None, "its index is read"
    (path,) = tmp_path.rglob("*.states")
    path.unlink()
    with pytest.raises(InputError, match=rf"{path} is gone"):
        stored(tokens)


@torch.no_grad()
@pytest.mark.parametrize("change", ["lm", "autocast", "half"])
def test_a_store_that_was_renamed_to_another_lms_is_refused(
    lm: PretrainedLM, make_cloze: Any, tmp_path: Path, shake: Any, change: str, open_store: Any, tokens: Tensor
) -> None:
    other = shake(make_cloze()).freeze() if change == "lm" else lm
    names = []
    for model, changed in ((lm, False), (other, True)):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=changed and change == "autocast"):
            stored = open_store(model, half=changed and change == "half")
            stored(tokens)
            names.append(stored._folder())
    names[1].rename(tmp_path / "away")
    names[0].rename(names[1])
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=change == "autocast"):
        stored = open_store(other, half=change == "half")
        difference = {"lm": state_fingerprint(lm), "autocast": "autocast off", "half": "half is False"}[change]
        with pytest.raises(InputError, match=rf"{names[1]} holds other states.*{difference}"):
            stored(tokens)


@torch.no_grad()
def test_a_store_of_the_former_format_is_computed_again_with_one_line(
    lm: PretrainedLM,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    count_rows: Any,
    open_store: Any,
    assert_same: Any,
    tokens: Tensor,
) -> None:
    stored = open_store(lm)
    expected = stored(tokens)
    settings = json.dumps([2, state_fingerprint(lm), lm.config, "torch.float32, autocast off"], sort_keys=True)
    older = tmp_path / hashlib.sha256(settings.encode()).hexdigest()[:16]
    stored._folder().rename(older)
    about = json.loads((older / "about.json").read_text(encoding="utf-8"))
    del about["settings"]
    (older / "about.json").write_text(json.dumps(about), encoding="utf-8")
    counted, again = count_rows(lm), open_store(lm)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert_same(again(tokens), expected, tokens)
    assert counted.rows == 3
    assert [str(older) in record.getMessage() for record in caplog.records] == [True]
