"""``--store-lm-once``: the frozen LM in one file beside the checkpoints, found by its content, and never guessed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from lmfusion.checkpoint.frozen_file import KEY
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.checkpoint.rewriting import average, export
from lmfusion.errors import InputError
from lmfusion.fairseq_patches import saving
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.inspection import inspect_checkpoint

LM = ".embed_tokens.representation.lm."
NAME = "frozen_lm.0123456789abcdef.pt"


@pytest.fixture
def save_run(make_cell: Any, task: Any, tmp_path: Path) -> Any:
    """Save checkpoints of a model after so many updates, each with other trained weights; the models' state dicts."""

    def save(src: str, tgt: str, *updates: int, **flags: Any) -> list[dict[str, Any]]:
        cfg = make_cell(src, tgt, **flags)
        model, states = TransformerLMFusion.build_model(cfg, task), []
        for number in updates:
            with torch.no_grad():
                for parameter in model.parameters():
                    if parameter.requires_grad:
                        parameter.fill_(number)
            weights = {name: value.clone() for name, value in model.state_dict().items()}
            history = [{"num_updates": number}]
            state = {"cfg": {"model": vars(cfg)}, "model": weights, "optimizer_history": history, "extra_state": {}}
            saving.save({**state, "last_optimizer_state": {"state": {}}}, tmp_path / f"checkpoint_1_{number}.pt")
            states.append(weights)
        return states

    return save


def files(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith("frozen_lm"))


def inside(path: Path) -> list[str]:
    """Names of a language model's weights that are in the file itself."""
    return [name for name in torch.load(path, weights_only=True)["model"] if LM in name]


def assert_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) and ours[name].dtype == theirs[name].dtype for name in ours)


def test_without_the_flag_a_checkpoint_is_complete_in_itself(save_run: Any, tmp_path: Path) -> None:
    save_run("elmo", "none", 1)
    assert files(tmp_path) == []
    assert len(inside(tmp_path / "checkpoint_1_1.pt")) > 20


@pytest.mark.parametrize(("src", "tgt", "count"), [("elmo", "none", 1), ("elmo", "elmo", 2), ("elmo", "finetune", 1)])
def test_checkpoints_share_the_file_and_are_read_complete(
    save_run: Any, tmp_path: Path, src: str, tgt: str, count: int
) -> None:
    states = save_run(src, tgt, 1, 2, store_lm_once=True)
    assert len(files(tmp_path)) == count
    for number, weights in enumerate(states, start=1):
        path = tmp_path / f"checkpoint_1_{number}.pt"
        assert all(name.startswith("decoder.") and tgt == "finetune" for name in inside(path))
        state = read_checkpoint(path)
        assert_same(state["model"], weights)
        assert KEY not in state
    assert not states[0]["decoder.layers.0.fc1.bias"].equal(states[1]["decoder.layers.0.fc1.bias"])


def test_inspected_it_is_as_large_as_a_complete_one(save_run: Any, tmp_path: Path) -> None:
    save_run("elmo", "none", 1, store_lm_once=True)
    lm = inspect_checkpoint(tmp_path / "checkpoint_1_1.pt").language_models[0]
    assert lm.frozen
    assert lm.parameters > 1000


def test_averaged_or_exported_it_is_one_complete_file(save_run: Any, tmp_path: Path) -> None:
    weights = save_run("elmo", "none", 1, 3, store_lm_once=True)[1]
    first, second = tmp_path / "checkpoint_1_1.pt", tmp_path / "checkpoint_1_3.pt"
    average([first, second], tmp_path / "average.pt")
    export(second, tmp_path / "export.pt")
    export(second, tmp_path / "half.pt", half=True)
    (tmp_path / files(tmp_path)[0]).unlink()
    exported = torch.load(tmp_path / "export.pt", weights_only=True)
    assert exported["last_optimizer_state"] is None
    assert_same(exported["model"], weights)
    half = torch.load(tmp_path / "half.pt", weights_only=True)["model"]
    assert_same(half, {name: value.half() if value.is_floating_point() else value for name, value in weights.items()})
    averaged = torch.load(tmp_path / "average.pt", weights_only=True)["model"]
    assert averaged["decoder.layers.0.fc1.bias"].eq(2).all()
    name = f"encoder{LM}join.q_proj.bias"
    assert torch.equal(averaged[name], weights[name])


