"""``load_lm``: one file in, a frozen language model out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import lmfusion
from lmfusion.errors import InputError
from lmfusion.lm.freezing import state_fingerprint
from lmfusion.lm.loading import build, describe, load_lm

TOKENS = torch.tensor([[2, 5, 9, 4, 2], [2, 7, 2, 1, 1]])


def outputs(lm: Any) -> list[torch.Tensor]:
    with torch.no_grad():
        return [lm(TOKENS)[0], *lm.layer_states(TOKENS)]


def test_loading_gives_the_model_that_was_saved(any_cloze_lm: Any, save_lm: Any) -> None:
    loaded = load_lm(save_lm(any_cloze_lm))
    for found, expected in zip(outputs(loaded), outputs(any_cloze_lm), strict=True):
        assert torch.equal(found, expected)
    assert loaded.config == any_cloze_lm.config
    assert loaded.symbols == any_cloze_lm.symbols
    assert loaded.sees_future


def test_loading_a_causal_lm_gives_the_model_that_was_saved(any_causal_lm: Any, save_lm: Any) -> None:
    loaded = load_lm(str(save_lm(any_causal_lm)))
    for found, expected in zip(outputs(loaded), outputs(any_causal_lm), strict=True):
        assert torch.equal(found, expected)
    assert not loaded.sees_future


@pytest.mark.parametrize("place", ["checkpoint_last.pt", "checkpoints/checkpoint_best.pt"])
def test_a_runs_folder_is_its_checkpoint(any_cloze_lm: Any, save_lm: Any, tmp_path: Path, place: str) -> None:
    run = tmp_path / "lm.en"
    (run / place).parent.mkdir(parents=True)
    save_lm(any_cloze_lm).rename(run / place)
    assert state_fingerprint(load_lm(run)) == state_fingerprint(any_cloze_lm)


def test_pair_of_lms_keeps_its_targets(make_cloze: Any, save_lm: Any) -> None:
    loaded = load_lm(save_lm(make_cloze(targets=("future", "past"))))
    assert loaded.config["targets"] == ["future", "past"]
    assert loaded.num_states == loaded.num_layers + 1


def test_load_lm_is_public() -> None:
    assert lmfusion.load_lm is load_lm
    assert Path(lmfusion.USER_DIR, "lm", "loading.py").is_file()


def test_loaded_lm_is_frozen_and_stays_in_eval_mode(make_cloze: Any, save_lm: Any) -> None:
    lm = load_lm(save_lm(make_cloze()))
    holder = torch.nn.ModuleList([lm])
    for model in (lm, holder):
        model.train()
        assert not any(module.training for module in lm.modules())
    assert not any(parameter.requires_grad for parameter in lm.parameters())
    assert torch.equal(lm.top_state(TOKENS), lm.top_state(TOKENS))  # no dropout


def test_unfreezing_makes_everything_trainable_again(make_causal: Any, save_lm: Any) -> None:
    lm = load_lm(save_lm(make_causal())).unfreeze()
    lm.train()
    assert all(module.training for module in lm.modules())
    assert all(parameter.requires_grad for parameter in lm.parameters())
    assert not torch.equal(lm.top_state(TOKENS), lm.top_state(TOKENS))  # dropout


@pytest.mark.parametrize("default", [torch.bfloat16, torch.float64], ids=str)
def test_weights_are_the_files_whatever_torchs_default_is(make_cloze: Any, save_lm: Any, default: torch.dtype) -> None:
    path = save_lm(make_cloze())
    expected = load_lm(path).state_dict()
    before = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        found = load_lm(path).state_dict()
        assert torch.get_default_dtype() == default
    finally:
        torch.set_default_dtype(before)
    assert all(torch.equal(value, found[name]) and value.dtype == found[name].dtype for name, value in expected.items())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_file_loads_in_float32(make_cloze: Any, save_lm: Any, dtype: torch.dtype) -> None:
    lm = make_cloze()
    expected = [parameter.detach().to(dtype).float() for parameter in lm.parameters()]
    loaded = load_lm(save_lm(lm.to(dtype)))
    for found, value in zip(loaded.parameters(), expected, strict=True):
        assert found.dtype == torch.float32
        assert torch.equal(found, value)


def test_overrides_replace_flags_and_none_leaves_them(make_causal: Any, save_lm: Any) -> None:
    path = save_lm(make_causal(dropout=0.1, attention_dropout=0.2))
    lm = load_lm(path, dropout=0.35, attention_dropout=None)
    assert lm.config["dropout"] == 0.35
    assert lm.config["attention_dropout"] == 0.2
    assert lm.embed.dropout == 0.35  # type: ignore[union-attr]
    assert {block.self_attn.dropout for block in lm.layers} == {0.2}  # type: ignore[union-attr]


def test_override_to_zero_is_an_override(make_causal: Any, save_lm: Any) -> None:
    assert load_lm(save_lm(make_causal(dropout=0.1)), dropout=0.0).config["dropout"] == 0.0


@pytest.mark.parametrize("value", [3.0, -0.1, 1, "x", float("nan")])
def test_a_dropout_that_is_no_probability_is_refused(make_causal: Any, save_lm: Any, value: Any) -> None:
    with pytest.raises(InputError, match=f"attention_dropout={value!r}"):
        load_lm(save_lm(make_causal()), attention_dropout=value)


def test_flags_that_an_older_file_lacks_take_their_defaults(make_cloze: Any, save_lm: Any) -> None:
    def forget(state: dict[str, Any]) -> None:
        del state["cfg"]["model"]["concat_final_q"]

    assert load_lm(save_lm(make_cloze(), change=forget)).config["concat_final_q"] is False


def test_description_rebuilds_the_architecture(any_cloze_lm: Any) -> None:
    """What a seq2seq checkpoint keeps of its LM: plain values that JSON can hold."""
    import json

    copy = build(json.loads(json.dumps(describe(any_cloze_lm))), any_cloze_lm.symbols)
    copy.load_state_dict(any_cloze_lm.state_dict())
    for found, expected in zip(outputs(copy.eval()), outputs(any_cloze_lm), strict=True):
        assert torch.equal(found, expected)


def test_dropping_the_softmax_leaves_representations_as_they_are(make_cloze: Any) -> None:
    lm = make_cloze()
    before = outputs(lm)[1:]
    lm.drop_softmax()
    assert "output_weight" not in lm.state_dict()
    with torch.no_grad():
        after = lm.layer_states(TOKENS)
    for found, expected in zip(after, before, strict=True):
        assert torch.equal(found, expected)


def test_fingerprint_tells_weights_apart(make_causal: Any) -> None:
    lm = make_causal()
    before = state_fingerprint(lm)
    assert state_fingerprint(lm) == before
    with torch.no_grad():
        lm.layers[1].ffn.fc2.bias[3] += 1e-6
    assert state_fingerprint(lm) != before
