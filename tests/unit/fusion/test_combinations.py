"""Flags that cannot work together, or of which one would be ignored: refused with the reason and the fix."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY

from lmfusion.errors import InputError
from lmfusion.fusion.combinations import check_combination
from lmfusion.fusion.config import FusionConfig
from lmfusion.fusion.model import TransformerLMFusion

FUSIONS = ("none", "elmo", "finetune")
SIDES = ("src", "tgt")


@pytest.mark.parametrize("src", FUSIONS)
@pytest.mark.parametrize("tgt", FUSIONS)
def test_any_source_choice_goes_with_any_target_choice(make_cell: Any, src: str, tgt: str) -> None:
    check_combination(make_cell(src, tgt))


@pytest.mark.parametrize("src", FUSIONS)
def test_shdemb_goes_with_every_source_choice(make_cell: Any, src: str) -> None:
    check_combination(make_cell(src, "none", share_decoder_input_output_embed=True))


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("fusion", ["elmo", "finetune"])
def test_fusion_without_a_language_model(make_cfg: Any, side: str, fusion: str) -> None:
    with pytest.raises(InputError, match=f"--{side}-fusion {fusion} needs .* --{side}-lm"):
        check_combination(make_cfg(**{f"{side}_fusion": fusion}))


@pytest.mark.parametrize("side", SIDES)
def test_language_model_without_fusion(make_cfg: Any, side: str) -> None:
    with pytest.raises(InputError, match=f"--{side}-lm some.pt would be ignored: .* --{side}-fusion .*elmo"):
        check_combination(make_cfg(**{f"{side}_lm": "some.pt"}))


@pytest.mark.parametrize(("src", "tgt"), [("elmo", "none"), ("none", "finetune"), ("finetune", "elmo")])
def test_shared_needs_embeddings_on_both_sides(make_cell: Any, src: str, tgt: str) -> None:
    with pytest.raises(InputError, match=r"--share-all-embeddings \(SHARED\) .* no embeddings of its own to tie"):
        check_combination(make_cell(src, tgt, share_all_embeddings=True))


@pytest.mark.parametrize("tgt", ["elmo", "finetune"])
def test_shdemb_needs_embeddings_in_the_decoder(make_cell: Any, tgt: str) -> None:
    with pytest.raises(InputError, match=r"--share-decoder-input-output-embed \(SHDEMB\) .* leave one of the two out"):
        check_combination(make_cell("elmo", tgt, share_decoder_input_output_embed=True))


ONLY = {
    "elmo_dropout": ({"none", "finetune"}, 0.2),
    "elmo_affine": ({"none", "finetune"}, True),
    "lm_dropout": ({"none", "elmo"}, 0.2),
    "lm_attention_dropout": ({"none", "elmo"}, 0.2),
    "lm_relu_dropout": ({"none", "elmo"}, 0.2),
    "representation_dropout": ({"none"}, 0.2),
    "embed_scale": ({"none"}, 0.2),
}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("name", ONLY)
def test_flag_of_a_strategy_that_was_not_chosen(make_cell: Any, side: str, fusion: str, name: str) -> None:
    ignored_with, value = ONLY[name]
    cell = (fusion, "none") if side == "src" else ("none", fusion)
    cfg = make_cell(*cell, **{f"{side}_{name}": value})
    if fusion not in ignored_with:
        check_combination(cfg)
        return
    flag = f"--{side}-{name.replace('_', '-')}"
    with pytest.raises(InputError, match=f"{flag} would be ignored with --{side}-fusion {fusion}: it belongs to"):
        check_combination(cfg)


@pytest.mark.parametrize(("cell", "flag"), [(("elmo", "none"), "encoder"), (("none", "finetune"), "decoder")])
def test_pretrained_word_vectors_beside_a_language_model(make_cell: Any, cell: tuple[str, str], flag: str) -> None:
    with pytest.raises(InputError, match=f"--{flag}-embed-path would be ignored"):
        check_combination(make_cell(*cell, **{f"{flag}_embed_path": "vectors.txt"}))


def test_contradictions_are_found_before_anything_is_loaded(make_cfg: Any, task: Any) -> None:
    cfg = make_cfg(src_lm="does_not_exist.pt", src_fusion="elmo", share_all_embeddings=True)
    with pytest.raises(InputError, match="SHARED"):
        TransformerLMFusion.build_model(cfg, task)


@pytest.mark.parametrize("fusion", ["elmo", "finetune"])
def test_a_causal_lm_reads_the_source_with_the_symbol_in_front_that_it_was_trained_with(
    make_cfg: Any, task: Any, make_causal: Any, save_lm: Any, fusion: str
) -> None:
    lm = make_causal()
    cfg = make_cfg(src_lm=str(save_lm(lm)), src_fusion=fusion)
    embedding = TransformerLMFusion.build_model(cfg, task).eval().encoder.embed_tokens
    source = torch.tensor([[5, 9, 4, 2]])
    read = embedding.fusion.read(torch.tensor([[2, 5, 9, 4, 2]]))
    torch.testing.assert_close(embedding(source), embedding.fusion.embed(read)[:, 1:])
    expected = lm.layer_states(torch.tensor([[2, 5, 9, 4, 2]])) if fusion == "elmo" else [read.top]
    torch.testing.assert_close(read.layers[-1] if fusion == "elmo" else read.top, expected[-1])


@pytest.mark.parametrize("fusion", ["elmo", "finetune"])
def test_cloze_lm_on_the_target_side(make_cfg: Any, task: Any, src_lm: Path, fusion: str) -> None:
    with pytest.raises(InputError, match=r"source_lm\.pt is a cloze language model.* target side needs .* causal LM"):
        TransformerLMFusion.build_model(make_cfg(tgt_lm=str(src_lm), tgt_fusion=fusion), task)


@pytest.mark.parametrize(("side", "name"), [("src", "source"), ("tgt", "target")])
def test_data_of_another_dictionary(
    make_cell: Any, task: Any, other_dictionary: Dictionary, side: str, name: str
) -> None:
    setattr(task, f"{name}_dictionary", other_dictionary)
    cfg = make_cell("elmo", "none") if side == "src" else make_cell("none", "elmo")
    expected = r"index 7, .* has 'w3' and .* has 'x'" if side == "src" else r"index 4, .* has 'eins' and .* has 'w0'"
    with pytest.raises(InputError, match=f"the {name} dictionary is not the dictionary .*{expected}"):
        TransformerLMFusion.build_model(cfg, task)


def test_missing_language_model_file(make_cfg: Any, task: Any) -> None:
    with pytest.raises(InputError, match=r"nowhere\.pt does not exist"):
        TransformerLMFusion.build_model(make_cfg(src_lm="nowhere.pt", src_fusion="elmo"), task)


@pytest.mark.parametrize("size", ["", "tiny", "iwslt_de_en", "wmt_en_de_big"])
@pytest.mark.parametrize(
    ("cell", "src", "tgt"),
    [
        ("lmfusion", None, None),
        ("src_elmo", "elmo", None),
        ("src_ft", "finetune", None),
        ("tgt_elmo", None, "elmo"),
        ("tgt_ft", None, "finetune"),
    ],
)
def test_named_cells_set_the_fusion_of_their_side_only(cell: str, src: str, tgt: str, size: str) -> None:
    """What the command line says wins over what the name says."""
    name = f"{cell}_{size}" if size else cell
    assert ARCH_MODEL_REGISTRY[name] is TransformerLMFusion
    args, plain = Namespace(), Namespace()
    ARCH_CONFIG_REGISTRY[name](args)
    ARCH_CONFIG_REGISTRY[f"lmfusion_{size}" if size else "lmfusion"](plain)
    given = {key: value for key, value in vars(args).items() if vars(plain).get(key) != value}
    fusions = {"src_fusion": src, "tgt_fusion": tgt}
    assert given == {key: value for key, value in fusions.items() if value}
    flags = Namespace(encoder_layers=3, src_fusion="none")
    ARCH_CONFIG_REGISTRY[name](flags)
    assert (flags.encoder_layers, flags.src_fusion) == (3, "none")


@pytest.mark.parametrize("size", ["", "iwslt_de_en", "wmt_en_de_big"])
def test_sizes_are_those_of_fairseq(size: str) -> None:
    ours, theirs = Namespace(), Namespace()
    ARCH_CONFIG_REGISTRY[f"lmfusion_{size}" if size else "lmfusion"](ours)
    ARCH_CONFIG_REGISTRY[f"transformer_{size}" if size else "transformer"](theirs)
    assert len(vars(ours)) >= 8
    for name, value in vars(ours).items():
        assert getattr(theirs, name) == value, name
    for name in ("dropout", "attention_dropout", "activation_dropout"):
        assert getattr(ours, name, getattr(FusionConfig(), name)) == getattr(theirs, name), name
