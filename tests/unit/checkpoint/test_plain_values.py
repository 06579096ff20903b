"""Checkpoints that torch reads with weights_only, whatever fairseq has put into them."""

from __future__ import annotations

from argparse import Namespace
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lmfusion.checkpoint.plain_values import with_plain_values
from lmfusion.checkpoint.rewriting import average, write_checkpoint
from lmfusion.fairseq_patches.saving import save


def state_of_a_run() -> dict[str, Any]:
    """What a run with --eval-bleu and an optimizer without a dataclass saves."""
    counts = OrderedDict([("sum", np.array([3, 2, 1, 0])), ("count", np.int64(4))])
    return {
        "model": {"weight": torch.ones(2, 3)},
        "cfg": {"optimizer": Namespace(lr=[0.1], betas=(0.9, 0.98)), "model": {"_name": "x"}, "common": {"seed": 1}},
        "extra_state": {"metrics": OrderedDict(valid=[(1, "_bleu_counts", counts)]), "epoch": 2},
        "last_optimizer_state": {"state": {0: {"step": 3}}},
    }


@pytest.mark.parametrize("write", [save, write_checkpoint])
def test_it_is_read_without_more_types_and_says_the_same(write: Any, tmp_path: Path) -> None:
    write(state_of_a_run(), tmp_path / "c.pt")
    assert torch.serialization.get_unsafe_globals_in_checkpoint(str(tmp_path / "c.pt")) == []
    with torch.serialization.safe_globals([]):
        found = torch.load(tmp_path / "c.pt", weights_only=True)
    assert found["cfg"]["optimizer"] == {"lr": [0.1], "betas": (0.9, 0.98)}
    assert found["extra_state"]["metrics"] == {"valid": [(1, "_bleu_counts", {"sum": [3, 2, 1, 0], "count": 4})]}
    assert found["extra_state"]["epoch"] == 2
    assert found["last_optimizer_state"] == {"state": {0: {"step": 3}}}
    assert torch.equal(found["model"]["weight"], torch.ones(2, 3))


def test_an_average_of_earlier_checkpoints_is_as_well(tmp_path: Path) -> None:
    for name in ("a.pt", "b.pt"):
        torch.save(state_of_a_run(), tmp_path / name)
    average([tmp_path / "a.pt", tmp_path / "b.pt"], tmp_path / "c.pt")
    assert torch.serialization.get_unsafe_globals_in_checkpoint(str(tmp_path / "c.pt")) == []


def test_what_fairseq_builds_from_attributes_stays_as_it_is() -> None:
    """Also weights, whose dictionary has the modules' versions as an attribute, and a configuration that is none."""
    model, task, weights = Namespace(arch="lstm"), Namespace(data="x"), torch.nn.Linear(2, 3).state_dict()
    state = {"model": weights, "cfg": {"model": model, "task": task, "optimizer": Namespace(lr=[0.1])}, "args": None}
    found = with_plain_values(state)
    assert found["cfg"] == {"model": model, "task": task, "optimizer": {"lr": [0.1]}}
    assert found["model"] is weights
    assert found["args"] is None
    assert state["cfg"]["optimizer"] == Namespace(lr=[0.1])
    assert with_plain_values({"cfg": None}) == {"cfg": None}
    assert with_plain_values({"model": {}}) == {"model": {}}


def test_numbers_of_numpy_in_an_optimizers_state_are_plain_as_well() -> None:
    state = {"param_groups": [{"lr": np.float64(0.1)}], "state": {0: {"step": 3}}}
    found = with_plain_values({"last_optimizer_state": state})["last_optimizer_state"]
    assert found == {"param_groups": [{"lr": 0.1}], "state": {0: {"step": 3}}}
    assert type(found["param_groups"][0]["lr"]) is float


def test_the_kind_of_each_container_stays() -> None:
    value = {"pair": (np.float32(0.5), [Namespace(a=np.arange(2))]), "ordered": OrderedDict(b=np.bool_(True))}
    found = with_plain_values({"extra_state": value})["extra_state"]
    assert found == {"pair": (0.5, [{"a": [0, 1]}]), "ordered": OrderedDict(b=True)}
    assert [type(found[name]) for name in found] == [tuple, OrderedDict]
    assert type(found["pair"][0]) is float
    assert found["ordered"]["b"] is True
