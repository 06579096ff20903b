"""Ways of reading a language model that models of the released code have beside ours, and positions side by side."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from lmfusion.convert.variant import FORWARD, HIDES_SELF, LMOutputSpec, ReleasedLM, StateList, names_not_kept
from lmfusion.errors import InputError
from lmfusion.fusion.combinations import check_combination
from lmfusion.fusion.config import FusionConfig
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.fusion.source import SourceEmbedding
from lmfusion.lm.transformer.layout import RowLayout

TOKENS = torch.tensor([[2, 5, 9, 4, 2], [2, 6, 7, 2, 1]])
LEFT = torch.tensor([[2, 5, 9, 4, 2], [1, 2, 6, 7, 2]])


def read_as(lm: Any, **reading: Any) -> ReleasedLM:
    """The same language model, read in another way."""
    other = ReleasedLM({**lm.config, "reading": LMOutputSpec(**reading).to_dict()}, lm.dictionary)
    other.load_state_dict(lm.state_dict())
    return other.eval()


def towers(lm: Any) -> Any:
    """Forward and backward states of the embeddings and each layer."""
    return lm.tower_states(TOKENS, RowLayout(TOKENS.eq(1)))


@torch.no_grad()
def test_states_of_both_towers_one_after_the_other(make_cloze: Any) -> None:
    lm = make_cloze()
    forward, backward = towers(lm)
    states = StateList(paired=False, context=True, joined=True)
    found = read_as(lm, states=states).layer_states(TOKENS)
    expected = [forward[0]] + [state for pair in zip(forward[1:], backward[1:]) for state in pair]
    top = lm.top_state(TOKENS)
    assert states.names(2) == [
        *("embedding", "layer 1 forward", "layer 1 backward", "layer 2 forward", "layer 2 backward"),
        *("context forward", "context backward", "joined"),
    ]
    assert len(found) == 8
    for state, other in zip(found, expected):
        assert torch.equal(state, other)
    assert torch.equal(found[-1][0], top[0])
    assert torch.equal(found[-3][0, 1:], top[0, :-1])
    assert torch.equal(found[-2][0, :-1], top[0, 1:])
    assert not found[-3][0, 0].any()
    assert not found[-2][0, -1].any()


@torch.no_grad()
@pytest.mark.parametrize("tokens", [TOKENS, LEFT], ids=["padding on the right", "padding on the left"])
def test_context_of_a_pair_is_its_backward_towers(make_cloze: Any, tokens: torch.Tensor) -> None:
    lm = make_cloze(targets=("future", "past"))
    states = StateList(paired=True, context=True, joined=False)
    found = read_as(lm, states=states).layer_states(tokens)
    assert len(found) == lm.num_states + 1 == len(states.names(2)) == 4
    alone = TOKENS[1:, :4]
    backward = lm.tower_states(alone, RowLayout(alone.eq(1)))[1][-1][0]
    context = found[-1][1][tokens[1].ne(1)]
    zero = torch.zeros(1, lm.embed_dim)
    expected = torch.cat([torch.cat([zero, backward[:-1]]), torch.cat([backward[1:], zero])], dim=1)
    torch.testing.assert_close(context, expected, rtol=0, atol=1e-5)


def test_mix_has_a_share_for_every_state_of_the_list(make_cloze: Any, make_fusion: Any) -> None:
    lm = read_as(make_cloze(), states=StateList(paired=False, context=False, joined=False))
    mixed = make_fusion("elmo", lm, 7, elmo_affine=True)
    assert mixed.mix.weights.numel() == 1 + 2 * lm.num_layers
    assert mixed.projection is not None
    assert mixed.projection.weight.shape == (7, lm.embed_dim)
    assert mixed(TOKENS).shape == (2, 5, 7)


@torch.no_grad()
def test_top_state_with_the_token_hidden_is_what_was_pretrained(make_cloze: Any) -> None:
    lm = make_cloze()
    wide = lm.top_state(TOKENS)
    narrow = read_as(lm, top=HIDES_SELF).top_state(TOKENS)
    torch.testing.assert_close(lm.output_layer(narrow), lm(TOKENS)[0], rtol=0, atol=1e-6)
    assert (wide - narrow).abs().max() > 1e-2


@torch.no_grad()
def test_top_state_of_a_pair_can_be_its_forward_towers(make_cloze: Any) -> None:
    lm = make_cloze(targets=("future", "past"))
    with pytest.raises(InputError, match="no single top state"):
        lm.check_top_state()
    forward = read_as(lm, top=FORWARD)
    forward.check_top_state()
    assert torch.equal(forward.top_state(TOKENS), towers(lm)[0][-1])


@torch.no_grad()
def test_source_without_the_leading_eos(make_cloze: Any, make_fusion: Any, dictionary: Any) -> None:
    lm, source = make_cloze(), TOKENS[:1, 1:]
    without = make_fusion("elmo", read_as(lm, leading_eos=False), 32).eval()
    mixed = make_fusion("elmo", lm, 32).eval()
    assert torch.equal(SourceEmbedding(mixed, dictionary, 32)(source), mixed(TOKENS[:1])[:, 1:])
    assert torch.equal(SourceEmbedding(without, dictionary, 32)(source), mixed(source))


def test_checkpoints_from_before_say_how_their_lm_is_read(make_cfg: Any, make_cloze: Any, task: Any) -> None:
    lm = {"family": "bi_transformer_lm", **make_cloze().config}
    states = StateList(paired=False, context=False, joined=True)
    reading = LMOutputSpec(leading_eos=False, top=HIDES_SELF, states=states)
    stored = json.dumps({"lm": lm, "fingerprint": "", "reading": reading.to_dict()})
    model = TransformerLMFusion.build_model(make_cfg(src_fusion="elmo", src_lm_config=stored), task)
    inside = model.encoder.fusion.lm
    assert isinstance(inside, ReleasedLM)
    assert inside.output_spec == reading
    assert inside.vocabulary.opening == []
    assert model.encoder.fusion.mix.weights.numel() == 6
    usual = json.dumps({"lm": lm, "fingerprint": "", "reading": LMOutputSpec().to_dict()})
    model = TransformerLMFusion.build_model(make_cfg(src_fusion="elmo", src_lm_config=usual), task)
    assert model.encoder.fusion.lm.family == "cloze"


@pytest.mark.parametrize(
    ("flags", "encoder", "decoder"),
    [
        ({}, True, True),
        ({"src_positions": "none"}, False, True),
        ({"tgt_positions": "none"}, True, False),
        ({"no_token_positional_embeddings": True}, False, False),
    ],
)
def test_positions_of_each_side(make_cfg: Any, task: Any, flags: dict[str, Any], encoder: bool, decoder: bool) -> None:
    model = TransformerLMFusion.build_model(make_cfg(**flags), task)
    assert (model.encoder.embed_positions is not None) == encoder
    assert (model.decoder.embed_positions is not None) == decoder


@pytest.mark.parametrize(("choice", "expected"), [("auto", False), ("own", True), ("none", False)])
def test_positions_behind_a_frozen_source_lm(make_cell: Any, task: Any, choice: str, expected: bool) -> None:
    model = TransformerLMFusion.build_model(make_cell("elmo", "none", src_positions=choice), task)
    assert (model.encoder.embed_positions is not None) == expected


def test_contradicting_positions_are_refused(make_cfg: Any) -> None:
    with pytest.raises(InputError, match="--no-token-positional-embeddings contradicts --src-positions own"):
        check_combination(make_cfg(no_token_positional_embeddings=True, src_positions="own"))
    with pytest.raises(InputError, match="--encoder-learned-pos would be ignored"):
        check_combination(make_cfg(encoder_learned_pos=True, src_positions="none"))


def test_positions_are_flags_of_the_command_line() -> None:
    from argparse import ArgumentParser

    parser = ArgumentParser()
    TransformerLMFusion.add_args(parser)
    assert parser.parse_args(["--src-positions", "own"]).src_positions == "own"
    assert FusionConfig.__dataclass_fields__["tgt_positions"].default == "auto"


@pytest.mark.parametrize(
    ("lm", "last"),
    [
        ({"family": "cloze"}, ["context", "joined"]),
        ({"family": "cloze", "targets": ["self", "future"]}, ["context", "joined"]),
        ({"family": "cloze", "targets": ["future", "past"]}, ["layer 3", "layer 4"]),
        ({"family": "causal"}, ["layer 3", "layer 4"]),
    ],
    ids=str,
)
def test_names_of_the_states_in_a_checkpoint_that_does_not_keep_them(lm: dict[str, Any], last: list[str]) -> None:
    """An old description without targets is of a cloze LM with its joining block."""
    assert names_not_kept(lm, 5) == ["embedding", "layer 1", "layer 2", *last]
