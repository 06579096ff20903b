"""Sequence-to-sequence models of every kind, converted, against the independent calculation on the released weights."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import lmfusion
from lmfusion.convert import Inputs, convert

SOURCE, PREFIX = [5, 9, 4, 11, 7, 2], [2, 6, 8, 4, 4]
ELMO_SRC, BILM_SRC = {"encoder_embed_path": "elmo:lm.pt"}, {"encoder_embed_path": "bilm:lm.pt"}
ELMO_TGT, BILM_TGT = {"decoder_embed_path": "elmo:lm.pt"}, {"decoder_embed_path": "bilm:lm.pt"}
AFFINE = {"elmo_affine": True, "no_enc_token_positional_embeddings": True}
TIED = {"share_decoder_input_output_embed": True}
PRE_NORM = {"encoder_normalize_before": True, "decoder_normalize_before": True}
LEARNED = {"encoder_learned_pos": True, "decoder_learned_pos": True}
PAIR = {"self_target": False, "future_target": True, "past_target": True}
PLAIN: dict[str, dict[str, Any]] = {
    "post-norm": {},
    "pre-norm": PRE_NORM,
    "one of each": {"encoder_normalize_before": True},
    "learned positions": LEARNED,
    "decoder without positions": {"no_dec_token_positional_embeddings": True},
    "encoder without positions": {"no_enc_token_positional_embeddings": True},
    "tied decoder embeddings": {"share_decoder_input_output_embed": True},
    "factors of their own on the embeddings": {"encoder_embed_scale": 1.0, "decoder_embed_scale": 2.5},
    "tied, with a factor": {"share_decoder_input_output_embed": True, "decoder_embed_scale": 1.0},
    "smaller output embeddings": {"decoder_output_dim": 7},
    "encoder of embeddings alone": {"embedding_only": True},
    "another depth and width": {"encoder_layers": 3, "decoder_layers": 1, "decoder_ffn_embed_dim": 9},
}
# Flags, flags of the source LM, flags of the target LM. LMs have C = 16, the model 12: there is a projection between.
FUSED: dict[str, tuple[dict[str, Any], dict[str, Any] | None, dict[str, Any] | None]] = {
    "src elmo": ({**ELMO_SRC, **AFFINE}, {}, None),
    "src elmo, norm without scale, encoder with positions": ({**ELMO_SRC}, {}, None),
    "src elmo, encoder with learned positions": ({**ELMO_SRC, **LEARNED}, {}, None),
    "src elmo without projection": ({**ELMO_SRC, **AFFINE}, {"decoder_embed_dim": 6}, None),
    "src elmo, tied, pre-norm": ({**ELMO_SRC, **AFFINE, **PRE_NORM, **TIED}, {}, None),
    "src elmo, linear join": ({**ELMO_SRC, **AFFINE}, {"linear_final_layer": True}, None),
    "src elmo, single tower, zero pair": ({**ELMO_SRC, **AFFINE}, {"single_tower": True, "no_bias_kv": True}, None),
    "src elmo of a shared LM": ({**ELMO_SRC, **AFFINE}, {"share_decoder_input_output_embed": True}, None),
    "src elmo of a pair": ({**ELMO_SRC, **AFFINE}, PAIR, None),
    "src elmo with a factor": ({**ELMO_SRC, **AFFINE, "encoder_embed_scale": 0.5}, {}, None),
    "src elmo alone, without encoder": ({**ELMO_SRC, **AFFINE, "embedding_only": True}, {}, None),
    "src bilm": ({**BILM_SRC}, {}, None),
    "src bilm with the leading </s>": ({**BILM_SRC, "bilm_add_bos": True}, {}, None),
    "src bilm with the last state masked": ({**BILM_SRC, "bilm_mask_last_state": "full"}, {}, None),
    "src bilm, both": ({**BILM_SRC, "bilm_add_bos": True, "bilm_mask_last_state": "full"}, {}, None),
    "src bilm, a flag that masks nothing": ({**BILM_SRC, "bilm_mask_last_state": True}, {}, None),
    "src bilm without projection": ({**BILM_SRC, "bilm_add_bos": True}, {"decoder_embed_dim": 12}, None),
    "src bilm, no positions of the encoder": ({**BILM_SRC, "no_enc_token_positional_embeddings": True}, {}, None),
    "src bilm, concatenated query": ({**BILM_SRC}, {"concat_final_q": True, "double_final_heads": True}, None),
    "src bilm of a pair": ({**BILM_SRC}, PAIR, None),
    "src bilm alone, without encoder": ({**BILM_SRC, "embedding_only": True}, {}, None),
    "tgt bilm, causal": ({**BILM_TGT}, None, {"causal": True}),
    "tgt bilm, causal, learned positions": ({**BILM_TGT}, None, {"causal": True, "decoder_learned_pos": True}),
    "tgt bilm, causal, decoder without positions": (
        {**BILM_TGT, "no_dec_token_positional_embeddings": True, "decoder_embed_scale": 1.0}, None, {"causal": True},
    ),
    "tgt bilm, cloze": ({**BILM_TGT}, None, {}),
    "tgt elmo, causal": ({**ELMO_TGT, "elmo_affine": True}, None, {"causal": True}),
    "tgt elmo, cloze: towers apart": ({**ELMO_TGT, "elmo_affine": True}, None, {}),
    "tgt elmo, cloze, norm without scale": ({**ELMO_TGT}, None, {"decoder_embed_dim": 12}),
    "tgt elmo of a pair": ({**ELMO_TGT}, None, PAIR),
    "src elmo, tgt bilm": ({**ELMO_SRC, **AFFINE, **BILM_TGT}, {}, {"causal": True}),
    "src bilm, tgt elmo": ({**BILM_SRC, **ELMO_TGT, "bilm_add_bos": True}, {}, {"decoder_layers": 3}),
    "src elmo, tgt elmo": ({**ELMO_SRC, **ELMO_TGT, **AFFINE}, {"decoder_layers": 1}, {}),
}  # fmt: skip

# What is seen in the weights of an LM inside.
SEEN = [{}, PAIR] + [
    {name: True}
    for name in (
        *("concat_final_q", "linear_final_layer", "single_tower", "no_bias_kv"),
        *("decoder_learned_pos", "no_token_positional_embeddings"),
    )
]


@pytest.fixture
def check(make: ModuleType, reference: ModuleType, save: Any, dicts: dict[str, str], close: Any) -> Any:
    """Convert through a file, load through fairseq, compare encoder output and logits."""

    @torch.no_grad()
    def run(args: dict[str, Any], lms: dict[str, dict[str, Any]], inputs: Inputs, vocabulary: dict[str, int]) -> Any:
        weights = make.seq2seq(args, lms, vocabulary)
        path = save(weights, args)
        convert(path, inputs).write(f"{path}.converted")
        model = lmfusion.load_model(f"{path}.converted").models[0]
        memory, logits = reference.seq2seq(weights, args, lms, SOURCE, PREFIX)
        source, prefix = torch.tensor([SOURCE]), torch.tensor([PREFIX])
        length = torch.tensor([len(SOURCE)])
        close(model.encoder(source, length)["encoder_out"][0][:, 0], memory)
        close(model(source, length, prefix)[0][0], logits)
        return model

    return run


@pytest.mark.parametrize("flags", PLAIN.values(), ids=PLAIN.keys())
def test_plain_transformer(make: ModuleType, check: Any, dicts: dict[str, str], flags: dict[str, Any]) -> None:
    check({**make.SEQ2SEQ, **flags}, {}, Inputs(dictionaries=dicts), {"src": 24, "tgt": 21})


@pytest.mark.parametrize(
    "factors",
    [
        {},
        {"decoder_embed_scale": 2.0},
        {"encoder_embed_scale": 0.5},
        {"encoder_embed_scale": 1.0, "decoder_embed_scale": 1.0},
        {"embedding_only": True},  # which the released code does not multiply by anything
    ],
    ids=["none", "decoder", "encoder", "both", "no encoder"],
)
def test_one_embedding_for_encoder_decoder_and_output(
    make: ModuleType, check: Any, dicts: dict[str, str], factors: dict[str, Any]
) -> None:
    """A factor unties what was tied, but for the output and a decoder's without one; the numbers stay."""
    Path(dicts["tgt"]).write_text(Path(dicts["src"]).read_text(encoding="utf-8"), encoding="utf-8")
    args = {**make.SEQ2SEQ, "share_all_embeddings": True, **factors}
    model = check(args, {}, Inputs(dictionary=dicts["src"]), {"src": 24, "tgt": 24})
    tied = model.decoder.embed_tokens is model.encoder.embed_tokens
    assert tied == (not factors)
    output = model.decoder.output_projection.weight
    assert (output is model.decoder.embed_tokens.weight) == ("decoder_embed_scale" not in factors)


