"""What holds of every registered family, by itself and under heads."""

from __future__ import annotations

import json
from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lmfusion.consumers.head_model import HeadsConfig, HeadsModel
from lmfusion.consumers.heads import HeadSpec
from lmfusion.errors import InputError
from lmfusion.lm.freezing import state_fingerprint
from lmfusion.lm.interface import FAMILIES, LAYERS, TOP
from lmfusion.lm.loading import build, describe
from lmfusion.training.smart import Changes


def test_every_registered_family_is_here(families: list[str]) -> None:
    assert set(families) - {"random_vectors"} == {
        name for name, family in FAMILIES.items() if family.__module__.startswith("lmfusion.")
    }


@torch.no_grad()
def test_states_are_those_that_were_asked_for_and_have_names(lm: Any) -> None:
    tokens = torch.tensor([[2, 5, 9, 4, 2]])
    both = lm.states(tokens, want={LAYERS, TOP})
    assert both.names == lm.state_names
    assert [state.shape for state in both.layers] == [(1, 5, lm.state_dim)] * lm.num_states
    assert both.top.shape == (1, 5, lm.embed_dim)
    assert lm.states(tokens, want={LAYERS}).top is None
    assert lm.states(tokens, want={TOP}).layers == []
    for state, other in zip(both.layers, lm.layer_states(tokens), strict=True):
        torch.testing.assert_close(state, other)
    torch.testing.assert_close(both.top, lm.top_state(tokens))
    pooled = lm.pool(both.top, torch.tensor([[False, False, False, True, True]]))
    assert pooled.shape == (1, lm.embed_dim)


@torch.no_grad()
def test_a_state_sees_later_words_just_where_the_family_says_so(lm: Any) -> None:
    before, after = (lm.states(torch.tensor([[2, 5, 9, last, 2]]), want={LAYERS, TOP}) for last in (4, 8))
    moved = max((one - other)[0, 1].abs().max().item() for one, other in zip(before.layers, after.layers))
    assert (max(moved, (before.top - after.top)[0, 1].abs().max().item()) > 1e-4) == lm.sees_future


@pytest.mark.parametrize("ends", [(5,), (3, 4, 5), (1, 3, 5)], ids=str)
@torch.no_grad()
def test_a_growing_prefix_gives_the_states_of_all_its_new_tokens(incremental_lm: Any, ends: Any) -> None:
    """However many tokens a step adds, also to an empty decoding state."""
    lm, state = incremental_lm, {}
    tokens = torch.tensor([[2, 5, 9, 4, 6], [2, 7, 7, 8, 2]])
    whole, start = lm.states(tokens, want={LAYERS, TOP}), 0
    for end in ends:
        new = lm.states(tokens[:, :end], state, want={LAYERS, TOP})
        torch.testing.assert_close(new.top, whole.top[:, start:end], rtol=0, atol=2e-5)
        for layer, expected in zip(new.layers, whole.layers, strict=True):
            torch.testing.assert_close(layer, expected[:, start:end], rtol=0, atol=2e-5)
        start = end


@torch.no_grad()
def test_a_model_built_from_its_description_is_the_same(lm: Any) -> None:
    copy = build(json.loads(json.dumps(describe(lm))), lm.symbols)
    copy.load_state_dict(lm.state_dict())
    assert state_fingerprint(copy) == state_fingerprint(lm)
    assert copy.vocabulary.opening == lm.vocabulary.opening
    tokens = torch.tensor([[2, 5, 9, 4, 2]])
    torch.testing.assert_close(copy.eval().top_state(tokens), lm.top_state(tokens), rtol=0, atol=0)


def test_text_becomes_framed_ids_and_text_again(lm: Any) -> None:
    ids = lm.encode("w1 w5 w0")
    assert ids.tolist() == [[*lm.vocabulary.opening, 5, 9, 4, 2]]
    assert lm.decode(ids) == "w1 w5 w0"
    with pytest.raises(InputError, match="99"):
        lm.decode(torch.tensor([99]))


@pytest.mark.parametrize("fusion", ["elmo", "finetune"])
def test_heads_stand_on_every_family(lm: Any, shake: Any, fusion: str) -> None:
    """The same alone and in a batch; changed embeddings change them; what is frozen stays."""
    specs = [HeadSpec("a", "class", None, ("x", "y")), HeadSpec("b", "score", "cos")]
    specs.append(HeadSpec("c", "tags", None, ("N", "V")))
    known = {name: spec.default for name, spec in HeadsConfig.__dataclass_fields__.items() if not name.startswith("_")}
    described = json.dumps({"lm": describe(lm, []), "states": lm.state_names, "fingerprint": "of the tests"})
    cfg = Namespace(**{**known, "src_fusion": fusion, "src_lm_config": described, "head_dropout": 0.0})
    model = shake(HeadsModel.build_model(cfg, SimpleNamespace(head_specs=lambda: specs))).eval()
    opening = lm.vocabulary.opening
    rows = [torch.tensor([*opening, *words, 2]) for words in ([5, 9, 4, 11], [6, 7])]
    batch = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=lm.padding_idx)
    alone = [model("a", [rows[1][None]]), model("b", [rows[1][None]] * 2), model("c", [rows[1][None]])[0]]
    together = [model("a", [batch])[1:], model("b", [batch, batch])[1:], model("c", [batch])[1, : len(rows[1])]]
    for one, other in zip(alone, together, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=2e-5)
    changes = Changes((model.lm.token_embedding, model.lm.vocabulary.is_padding))
    with changes.seen():
        plain = model("a", [batch])
    assert [int(mask[..., 0].sum()) for mask in changes.masks] == [int(batch.ne(lm.padding_idx).sum())]
    with changes.added([mask * torch.randn(mask.shape) for mask in changes.masks]):
        assert (model("a", [batch]) - plain).abs().max() > 1e-5
    before = state_fingerprint(model.lm)
    optimizer = torch.optim.SGD([each for each in model.parameters() if each.requires_grad], 0.5)
    model.train()("a", [batch])[:, 0].sum().backward()
    optimizer.step()
    assert (state_fingerprint(model.lm) == before) == (fusion == "elmo")
    copy = HeadsModel.build_model(cfg, SimpleNamespace(head_specs=lambda: specs))
    copy.load_state_dict(model.state_dict())
    torch.testing.assert_close(copy.eval()("a", [batch]), model.eval()("a", [batch]), rtol=0, atol=0)
