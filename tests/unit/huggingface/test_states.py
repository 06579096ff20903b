"""States of Hugging Face models are transformers' own, in any padding, whole and step by step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import pytest
import torch
from torch import Tensor

import lmfusion
from lmfusion import cli
from lmfusion.lm.huggingface_models import KINDS
from lmfusion.lm.interface import LAYERS, TOP

pytest.importorskip("transformers")

Saved = Callable[[str], Path]
ENCODERS = sorted(name for name, kind in KINDS.items() if not kind.reads_left_to_right)
DECODERS = sorted(set(KINDS) - set(ENCODERS))
TEXTS = ["Displays the contents of a file.", "No", "This package contains the shared libraries that are needed."]


def theirs(folder: Path, text: str) -> Any:
    """What transformers computes for a sentence alone, with a closing symbol also where its tokenizer has none."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(text)["input_ids"]
    last = tokenizer.sep_token_id if tokenizer.eos_token_id is None else tokenizer.eos_token_id
    ids += [] if ids[-1] == last else [last]
    model = transformers.AutoModel.from_pretrained(folder).eval()
    model = model.get_encoder() if model.config.is_encoder_decoder else model
    return model(input_ids=torch.tensor([ids]), output_hidden_states=True)


def padded(rows: list[Tensor], *, left: bool, width: int) -> Tensor:
    out = torch.full((len(rows), width), 1)
    for number, row in enumerate(rows):
        begin = width - len(row) if left else 0
        out[number, begin : begin + len(row)] = row
    return out