@pytest.mark.parametrize(("flags", "src", "tgt"), FUSED.values(), ids=FUSED.keys())
def test_language_model_on_either_side(
    make: ModuleType, check: Any, save: Any, dicts: dict[str, str], flags: dict[str, Any], src: Any, tgt: Any
) -> None:
    sides = {side: dict(given) for side, given in (("src", src), ("tgt", tgt)) if given is not None}
    lms, files = {}, {}
    for side, given in sides.items():
        lms[side] = {**(make.CAUSAL if given.pop("causal", False) else make.CLOZE), **given}
        if "decoder_embed_dim" in given and "decoder_input_dim" in lms[side]:
            lms[side].update(
                decoder_input_dim=given["decoder_embed_dim"], decoder_output_dim=given["decoder_embed_dim"]
            )
        files[side] = save({}, lms[side], f"lm.{side}.pt")
    args = {**make.SEQ2SEQ, **flags}
    model = check(args, lms, Inputs(dictionaries=dicts, lms=files), {"src": 24, "tgt": 21})
    for side, part in (("src", model.encoder), ("tgt", model.decoder)):
        if side in lms:
            lm = part.embed_tokens.lm
            elmo = str(flags[f"{'encoder' if side == 'src' else 'decoder'}_embed_path"]).startswith("elmo:")
            assert lm.frozen == elmo
            # A frozen one has its own dropouts, switched off; a trained one those of --bilm-model-dropout and its like.
            dropouts = [lm.config[f"{name}dropout"] for name in ("", "attention_", "activation_")]
            assert dropouts == ([0.1, 0.1, 0.05] if elmo else [0.3, 0.2, 0.1])


