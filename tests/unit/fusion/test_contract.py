"""What holds of every registered family x integration x side in every consumer, in process, by registering."""

from __future__ import annotations

import json
import runpy
from argparse import Namespace
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from torch import Tensor

from lmfusion.consumers.head_model import HeadsConfig, HeadsModel
from lmfusion.consumers.heads import HeadSpec
from lmfusion.consumers.lstm import LSTMFusion
from lmfusion.convert.variant import LMOutputSpec, StateList
from lmfusion.errors import InputError
from lmfusion.fusion.interface import FUSIONS
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.inspection import state_names
from lmfusion.lm.freezing import state_fingerprint
from lmfusion.lm.interface import FAMILIES, LAYERS, TOP, PretrainedLM
from lmfusion.lm.loading import build, describe
from lmfusion.training.smart import Changes

TRANSFORMER = {
    "decoder_embed_dim": 16,
    "decoder_ffn_embed_dim": 24,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "tokens_per_sample": 30,
    "max_target_positions": 30,
    "dropout": 0.5,  # that it is off in a frozen model has to show
}
SIZES = {"vocab_size": 24, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
ROTARY = {"num_key_value_heads": 1, "max_position_embeddings": 30, "attention_dropout": 0.5}
RECURRENT = {
    "decoder_embed_dim": 16,
    "decoder_layers": 2,
    "tokens_per_sample": 30,
    "max_target_positions": 30,
    "dropout": 0.5,
}
READING = LMOutputSpec(leading_eos=False, states=StateList(paired=False, context=True, joined=True)).to_dict()
# The example of docs/extending.md is held to the contract, too; an integration of one's own registers before install().
runpy.run_path(str(Path(__file__).parents[3] / "docs" / "own_parts" / "random_vectors.py"), run_name="own_family")
TINY: dict[str, dict[str, Any]] = {
    "bert": TRANSFORMER,
    "cloze": {**TRANSFORMER, "targets": ["self"]},
    "causal": TRANSFORMER,
    "recurrent": {**RECURRENT, "cell": "lstm"},
    "elmo": {**RECURRENT, "cell": "gru"},
    "static": {"channels": 16},
    "huggingface": {
        "model_type": "bert",
        "settings": {**SIZES, "max_position_embeddings": 30, "hidden_dropout_prob": 0.5},
    },
    "huggingface_causal": {"model_type": "qwen2", "settings": {**SIZES, **ROTARY}, "opening": []},
    "random_vectors": {"channels": 16},
    "released": {**TRANSFORMER, "targets": ["self"], "reading": READING},
}
"""For each registered family a configuration of some hundred parameters."""

NAMELESS = ("cloze", "causal", "released")
"""Families that are in checkpoints from before the names of states were kept in them."""

SENTENCES = [[5, 9, 4, 11, 2], [6, 7, 2], [2]]
PREFIXES = [[2, 5, 9, 4, 6], [2, 6, 7], [2]]
SIDES = ("src", "tgt")
ALL = [cell for cell in product(sorted(TINY), sorted(FUSIONS), SIDES) if cell[2] in FUSIONS[cell[1]].sides]
UNUSABLE = [cell for cell in ALL if FUSIONS[cell[1]].refusal(FAMILIES[cell[0]]) is not None]
FITTING = [
    (family, fusion, side)
    for family, fusion, side in sorted(set(ALL) - set(UNUSABLE))
    if side == "src" or not FAMILIES[family].sees_future
]
# A released LM is found inside sequence-to-sequence models only, and a Hugging Face folder is more than a checkpoint
# (tests/unit/huggingface).
NO_FILE = ("released", "huggingface")
REFUSED = sorted(
    {
        (family, fusion)
        for family, fusion, _ in ALL
        if "tgt" in FUSIONS[fusion].sides
        if FAMILIES[family].sees_future and family not in NO_FILE
    }
)
CONSUMERS: dict[str, Any] = {"transformer": TransformerLMFusion, "lstm": LSTMFusion}
WITH_CONSUMERS = [
    (consumer, *cell)
    for consumer, cell in product(CONSUMERS, FITTING)
    if consumer == "transformer" or FUSIONS[cell[1]].replaces_embeddings  # what works inside its layers needs them
]
INSIDE = [cell for cell in WITH_CONSUMERS if FUSIONS[cell[2]].keeps_lm]
STARTS = [cell for cell in WITH_CONSUMERS if not FUSIONS[cell[2]].keeps_lm]


def cells(chosen: list[tuple[str, ...]]) -> Any:
    """Parametrize a test, and the consumer that its models are of."""
    names = ("consumer", "family", "fusion", "side")
    return pytest.mark.parametrize(names, chosen, ids=map("-".join, chosen), indirect=["consumer"])


every_cell, with_lm_inside, started = map(cells, (WITH_CONSUMERS, INSIDE, STARTS))
every_family = pytest.mark.parametrize("family", sorted(TINY))
incremental_family = pytest.mark.parametrize("family", sorted(name for name in TINY if FAMILIES[name].incremental))


def test_every_registered_family_is_here() -> None:
    assert set(TINY) - {"random_vectors"} == {
        name for name, family in FAMILIES.items() if family.__module__.startswith("lmfusion.")
    }


@pytest.fixture
def make_lm(dictionary: Dictionary, shake: Any) -> Any:
    def make(family: str) -> PretrainedLM:
        if family.startswith("huggingface"):
            pytest.importorskip("transformers")
        return shake(build({"family": family, **TINY[family]}, dictionary.symbols)).eval()

    return make


@pytest.fixture(params=CONSUMERS)
def consumer(request: Any, make_cfg: Any, make_lstm_cfg: Any) -> SimpleNamespace:
    """A model class, and what makes its flags; the LSTM's attention is the one that keeps something of the source."""
    additive = partial(make_lstm_cfg, decoder_attention="additive", encoder_bidirectional=True)
    make_flags = make_cfg if request.param == "transformer" else additive
    return SimpleNamespace(kind=CONSUMERS[request.param], make_flags=make_flags)


@pytest.fixture
def make_cell(consumer: SimpleNamespace, make_lm: Any, dictionary: Dictionary, shake: Any) -> Any:
    """A model with a language model of a family in it, in eval mode, and its flags."""

    def make(family: str, fusion: str, side: str) -> tuple[Any, Namespace]:
        lm = make_lm(family)
        description = {"lm": describe(lm), "states": lm.state_names, "fingerprint": "of the tests"}
        cfg = consumer.make_flags(**{f"{side}_fusion": fusion, f"{side}_lm_config": json.dumps(description)})
        task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
        model = shake(consumer.kind.build_model(cfg, task))
        model.load_state_dict(model.state_dict())  # the language model has its weights now
        return model.eval(), cfg

    return make


def fusion_of(model: Any, side: str) -> Any:
    return (model.encoder if side == "src" else model.decoder).fusion


def output(model: Any, sources: Tensor, prefixes: Tensor) -> Tensor:
    """B x T x V."""
    logits: Tensor = model(sources, sources.ne(1).sum(1), prefixes)[0]
    return logits


@every_family
@torch.no_grad()
def test_states_are_those_that_were_asked_for_and_have_names(make_lm: Any, family: str) -> None:
    lm, tokens = make_lm(family), torch.tensor([[2, 5, 9, 4, 2]])
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


@every_family
@torch.no_grad()
def test_a_state_sees_later_words_just_where_the_family_says_so(make_lm: Any, family: str) -> None:
    lm = make_lm(family)
    before, after = (lm.states(torch.tensor([[2, 5, 9, last, 2]]), want={LAYERS, TOP}) for last in (4, 8))
    moved = max((one - other)[0, 1].abs().max().item() for one, other in zip(before.layers, after.layers))
    assert (max(moved, (before.top - after.top)[0, 1].abs().max().item()) > 1e-4) == lm.sees_future


@incremental_family
@pytest.mark.parametrize("ends", [(5,), (3, 4, 5), (1, 3, 5)], ids=str)
@torch.no_grad()
def test_a_growing_prefix_gives_the_states_of_all_its_new_tokens(make_lm: Any, family: str, ends: Any) -> None:
    """However many tokens a step adds, also to an empty decoding state."""
    lm, state = make_lm(family), {}
    tokens = torch.tensor([[2, 5, 9, 4, 6], [2, 7, 7, 8, 2]])
    whole, start = lm.states(tokens, want={LAYERS, TOP}), 0
    for end in ends:
        new = lm.states(tokens[:, :end], state, want={LAYERS, TOP})
        torch.testing.assert_close(new.top, whole.top[:, start:end], rtol=0, atol=2e-5)
        for layer, expected in zip(new.layers, whole.layers, strict=True):
            torch.testing.assert_close(layer, expected[:, start:end], rtol=0, atol=2e-5)
        start = end


@every_family
@torch.no_grad()
def test_a_model_built_from_its_description_is_the_same(make_lm: Any, family: str) -> None:
    lm = make_lm(family)
    copy = build(json.loads(json.dumps(describe(lm))), lm.symbols)
    copy.load_state_dict(lm.state_dict())
    assert state_fingerprint(copy) == state_fingerprint(lm)
    assert copy.vocabulary.opening == lm.vocabulary.opening
    tokens = torch.tensor([[2, 5, 9, 4, 2]])
    torch.testing.assert_close(copy.eval().top_state(tokens), lm.top_state(tokens), rtol=0, atol=0)


@every_family
def test_text_becomes_framed_ids_and_text_again(make_lm: Any, family: str) -> None:
    lm = make_lm(family)
    ids = lm.encode("w1 w5 w0")
    assert ids.tolist() == [[*lm.vocabulary.opening, 5, 9, 4, 2]]
    assert lm.decode(ids) == "w1 w5 w0"
    with pytest.raises(InputError, match="99"):
        lm.decode(torch.tensor([99]))


@every_family
@pytest.mark.parametrize("fusion", ["elmo", "finetune"])
def test_heads_stand_on_every_family(make_lm: Any, shake: Any, family: str, fusion: str) -> None:
    """The same alone and in a batch; changed embeddings change them; what is frozen stays."""
    lm = make_lm(family)
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


@every_cell
@torch.no_grad()
def test_a_sentence_gives_the_same_alone_and_under_any_padding(
    make_cell: Any, batch: Any, family: str, fusion: str, side: str
) -> None:
    model, _ = make_cell(family, fusion, side)
    alone = [
        output(model, torch.tensor([source]), torch.tensor([prefix]))[0] for source, prefix in zip(SENTENCES, PREFIXES)
    ]
    for left in (False, True):
        for width in (0, 9):
            together = output(model, batch(SENTENCES, left=left, width=width), batch(PREFIXES))
            for row, expected in zip(together, alone, strict=True):
                torch.testing.assert_close(row[: len(expected)], expected, rtol=0, atol=2e-5)


@every_cell
@torch.no_grad()
def test_step_by_step_is_the_whole_pass_whatever_the_beam_does(
    make_cell: Any, batch: Any, family: str, fusion: str, side: str
) -> None:
    model, _ = make_cell(family, fusion, side)
    sources = batch([SENTENCES[0]] * 3)  # hypotheses of one sentence
    prefixes = torch.tensor([[2, 5, 9, 4], [2, 6, 7, 8], [2, 9, 9, 5]])
    encoded = model.encoder(sources, sources.ne(1).sum(1))
    state: dict[str, Any] = {}
    for step in range(1, prefixes.size(1) + 1):
        if step == 3:  # a beam that goes on with other rows
            order = torch.tensor([2, 0, 0])
            prefixes = prefixes[order]
            encoded = model.encoder.reorder_encoder_out(encoded, order)
            model.decoder.reorder_incremental_state_scripting(state, order)
        logits = model.decoder(prefixes[:, :step], encoder_out=encoded, incremental_state=state)[0]
        expected = output(model, sources, prefixes[:, :step])[:, -1:]
        torch.testing.assert_close(logits, expected, rtol=0, atol=2e-5)


@with_lm_inside
def test_training_moves_a_language_model_only_where_the_integration_says_so(
    make_cell: Any, batch: Any, family: str, fusion: str, side: str
) -> None:
    model, _ = make_cell(family, fusion, side)
    lm = fusion_of(model, side).lm
    before = state_fingerprint(lm)
    model.train()
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    output(model, batch(SENTENCES), batch(PREFIXES)).square().mean().backward()
    optimizer.step()
    gradients = [parameter.grad is not None for parameter in lm.parameters()]
    if FUSIONS[fusion].trains_lm:
        assert all(gradients)
        assert state_fingerprint(lm) != before
    else:
        assert not any(gradients)
        assert state_fingerprint(lm) == before
        assert not any(module.training for module in lm.modules())


@started
def test_a_language_model_that_is_dropped_leaves_weights_of_fairseqs_names(
    make_cell: Any, family: str, fusion: str, side: str
) -> None:
    model, _ = make_cell(family, fusion, side)
    assert not any(".lm." in name or "representation" in name for name in model.state_dict())
    assert all(parameter.requires_grad for parameter in model.parameters())


@every_cell
@torch.no_grad()
def test_a_checkpoint_has_all_that_the_model_is(
    make_cell: Any, batch: Any, dictionary: Dictionary, family: str, fusion: str, side: str
) -> None:
    model, cfg = make_cell(family, fusion, side)
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    again = type(model).build_model(Namespace(**vars(cfg)), task)
    again.load_state_dict(model.state_dict())
    expected = output(model, batch(SENTENCES), batch(PREFIXES))
    torch.testing.assert_close(output(again.eval(), batch(SENTENCES), batch(PREFIXES)), expected, rtol=0, atol=0)


@every_cell
@torch.no_grad()
def test_it_joins_a_trained_model_or_says_why_it_cannot(
    *,
    make_cell: Any,
    consumer: SimpleNamespace,
    dictionary: Dictionary,
    shake: Any,
    tmp_path: Path,
    family: str,
    fusion: str,
    side: str,
) -> None:
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    trained = shake(consumer.kind.build_model(consumer.make_flags(), task)).state_dict()
    torch.save({"cfg": {"model": vars(consumer.make_flags())}, "model": trained}, tmp_path / "trained.pt")
    _, cfg = make_cell(family, fusion, side)
    start = {"restore_file": "checkpoint_last.pt", "save_dir": str(tmp_path), "continue_once": None}
    run = {"checkpoint": SimpleNamespace(**start, finetune_from_model=str(tmp_path / "trained.pt"))}
    flags = Namespace(**vars(cfg), _get_parent=lambda: run)
    if FUSIONS[fusion].replaces_embeddings or not FUSIONS[fusion].keeps_lm:
        with pytest.raises(InputError, match=f"--{side}-fusion {fusion} cannot be added to a trained model: [a-z]"):
            consumer.kind.build_model(flags, task)
        return
    model = consumer.kind.build_model(flags, task)
    lm = state_fingerprint(fusion_of(model, side).lm)
    model.load_state_dict(trained)
    found = {weight.numpy().tobytes() for weight in model.state_dict().values()}
    assert {name for name, weight in trained.items() if weight.numpy().tobytes() not in found} == set()
    assert len(found) > len(trained)
    assert state_fingerprint(fusion_of(model, side).lm) == lm


@with_lm_inside
def test_states_in_a_mix_have_the_names_that_inspect_shows(make_cell: Any, family: str, fusion: str, side: str) -> None:
    model, cfg = make_cell(family, fusion, side)
    part = fusion_of(model, side)
    stored = json.loads(getattr(cfg, f"{side}_lm_config"))
    if hasattr(part, "mix"):
        names, count = stored.pop("states"), part.mix.weights.numel()
        assert state_names({**stored, "states": names}, count) == part.lm.state_names
        if family in NAMELESS:
            assert state_names(stored, count) == part.lm.state_names


@pytest.mark.parametrize(("family", "fusion", "side"), UNUSABLE, ids=map("-".join, UNUSABLE))
def test_an_integration_refuses_a_family_that_lacks_what_it_needs(
    make_cell: Any, family: str, fusion: str, side: str
) -> None:
    with pytest.raises(InputError, match=f"--{side}-fusion {fusion} (cannot use|works inside)"):
        make_cell(family, fusion, side)


@pytest.mark.parametrize(("family", "fusion"), REFUSED, ids=map("-".join, REFUSED))
def test_a_target_side_refuses_what_sees_the_future(
    consumer: SimpleNamespace, make_lm: Any, save_lm: Any, dictionary: Dictionary, family: str, fusion: str
) -> None:
    lm = make_lm(family)
    cfg = consumer.make_flags(tgt_fusion=fusion, tgt_lm=str(save_lm(lm)))
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    with pytest.raises(InputError, match=r"target side|lstm_lmfusion"):
        consumer.kind.build_model(cfg, task)