@pytest.mark.parametrize("model_type", sorted(KINDS))
@torch.no_grad()
def test_states_are_those_of_transformers_whatever_the_padding(saved_models: Saved, model_type: str) -> None:
    folder = saved_models(model_type)
    lm = lmfusion.load_lm(folder)
    rows = [lm.encode(text)[0] for text in TEXTS]
    longest = max(map(len, rows))
    assert longest < 60
    for left, width in ((False, longest), (True, longest), (False, 75), (True, 75)):
        found = lm.states(padded(rows, left=left, width=width), want={LAYERS, TOP})
        for number, text in enumerate(TEXTS):
            expected, length = theirs(folder, text), len(rows[number])
            part = slice(width - length, None) if left else slice(0, length)
            assert len(found.layers) == len(expected.hidden_states) == lm.num_states
            for ours, own in zip([*found.layers, found.top], [*expected.hidden_states, expected.last_hidden_state]):
                torch.testing.assert_close(ours[number, part], own[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("model_type", ENCODERS)
@torch.no_grad()
def test_the_texts_of_a_pair_are_in_the_segments_of_pretraining(saved_models: Saved, model_type: str) -> None:
    """Of BERT and those like it 0 and 1; checkpoints from before that was so keep 0 for both."""
    import transformers

    folder = saved_models(model_type)
    lm = lmfusion.load_lm(folder)
    frame = len(lm.vocabulary.opening)
    first, second = (lm.encode(text)[0, frame:-1] for text in TEXTS[:2])
    row = lm.vocabulary.pair(first, second)
    later = torch.arange(len(row)) > frame + len(first)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    model = model.get_encoder() if model.config.is_encoder_decoder else model
    ids = lm.vocabulary.to_model(row)[None]
    assert ids[0].tolist() == transformers.AutoTokenizer.from_pretrained(folder)(*TEXTS[:2]).input_ids
    segments = {"token_type_ids": later.long()[None]} if model_type in ("bert", "electra") else {}
    expected = {True: model(input_ids=ids, **segments), False: model(input_ids=ids)}
    for given, wanted in ((lm.config, expected[True]), ({**lm.config, "segments": False}, expected[False])):
        again = type(lm).build(given, lm.symbols)
        again.load_state_dict(lm.state_dict())
        top = again.eval().top_state(padded([row], left=True, width=len(row) + 3))
        torch.testing.assert_close(top[0, 3:], wanted.last_hidden_state[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("model_type", DECODERS)
@torch.no_grad()
def test_step_by_step_with_a_changing_beam_is_the_whole_pass(saved_models: Saved, model_type: str) -> None:
    lm = lmfusion.load_lm(saved_models(model_type))
    prefixes = torch.randint(4, len(lm.symbols), (3, 12))
    prefixes[:, 0] = 2  # fairseq's prefixes begin with </s>
    state: dict[str, Any] = {}
    for step in range(1, prefixes.size(1) + 1):
        if step in (3, 7):
            order = torch.tensor([2, 0, 0])
            prefixes = prefixes[order]
            lm.reorder_incremental_state(state, order)
        found = lm.states(prefixes[:, :step], state, want={LAYERS, TOP})
        whole = lm.states(prefixes[:, :step], want={LAYERS, TOP})
        for ours, expected in zip([*found.layers, found.top], [*whole.layers, whole.top]):
            assert ours.size(1) == 1
            torch.testing.assert_close(ours, expected[:, -1:], rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_a_target_begins_with_the_models_own_first_symbol(saved_models: Saved) -> None:
    """fairseq's prefixes begin with </s>; Llama was trained with <s> there, and the two are different rows."""
    lm = lmfusion.load_lm(saved_models("llama"))
    words = lm.encode("a file")[0, 1:-1].tolist()
    as_target, as_source = (lm.top_state(torch.tensor([[first, *words]])) for first in (2, 0))
    torch.testing.assert_close(as_target, as_source, rtol=0, atol=0)


@pytest.mark.parametrize("model_type", ["llama", "modernbert"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@torch.no_grad()
def test_rotary_positions_stay_exact_in_half_precision(
    saved_models: Saved, model_type: str, dtype: torch.dtype
) -> None:
    lm = lmfusion.load_lm(saved_models(model_type))
    before = {name: table.clone() for name, table in lm.named_buffers() if "inv_freq" in name}
    lm.to(dtype)
    after = dict(lm.named_buffers())
    assert before
    for name, table in before.items():
        torch.testing.assert_close(after[name], table, rtol=0, atol=0)
    assert lm.top_state(lm.encode("a file")).dtype == dtype


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("model_type", sorted(KINDS))
@torch.no_grad()
def test_half_precision_is_float32_but_for_rounding(saved_models: Saved, model_type: str, dtype: str) -> None:
    lm, half = (lmfusion.load_lm(saved_models(model_type), dtype=name) for name in ("float32", dtype))
    exact = lm.layer_states(lm.encode("a file"))
    for ours, expected in zip(half.layer_states(half.encode("a file")), exact, strict=True):
        assert ours.dtype == getattr(torch, dtype)
        assert (ours.float() - expected).norm() < 0.05 * expected.norm()


def test_a_sentence_may_have_as_many_tokens_as_positions_are_left_by_the_frame(saved_models: Saved) -> None:
    limits = {
        name: lmfusion.load_lm(saved_models(name)).max_positions() for name in ("bert", "roberta", "gpt2", "llama")
    }
    # <s> or [CLS] takes one; RoBERTa's positions begin at 2 where its padding symbol is 1.
    assert limits == {"bert": 59, "roberta": 57, "gpt2": 60, "llama": 59}
    lm = lmfusion.load_lm(saved_models("roberta"))
    row = torch.tensor([[0, *[9] * 56, 2]])
    assert lm.top_state(row).isfinite().all()
    with pytest.raises(lmfusion.InputError, match="59 tokens is longer than the 58"):
        lm.top_state(torch.tensor([[0, *[9] * 57, 2]]))


@pytest.mark.parametrize("model_type", sorted(KINDS))
def test_dropouts_can_be_replaced_for_fine_tuning(saved_models: Saved, model_type: str) -> None:
    kind = KINDS[model_type]
    wanted = {name: 0.375 for name in ("dropout", "attention_dropout") if getattr(kind, name)}
    lm = lmfusion.load_lm(saved_models(model_type), **wanted)
    settings = lm.model.config.to_dict()
    for name in wanted:
        assert {settings[field] for field in getattr(kind, name)} == {0.375}
    if kind.dropout:
        assert any(0.375 in (getattr(part, "p", None), getattr(part, "dropout", None)) for part in lm.modules())
    else:
        with pytest.raises(lmfusion.InputError, match="has no dropout to set"):
            lmfusion.load_lm(saved_models(model_type), dropout=0.1)


def test_lower_layers_can_be_frozen_by_number(saved_models: Saved) -> None:
    for model_type in sorted(KINDS):
        lm = lmfusion.load_lm(saved_models(model_type)).unfreeze()
        lm.freeze_layers(1)
        frozen = {name for name, weight in lm.named_parameters() if not weight.requires_grad}
        places = {name: lm.layer_of(name) for name, _ in lm.named_parameters()}
        assert frozen == {name for name, place in places.items() if place is not None and place <= 1}
        assert {0, 1, 2} <= set(places.values())


@torch.no_grad()
def test_a_frozen_model_takes_half_the_memory_in_16_bits(saved_models: Saved) -> None:
    folder = saved_models("llama")
    lm, half = lmfusion.load_lm(folder), lmfusion.load_lm(folder, dtype="bfloat16")
    assert {weight.dtype for weight in half.parameters()} == {torch.bfloat16}
    for name, weight in half.named_parameters():
        torch.testing.assert_close(weight, lm.get_parameter(name).bfloat16(), rtol=0, atol=0)
    tokens = lm.encode("A file")
    difference = (half.top_state(tokens).float() - lm.top_state(tokens)).abs().max()
    assert 0 < difference < 0.1
    with pytest.raises(lmfusion.InputError, match="float32, bfloat16"):
        lmfusion.load_lm(folder, dtype="int8")


@pytest.mark.parametrize("model_type", ["roberta", "llama"])
def test_a_folder_is_described_as_a_side_would_have_it(saved_models: Saved, capsys: Any, model_type: str) -> None:
    import transformers

    model = transformers.AutoModel.from_pretrained(saved_models(model_type))
    assert cli.main(["inspect", str(saved_models(model_type)), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert model_type in found["kind"]
    assert found["channels"] == model.config.hidden_size
    assert len(found["layers"]) == 1 + model.config.num_hidden_layers
    assert found["parameters"] == sum(
        weight.numel() for name, weight in model.named_parameters() if not name.startswith("pooler.")
    )
    assert cli.main(["inspect", str(saved_models(model_type))]) == 0
    assert f"{found['parameters']:,}" in capsys.readouterr().out