@torch.no_grad()
@pytest.mark.parametrize("variant", SEEN, ids=str)
def test_what_the_weights_tell_need_not_be_said(
    make: ModuleType, check: Any, dicts: dict[str, str], variant: dict[str, Any]
) -> None:
    """Without the LM's file: its size, depth, join, positions and pair are seen in its weights; its heads are not."""
    lm = {**make.CLOZE, **variant}
    said: dict[str, Any] = {"decoder_attention_heads": 2}
    if lm["self_target"] and not lm["linear_final_layer"]:
        said["double_final_heads"] = False
    if lm["no_token_positional_embeddings"]:
        said["no_token_positional_embeddings"] = True
    inputs = Inputs(dictionaries=dicts, lm_args={"src": said})
    check({**make.SEQ2SEQ, **ELMO_SRC, **AFFINE}, {"src": lm}, inputs, {"src": 24, "tgt": 21})


@pytest.mark.parametrize("number", [1.0, None], ids=["version 1", "no version"])
@pytest.mark.parametrize("flags", [PRE_NORM, {}], ids=["pre-norm", "post-norm"])
def test_first_version_of_the_format_normalizes_nothing_at_the_end(
    make: ModuleType,
    reference: ModuleType,
    save: Any,
    dicts: dict[str, str],
    close: Any,
    flags: dict[str, Any],
    number: float | None,
) -> None:
    args = {**make.SEQ2SEQ, **flags}
    weights = {n: v for n, v in make.seq2seq(args, {}, {"src": 24, "tgt": 21}).items() if ".layer_norm." not in n}
    weights.update({"encoder.version": torch.tensor([1.0]), "decoder.version": torch.tensor([1.0])})
    said = {name: value for name, value in weights.items() if number or not name.endswith(".version")}
    path = save(said, args)
    convert(path, Inputs(dictionaries=dicts)).write(f"{path}.converted")
    model = lmfusion.load_model(f"{path}.converted").models[0]
    _, logits = reference.seq2seq(weights, args, {}, SOURCE, PREFIX)
    with torch.no_grad():
        close(model(torch.tensor([SOURCE]), torch.tensor([6]), torch.tensor([PREFIX]))[0][0], logits)


def test_shares_that_were_not_put_through_a_softmax(
    make: ModuleType, check: Any, save: Any, dicts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """elmo_softmax came and went as a flag; positive shares are the same mix with another gamma, others are none."""
    args = {**make.SEQ2SEQ, **ELMO_SRC, **AFFINE, "elmo_softmax": False}
    inputs = Inputs(dictionaries=dicts, lm=[save({}, make.CLOZE, "lm.pt")])
    original = make.seq2seq

    def positive(*given: Any) -> Any:
        weights = original(*given)
        return {**weights, "encoder.embed_tokens.weights": weights["encoder.embed_tokens.weights"].abs() + 0.1}

    monkeypatch.setattr(make, "seq2seq", positive)
    check(args, {"src": make.CLOZE}, inputs, {"src": 24, "tgt": 21})
    monkeypatch.undo()
    weights = make.seq2seq(args, {"src": make.CLOZE}, {"src": 24, "tgt": 21})
    for share, printed in ((-0.25, r"-0\.25"), (0.0, r"\b0\b")):
        weights["encoder.embed_tokens.weights"] = torch.tensor([0.5, share, 0.3, 0.2, 0.7])
        with pytest.raises(
            lmfusion.InputError, match=rf"weights was trained without a softmax.*not positive.*{printed}"
        ):
            convert(save(weights, args), inputs)
