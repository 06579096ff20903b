"""fairseq on today's Python, NumPy and PyTorch: names it still uses, safe loading, errors in one line."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.data import data_utils
from fairseq.distributed.utils import _TensorPlaceholder
from omegaconf import OmegaConf

from lmfusion.errors import UserError
from lmfusion.fairseq_patches.compat import prepare_fairseq


def test_names_that_numpy_dropped_are_back() -> None:
    assert np.compat.long(7) == 7  # type: ignore[attr-defined]


def test_percentile_understands_its_former_keyword() -> None:
    """fairseq's --num-batch-buckets uses it."""
    values = [1, 2, 3, 10]
    old: Any = np.percentile
    assert old(values, 50, interpolation="lower") == np.percentile(values, 50, method="lower") == 2
    assert old(values, 50, interpolation="higher") == 3
    assert np.percentile(values, 50) == 2.5


@pytest.mark.parametrize("count", [1, 7, 8, 9, 15, 16, 29])
@pytest.mark.parametrize("multiple", [1, 8])
@pytest.mark.parametrize("limits", [{"max_sentences": 8}, {"max_tokens": 40}, {"max_tokens": 21, "max_sentences": 3}])
def test_every_sentence_is_in_a_batch(count: int, multiple: int, limits: dict[str, int]) -> None:
    """Also the last ones, where fairseq's default asks for batches of a multiple of 8."""
    lengths = np.array([3 + index % 4 for index in range(count)])
    order = np.argsort(lengths, kind="stable")
    for vector in (lengths, None):
        batches = data_utils.batch_by_size(
            order, lambda index: lengths[index], vector, required_batch_size_multiple=multiple, **limits
        )
        assert [int(index) for batch in batches for index in batch] == order.tolist()
        for batch in batches:
            assert len(batch) <= limits.get("max_sentences", count)
            assert len(batch) * max(lengths[batch]) <= limits.get("max_tokens", count * 6)


def test_importing_does_not_advertise_a_speech_package() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import logging; logging.basicConfig(level=logging.INFO); import lmfusion"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "tensorboardX" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "value",
    [
        argparse.Namespace(arch="transformer"),
        np.arange(3),
        np.array([0.5]),
        np.float32(0.5),
        np.int64(3),
        OmegaConf.create({"model": {"layers": [1, 2]}, "path": None}),
        _TensorPlaceholder(index=1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_fairseq_saves_loads_safely(tmp_path: Path, value: Any) -> None:
    torch.save({"value": value}, tmp_path / "state.pt")
    loaded = torch.load(tmp_path / "state.pt", weights_only=True)["value"]
    assert type(loaded) is type(value)
    assert repr(loaded) == repr(value)


class Command:
    """Unpickled without care, it runs a shell command."""

    def __reduce__(self) -> Any:
        return os.system, ("exit 0",)


@pytest.mark.parametrize("value", [Command(), Path("x"), print], ids=["command", "path", "function"])
def test_anything_else_is_still_refused(tmp_path: Path, value: Any) -> None:
    torch.save({"value": value}, tmp_path / "state.pt")
    with pytest.raises(Exception, match=r"(?i)unsupported global"):
        torch.load(tmp_path / "state.pt", weights_only=True)


def test_users_mistake_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    error = UserError("lm.pt does not exist: give a checkpoint.")
    sys.excepthook(UserError, error, None)
    assert capsys.readouterr().err == "lmfusion: error: lm.pt does not exist: give a checkpoint.\n"


def test_other_errors_keep_their_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise KeyError("a bug of ours")
    except KeyError as error:
        sys.excepthook(KeyError, error, error.__traceback__)
    printed = capsys.readouterr().err
    assert "Traceback" in printed
    assert "test_compat.py" in printed


def test_preparing_twice_changes_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # put back afterwards
    percentile = np.percentile
    prepare_fairseq()
    assert np.percentile is percentile
    sys.excepthook(UserError, UserError("once"), None)
    assert capsys.readouterr().err.count("once") == 1