def test_a_missing_file_is_named(save_run: Any, tmp_path: Path) -> None:
    save_run("elmo", "none", 1, store_lm_once=True)
    name = files(tmp_path)[0]
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match=rf"checkpoint_1_1\.pt keeps .* in {name} beside it, and that file is missing"):
        read_checkpoint(tmp_path / "checkpoint_1_1.pt")


def test_another_language_model_is_not_taken_for_it(save_run: Any, tmp_path: Path) -> None:
    save_run("elmo", "none", 1, store_lm_once=True)
    path = tmp_path / files(tmp_path)[0]
    state = torch.load(path, weights_only=True)
    state["model"]["join.q_proj.bias"][0] += 1e-3
    torch.save(state, path)
    with pytest.raises(InputError, match=rf"{path.name}, the frozen language model of checkpoint_1_1\.pt, is not"):
        read_checkpoint(tmp_path / "checkpoint_1_1.pt")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=rf"{path.name} cannot be read as a checkpoint: it is truncated or damaged"):
        read_checkpoint(tmp_path / "checkpoint_1_1.pt")


@pytest.mark.parametrize("damage", ["cut", "other weights", "no weights"])
def test_a_damaged_file_that_is_there_already_is_not_relied_on(
    save_run: Any, tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Left from an earlier run in the folder: checkpoints that refer to it would be of no use."""
    save_run("elmo", "none", 1, store_lm_once=True)
    path = tmp_path / files(tmp_path)[0]
    state = torch.load(path, weights_only=True)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:3000])
    elif damage == "other weights":
        state["model"]["join.q_proj.bias"][0] += 1e-3
        torch.save(state, path)
    else:
        torch.save({"model": {"join.q_proj.bias": 1}}, path)
    weights = save_run("elmo", "none", 2, store_lm_once=True)[0]
    assert files(tmp_path) == [path.name]
    assert f"{path}" in caplog.text
    assert "written" in caplog.text
    assert_same(read_checkpoint(tmp_path / "checkpoint_1_2.pt")["model"], weights)


@pytest.mark.parametrize(
    "references",
    [
        *({"x": {"file": name, "sha256": "0" * 64}} for name in ("../lm.pt", "/etc/passwd", "lm.pt", "")),
        *({"x": {"file": name, "sha256": "0" * 64}} for name in (f"../{NAME}", f"{NAME}/../../lm.pt", f"{NAME}\n")),
        *([1], {"x": 1}, {1: {}}, {"x": {"file": NAME}}, "x"),
    ],
    ids=str,
)
def test_a_reference_leads_nowhere_else(save_run: Any, tmp_path: Path, references: Any) -> None:
    save_run("elmo", "none", 1)
    path = tmp_path / "checkpoint_1_1.pt"
    torch.save({**torch.load(path, weights_only=True), KEY: references}, path)
    with pytest.raises(InputError, match=r"checkpoint_1_1\.pt is damaged: what it says of its frozen language model"):
        read_checkpoint(path)


@pytest.mark.parametrize(("src", "tgt"), [("none", "none"), ("finetune", "none"), ("finetune", "finetune")])
def test_it_is_refused_where_no_language_model_is_frozen(make_cell: Any, task: Any, src: str, tgt: str) -> None:
    with pytest.raises(InputError, match="--store-lm-once would be ignored: it is for a frozen language model"):
        TransformerLMFusion.build_model(make_cell(src, tgt, store_lm_once=True), task)
