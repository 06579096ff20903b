"""What `lmfusion inspect` says of a checkpoint, against the model it was saved from (lmfusion/inspection.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import pytest
import torch
from torch import nn

from lmfusion import cli
from lmfusion.errors import InputError
from lmfusion.inspection import Inspection, count_parameters, inspect_checkpoint, state_names

FUSIONS = ("none", "elmo", "finetune")
CELLS = [(src, tgt, False) for src in FUSIONS for tgt in FUSIONS] + [(src, "none", True) for src in FUSIONS]


def save_seq2seq(path: Path, model: nn.Module, cfg: Any) -> None:
    """A checkpoint as fairseq's trainer saves it, as far as inspection is concerned."""
    values = {**vars(cfg), "_name": "src_elmo_tiny"}
    history = [{"num_updates": 7}]
    torch.save({"cfg": {"model": values}, "model": model.state_dict(), "optimizer_history": history}, path)


@pytest.fixture
def saved(tmp_path: Path, make_cell: Any, task: Any) -> Callable[..., tuple[nn.Module, Path]]:
    """A model of one cell and its checkpoint: ``saved("elmo", "none")``."""
    from lmfusion.fusion.model import TransformerLMFusion

    def save(src: str, tgt: str, **flags: Any) -> tuple[nn.Module, Path]:
        cfg = make_cell(src, tgt, **flags)
        model = TransformerLMFusion.build_model(cfg, task)
        save_seq2seq(tmp_path / "checkpoint.pt", model, cfg)
        return model, tmp_path / "checkpoint.pt"

    return save


@pytest.mark.parametrize(("src", "tgt", "tied"), CELLS, ids=str)
def test_every_cell_is_counted_as_its_model(saved: Any, src: str, tgt: str, tied: bool) -> None:
    model, path = saved(src, tgt, share_decoder_input_output_embed=tied)
    found: Inspection = inspect_checkpoint(path)

    trainable = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    assert found.total == sum(parameter.numel() for parameter in model.parameters())
    assert (found.trainable, found.frozen) == (trainable, found.total - trainable)
    assert found.kind == "sequence-to-sequence model"
    assert (found.architecture, found.updates) == ("src_elmo_tiny", 7)
    sides = {lm.side: lm.fusion for lm in found.language_models}
    assert sides == {side: fusion for side, fusion in (("source", src), ("target", tgt)) if fusion != "none"}
    assert [mix.side for mix in found.mixes] == [side for side, fusion in sides.items() if fusion == "elmo"]


def test_weights_of_ones_own_that_are_called_as_those_of_a_mix_are_none(saved: Any) -> None:
    _, path = saved("finetune", "none")
    state = torch.load(path, weights_only=True)
    state["model"]["encoder.embed_tokens.representation.mix.weights"] = torch.zeros(3)
    torch.save(state, path)
    assert inspect_checkpoint(path).mixes == []


def test_tied_embeddings_count_once_after_the_sharing_was_lost(saved: Any, tmp_path: Path) -> None:
    _, path = saved("none", "none", share_decoder_input_output_embed=True)
    total = inspect_checkpoint(path).total
    state = torch.load(path, weights_only=True)
    state["model"] = {name: tensor.clone() for name, tensor in state["model"].items()}
    torch.save(state, path)
    assert inspect_checkpoint(path).total == total


def test_two_language_models_that_are_equal_are_two(saved: Any) -> None:
    """As in a converted model with the same one on both sides."""
    _, path = saved("elmo", "elmo")
    before = inspect_checkpoint(path)
    state = torch.load(path, weights_only=True)
    weights = state["model"]
    lm = "embed_tokens.representation.lm"
    layers = f"decoder.{lm}.layers.0.ffn.fc1.weight", f"encoder.{lm}.forward_layers.0.ffn.fc1.weight"
    assert weights[layers[0]].shape == weights[layers[1]].shape
    weights[layers[0]] = weights[layers[1]].clone()
    torch.save(state, path)
    after = inspect_checkpoint(path)
    assert (after.total, after.trainable, after.frozen) == (before.total, before.trainable, before.frozen)


def test_language_models_inside(saved: Any, src_lm: Path) -> None:
    model, path = saved("elmo", "finetune")
    source, target = inspect_checkpoint(path).language_models
    inside = model.encoder.embed_tokens.representation.lm
    assert (source.kind, source.frozen) == ("cloze language model", True)
    assert (target.kind, target.frozen) == ("causal language model", False)
    assert source.dictionary_hash == inside.dictionary_hash
    assert source.parameters == sum(parameter.numel() for parameter in inside.parameters())


@pytest.mark.parametrize(("side", "layers"), [("src", 1), ("src", 2), ("tgt", 1)])
@pytest.mark.parametrize("flags", [{}, {"single_tower": True}], ids=["two towers", "one tower"])
def test_a_partly_frozen_lm_is_counted_as_it_trains(
    saved: Any, make_cloze: Any, save_lm: Any, side: str, layers: int, flags: dict[str, Any]
) -> None:
    save_lm(make_cloze(**flags), "source_lm.pt")
    cell = ("finetune", "elmo") if side == "src" else ("none", "finetune")
    model, path = saved(*cell, **{f"{side}_lm_freeze_layers": layers})
    found = inspect_checkpoint(path)
    part = {"src": model.encoder, "tgt": model.decoder}[side].embed_tokens.lm
    (lm,) = (lm for lm in found.language_models if lm.fusion == "finetune")
    trained = sum(parameter.numel() for parameter in part.parameters() if parameter.requires_grad)
    assert 0 < lm.trained == trained < lm.parameters
    assert (lm.tensors, lm.frozen, lm.frozen_layers) == (len(list(part.parameters())), False, layers)
    assert found.trainable == sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    assert found.trainable + found.frozen == found.total


