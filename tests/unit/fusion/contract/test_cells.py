"""What holds of every cell: its numbers, its training, its checkpoints, what a trained model takes in, and refusals."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lmfusion.errors import InputError
from lmfusion.fusion.interface import FUSIONS
from lmfusion.inspection import state_names
from lmfusion.lm.freezing import state_fingerprint

NAMELESS = ("cloze", "causal", "released")
"""Families that are in checkpoints from before the names of states were kept in them."""

SENTENCES = [[5, 9, 4, 11, 2], [6, 7, 2], [2]]
PREFIXES = [[2, 5, 9, 4, 6], [2, 6, 7], [2]]


@torch.no_grad()
def test_a_sentence_gives_the_same_alone_and_under_any_padding(cell: Any, batch: Any, output: Any) -> None:
    alone = [
        output(cell.model, torch.tensor([source]), torch.tensor([prefix]))[0]
        for source, prefix in zip(SENTENCES, PREFIXES)
    ]
    for left in (False, True):
        for width in (0, 9):
            together = output(cell.model, batch(SENTENCES, left=left, width=width), batch(PREFIXES))
            for row, expected in zip(together, alone, strict=True):
                torch.testing.assert_close(row[: len(expected)], expected, rtol=0, atol=2e-5)


@torch.no_grad()
def test_step_by_step_is_the_whole_pass_whatever_the_beam_does(cell: Any, batch: Any, output: Any) -> None:
    encoder, decoder = cell.model.encoder, cell.model.decoder
    sources = batch([SENTENCES[0]] * 3)  # hypotheses of one sentence
    prefixes = torch.tensor([[2, 5, 9, 4], [2, 6, 7, 8], [2, 9, 9, 5]])
    encoded = encoder(sources, sources.ne(1).sum(1))
    state: dict[str, Any] = {}
    for step in range(1, prefixes.size(1) + 1):
        if step == 3:  # a beam that goes on with other rows
            order = torch.tensor([2, 0, 0])
            prefixes = prefixes[order]
            encoded = encoder.reorder_encoder_out(encoded, order)
            decoder.reorder_incremental_state_scripting(state, order)
        logits = decoder(prefixes[:, :step], encoder_out=encoded, incremental_state=state)[0]
        expected = output(cell.model, sources, prefixes[:, :step])[:, -1:]
        torch.testing.assert_close(logits, expected, rtol=0, atol=2e-5)


def test_training_moves_a_language_model_only_where_the_integration_says_so(
    cell_with_lm: Any, batch: Any, output: Any
) -> None:
    model, lm = cell_with_lm.model, cell_with_lm.part.lm
    before = state_fingerprint(lm)
    model.train()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    output(model, batch(SENTENCES), batch(PREFIXES)).square().mean().backward()
    optimizer.step()
    gradients = [parameter.grad is not None for parameter in lm.parameters()]
    if FUSIONS[cell_with_lm.fusion].trains_lm:
        assert all(gradients)
        assert state_fingerprint(lm) != before
    else:
        assert not any(gradients)
        assert state_fingerprint(lm) == before
        assert not any(module.training for module in lm.modules())


def test_a_language_model_that_is_dropped_leaves_weights_of_fairseqs_names(started_cell: Any) -> None:
    model = started_cell.model
    assert not any(".lm." in name or "representation" in name for name in model.state_dict())
    assert all(parameter.requires_grad for parameter in model.parameters())


@torch.no_grad()
def test_a_checkpoint_has_all_that_the_model_is(cell: Any, batch: Any, output: Any, task: Any) -> None:
    again = type(cell.model).build_model(Namespace(**vars(cell.cfg)), task)
    again.load_state_dict(cell.model.state_dict())
    found, expected = (output(model, batch(SENTENCES), batch(PREFIXES)) for model in (again.eval(), cell.model))
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


@torch.no_grad()
def test_it_joins_a_trained_model_or_says_why_it_cannot(cell: Any, task: Any, shake: Any, tmp_path: Path) -> None:
    kind, make_flags = cell.consumer.kind, cell.consumer.make_flags
    trained = shake(kind.build_model(make_flags(), task)).state_dict()
    torch.save({"cfg": {"model": vars(make_flags())}, "model": trained}, tmp_path / "trained.pt")
    start = {"restore_file": "checkpoint_last.pt", "save_dir": str(tmp_path), "continue_once": None}
    run = {"checkpoint": SimpleNamespace(**start, finetune_from_model=str(tmp_path / "trained.pt"))}
    cell.cfg = Namespace(**vars(cell.cfg), _get_parent=lambda: run)
    if FUSIONS[cell.fusion].replaces_embeddings or not FUSIONS[cell.fusion].keeps_lm:
        refusal = f"--{cell.side}-fusion {cell.fusion} cannot be added to a trained model: [a-z]"
        with pytest.raises(InputError, match=refusal):
            kind.build_model(cell.cfg, task)
        return
    cell.model = kind.build_model(cell.cfg, task)
    lm = state_fingerprint(cell.part.lm)
    cell.model.load_state_dict(trained)
    found = {weight.numpy().tobytes() for weight in cell.model.state_dict().values()}
    assert {name for name, weight in trained.items() if weight.numpy().tobytes() not in found} == set()
    assert len(found) > len(trained)
    assert state_fingerprint(cell.part.lm) == lm


def test_states_in_a_mix_have_the_names_that_inspect_shows(cell_with_lm: Any) -> None:
    part = cell_with_lm.part
    stored = json.loads(getattr(cell_with_lm.cfg, f"{cell_with_lm.side}_lm_config"))
    if hasattr(part, "mix"):
        names, count = stored.pop("states"), part.mix.weights.numel()
        assert state_names({**stored, "states": names}, count) == part.lm.state_names
        if cell_with_lm.family in NAMELESS:
            assert state_names(stored, count) == part.lm.state_names


def test_an_integration_refuses_a_family_that_lacks_what_it_needs(make_cell: Any, unusable: tuple[str, ...]) -> None:
    *_, fusion, side = unusable
    with pytest.raises(InputError, match=f"--{side}-fusion {fusion} (cannot use|works inside)"):
        make_cell(*unusable)


def test_a_target_side_refuses_what_sees_the_future(
    consumers: Any, make_lm: Any, save_lm: Any, task: Any, seeing_the_future: tuple[str, ...]
) -> None:
    consumer, family, fusion = seeing_the_future
    chosen = consumers[consumer]
    cfg = chosen.make_flags(tgt_fusion=fusion, tgt_lm=str(save_lm(make_lm(family))))
    with pytest.raises(InputError, match=r"target side|lstm_lmfusion"):
        chosen.kind.build_model(cfg, task)
