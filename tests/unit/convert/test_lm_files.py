"""Which file describes which language model inside a sequence-to-sequence model."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch

from lmfusion.convert import Inputs, convert
from lmfusion.lm.loading import load_lm

BOTH = {"encoder_embed_path": "elmo:x", "decoder_embed_path": "bilm:x", "elmo_affine": True}


@pytest.fixture
def two_sided(make: ModuleType, save: Any) -> Any:
    """A model with these language models in encoder and decoder: its path."""

    def path(src: dict[str, Any], tgt: dict[str, Any], **flags: Any) -> str:
        args = {**make.SEQ2SEQ, **BOTH, **flags}
        saved: str = save(make.seq2seq(args, {"src": src, "tgt": tgt}, {"src": 24, "tgt": 21}), args)
        return saved

    return path


def heads(path: str, dicts: dict[str, str], **given: Any) -> tuple[int, int]:
    """Heads of the source and of the target language model, converted."""
    model = convert(path, Inputs(dictionaries=dicts, **given)).model
    lms = [model.encoder.embed_tokens.lm, model.decoder.embed_tokens.lm]
    return lms[0].config["decoder_attention_heads"], lms[1].config["decoder_attention_heads"]


@pytest.mark.parametrize("reverse", [False, True])
def test_each_side_takes_the_file_of_its_kind(
    make: ModuleType, two_sided: Any, save: Any, dicts: dict[str, str], reverse: bool
) -> None:
    src, tgt = {**make.CLOZE, "decoder_attention_heads": 4}, {**make.CAUSAL, "decoder_attention_heads": 8}
    files = [save({}, src, "src.pt"), save({}, tgt, "tgt.pt")]
    assert heads(two_sided(src, tgt), dicts, lm=files[::-1] if reverse else files) == (4, 8)


@pytest.mark.parametrize("reverse", [False, True])
def test_of_one_kind_each_side_takes_the_file_of_its_size(
    make: ModuleType, two_sided: Any, save: Any, dicts: dict[str, str], reverse: bool
) -> None:
    src = {**make.CLOZE, "decoder_layers": 1, "decoder_attention_heads": 4}
    tgt = {**make.CLOZE, "decoder_attention_heads": 8}
    files = [save({}, src, "src.pt"), save({}, tgt, "tgt.pt")]
    assert heads(two_sided(src, tgt), dicts, lm=files[::-1] if reverse else files) == (4, 8)


def test_of_one_kind_and_size_the_side_has_to_be_said(
    make: ModuleType, two_sided: Any, save: Any, dicts: dict[str, str], refused: Any
) -> None:
    src, tgt = {**make.CLOZE, "decoder_attention_heads": 4}, {**make.CLOZE, "decoder_attention_heads": 8}
    one, other, path = save({}, src, "one.pt"), save({}, tgt, "other.pt"), two_sided(src, tgt)
    dictionaries = ["--src-dict", dicts["src"], "--tgt-dict", dicts["tgt"]]
    message = refused(path, *dictionaries, "--lm", one, "--lm", other)
    assert f"several files may describe the source language model: {one}, {other}. Give it by --src-lm" in message
    assert heads(path, dicts, lms={"src": one, "tgt": other}) == (4, 8)


def test_flags_go_before_files(make: ModuleType, two_sided: Any, save: Any, dicts: dict[str, str]) -> None:
    path = two_sided(make.CLOZE, make.CAUSAL)
    files = [save({}, make.CLOZE, "src.pt"), save({}, make.CAUSAL, "tgt.pt")]
    assert heads(path, dicts, lm=files, lm_args={"tgt": {"decoder_attention_heads": 16}}) == (2, 16)


def test_files_and_flags_for_nothing_are_refused(
    make: ModuleType, two_sided: Any, save: Any, dicts: dict[str, str], refused: Any
) -> None:
    cloze, causal = save({}, make.CLOZE, "cloze.pt"), save({}, make.CAUSAL, "causal.pt")
    dictionaries = ["--src-dict", dicts["src"], "--tgt-dict", dicts["tgt"]]
    both = two_sided(make.CLOZE, make.CAUSAL)
    message = refused(both, *dictionaries, "--src-lm", causal, "--tgt-lm", causal)
    assert f"--src-lm {causal} is a causal language model, and inside there is a cloze language model" in message
    seq2seq = save({}, make.SEQ2SEQ, "seq2seq.pt")
    message = refused(both, *dictionaries, "--lm", seq2seq)
    assert "holds a sequence-to-sequence model, where a language model's own file belongs" in message
    args = {**make.SEQ2SEQ, "encoder_embed_path": "elmo:x"}
    path = save(make.seq2seq(args, {"src": make.CLOZE}, {"src": 24, "tgt": 21}), args)
    message = refused(path, *dictionaries, "--lm", cloze, "--lm", causal)
    assert f"--lm {causal} would be ignored" in message
    message = refused(path, *dictionaries, "--lm", cloze, "--tgt-lm-arg", "decoder_attention_heads=2")
    assert "--tgt-lm-arg would be ignored" in message
    assert "has no target language model" in message


def test_converted_file_with_learned_positions(make: ModuleType, save: Any, dicts: dict[str, str]) -> None:
    """lmfusion counts positions in another way; the table inside says how many there are."""
    lm = {**make.CLOZE, "decoder_learned_pos": True}
    own = save(make.language_model(lm, 24), lm, "lm.pt")
    convert(own, Inputs(dictionary=dicts["src"])).write(own + ".converted")
    args = {**make.SEQ2SEQ, "encoder_embed_path": "elmo:x"}
    path = save(make.seq2seq(args, {"src": lm}, {"src": 24, "tgt": 21}), args)
    inside = convert(path, Inputs(dictionaries=dicts, lm=[own + ".converted"])).model.encoder.embed_tokens.lm
    assert inside.max_positions() == load_lm(own + ".converted").max_positions() == 28
    assert inside.embed.learned_positions.weight.shape == (30, 16)


def test_softmax_that_was_saved_inside_is_of_no_use_there(
    make: ModuleType, two_sided: Any, save: Any, dicts: dict[str, str]
) -> None:
    path = two_sided(make.CLOZE, make.CAUSAL)
    state = torch.load(path, weights_only=False)
    state["model"]["decoder.embed_tokens.lm.decoder.embed_out"] = torch.zeros(21, 16)
    torch.save(state, path)
    files = [save({}, make.CLOZE, "src.pt"), save({}, make.CAUSAL, "tgt.pt")]
    assert heads(path, dicts, lm=files) == (2, 2)