def test_how_a_lm_is_trained_is_told(saved: Any, capsys: pytest.CaptureFixture[str]) -> None:
    flags = {"src_lm_lr_scale": 0.1, "src_lm_freeze_layers": 1, "src_lm_freeze_updates": 500}
    _, path = saved("finetune", "finetune", **flags)
    source, target = inspect_checkpoint(path).language_models
    assert (source.lr_scale, source.frozen_layers, source.frozen_updates) == (0.1, 1, 500)
    assert (target.lr_scale, target.frozen_layers, target.frozen_updates) == (1.0, 0, 0)
    assert target.trained == target.parameters
    cli.main(["inspect", str(path)])
    printed = capsys.readouterr().out
    assert f"{source.tensors} tensors, {source.parameters:,} parameters, {source.trained:,} of them trained" in printed
    assert "(embeddings and 1 lower layer frozen) with 0.1 times the learning rate after the first 500 upd" in printed
    assert "updates (not over yet)" in printed
    assert f"finetune, {target.tensors} tensors, {target.parameters:,} parameters, trained\n" in printed


def test_mixing_weights_are_the_softmax(make_cell: Any, task: Any, tmp_path: Path) -> None:
    from lmfusion.fusion.model import TransformerLMFusion

    cfg = make_cell("elmo", "elmo")
    model = TransformerLMFusion.build_model(cfg, task)
    mix = model.encoder.embed_tokens.representation.mix
    with torch.no_grad():
        mix.weights[1] = torch.log(torch.tensor(3.0))
        mix.gamma.fill_(0.5)
    save_seq2seq(tmp_path / "checkpoint.pt", model, cfg)

    source, target = inspect_checkpoint(tmp_path / "checkpoint.pt").mixes

    assert source.gamma == 0.5
    assert source.shares == pytest.approx(
        {"embedding": 1 / 7, "layer 1": 3 / 7, "layer 2": 1 / 7, "context": 1 / 7, "joined": 1 / 7}
    )
    assert target.shares == pytest.approx({"embedding": 1 / 3, "layer 1": 1 / 3, "layer 2": 1 / 3})


def test_states_of_a_pair_of_lms_have_no_join() -> None:
    pair = {"family": "bi_transformer_lm", "targets": ["future", "past"]}
    assert state_names(pair, 3) == ["embedding", "layer 1", "layer 2"]


@pytest.mark.parametrize(
    ("maker", "kind", "architecture"),
    [
        ("make_cloze", "cloze language model", "bi_transformer_lm"),
        ("make_causal", "causal language model", "uni_transformer_lm"),
    ],
)
def test_language_model_checkpoints(
    request: pytest.FixtureRequest, save_lm: Any, maker: str, kind: str, architecture: str
) -> None:
    lm = request.getfixturevalue(maker)()
    found = inspect_checkpoint(save_lm(lm))
    assert (found.kind, found.architecture) == (kind, architecture)
    assert found.total == found.trainable == sum(parameter.numel() for parameter in lm.parameters())
    assert (found.language_models, found.mixes, found.updates) == ([], [], None)


def test_equal_biases_count_twice() -> None:
    assert count_parameters({"a.bias": torch.zeros(3), "b.bias": torch.zeros(3)}) == 6


def test_markers_and_dictionaries_are_no_parameters() -> None:
    weights = {"encoder.version": torch.ones(1), "symbols": torch.ones(5, dtype=torch.int32), "w": torch.ones(2)}
    assert count_parameters(weights) == 2


def test_command_shows_everything(saved: Any, capsys: pytest.CaptureFixture[str]) -> None:
    _, path = saved("elmo", "none")
    assert cli.main(["inspect", str(path)]) == 0
    printed = capsys.readouterr().out
    for part in ("sequence-to-sequence model", "src_elmo_tiny", "7 updates", "frozen", "cloze", "context", "20.0% █"):
        assert part in printed


def test_command_prints_json(saved: Any, capsys: pytest.CaptureFixture[str]) -> None:
    _, path = saved("elmo", "none")
    assert cli.main(["inspect", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == inspect_checkpoint(path).to_dict()


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.pt").write_text("no checkpoint")
    with pytest.raises(InputError, match=r"text\.pt"):
        inspect_checkpoint(tmp_path / "text.pt")


ALL_STATES = {"states": {"paired": True, "context": True, "joined": True}}
BROKEN = ["{", "[1]", "7", '{"lm": 3}', '{"reading": {"states": {"x": 1}}}', "[" * 100_000, {"reading": 5}, [1]]
BROKEN += [{"reading": ALL_STATES, "lm": {}}, {"reading": ALL_STATES, "lm": {"decoder_layers": "x"}}]


@pytest.mark.parametrize("side", ["src", "tgt"])
@pytest.mark.parametrize("value", BROKEN, ids=lambda value: str(value)[:20])
def test_a_broken_description_of_a_language_model_is_one_line(
    saved: Any, capsys: pytest.CaptureFixture[str], side: str, value: Any
) -> None:
    _, path = saved("elmo", "elmo")
    state = torch.load(path, weights_only=True)
    state["cfg"]["model"][f"{side}_lm_config"] = value
    torch.save(state, path)
    assert cli.main(["inspect", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert str(path) in error
