"""What ``lmfusion convert`` refuses of flags, language models and embeddings inside sequence-to-sequence models."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch


@pytest.mark.parametrize("flags", [{"arch": "bi_transformer_lm"}, 5, {"decoder_layers": torch.ones(3)}], ids=str)
def test_flags_that_are_no_namespace_or_hold_weights(
    make: ModuleType, cloze: Any, save: Any, dicts: dict[str, str], refused: Any, tmp_path: Path, flags: Any
) -> None:
    """Of the file itself, and of a file of the language model inside."""
    if isinstance(flags, dict) and "decoder_layers" in flags:
        flags = Namespace(**{**make.CLOZE, **flags})
    torch.save({"args": flags, "model": cloze}, tmp_path / "lm.pt")
    alone = refused(str(tmp_path / "lm.pt"))
    args = {**make.SEQ2SEQ, "encoder_embed_path": "elmo:lm.pt", "elmo_affine": True}
    path = save(make.seq2seq(args, {"src": make.CLOZE}, {"src": 24, "tgt": 21}), args)
    inside = refused(path, "--src-dict", dicts["src"], "--tgt-dict", dicts["tgt"], "--lm", str(tmp_path / "lm.pt"))
    for message in (alone, inside):
        assert "lm.pt: " in message
        assert "decoder_layers" in message if isinstance(flags, Namespace) else "namespace" in message


def test_language_model_that_is_not_in_the_weights_or_there_twice(
    make: ModuleType, save: Any, dicts: dict[str, str], refused: Any
) -> None:
    args = {**make.SEQ2SEQ, "encoder_embed_path": "elmo:lm.pt", "elmo_affine": True}
    base, given = "encoder.embed_tokens.", ["--src-dict", dicts["src"], "--tgt-dict", dicts["tgt"]]
    weights = make.seq2seq(args, {"src": make.CLOZE}, {"src": 24, "tgt": 21})
    given += ["--lm", save({}, make.CLOZE, "lm.pt")]
    without = make.seq2seq(make.SEQ2SEQ, {}, {"src": 24, "tgt": 21})
    assert f"no language model's weights ({base}" in refused(save(without, args), *given)
    unmixed = {name: value for name, value in weights.items() if name != f"{base}weights"}
    assert f"{base}weights is missing" in refused(save(unmixed, args), *given)
    again = {name.replace("language_model", "other"): value for name, value in weights.items()}
    message = refused(save({**weights, **again}, args), *given)
    assert f"several language models below {base}: language_model, other" in message


def test_mix_of_which_it_is_not_known_whether_it_had_a_softmax(
    make: ModuleType, save: Any, dicts: dict[str, str], refused: Any
) -> None:
    """A file without flags; the shares would be other ones."""
    flags = {**make.SEQ2SEQ, "encoder_embed_path": "elmo:/gone/bilm.pt", "elmo_affine": True}
    weights = make.seq2seq(flags, {"src": make.CLOZE}, {"src": 24, "tgt": 21})
    said = {name: flags[name] for name in ("arch", "encoder_embed_path")}
    for part in ("encoder", "decoder"):
        names = ("attention_heads", "normalize_before", "learned_pos", "embed_scale")
        said.update({f"{part}_{name}": flags[f"{part}_{name}"] for name in names})
        said[f"no_{part[:3]}_token_positional_embeddings"] = False
    words = ["--src-dict", dicts["src"], "--tgt-dict", dicts["tgt"], "--lm", save({}, make.CLOZE, "lm.pt")]
    words += [word for name, value in said.items() for word in ("--arg", f"{name}={value}")]
    assert "elmo_softmax is not known" in refused(save(weights, {}), *words)
    less = [word for word in words if word not in ("--arg", "no_dec_token_positional_embeddings=False")]
    less = [word for flag in less for word in (("--arg", flag) if "=" in flag else (flag,))]
    assert "no_dec_token_positional_embeddings is not known" in refused(save(weights, {}), *less)


def test_one_embedding_of_both_sides_with_two_dictionaries_or_two_contents(
    make: ModuleType, save: Any, dicts: dict[str, str], refused: Any
) -> None:
    args = {**make.SEQ2SEQ, "share_all_embeddings": True}
    weights = make.seq2seq(args, {}, {"src": 24, "tgt": 24})
    words = Path(dicts["src"]).read_text(encoding="utf-8").splitlines(keepends=True)
    Path(dicts["tgt"]).write_text("".join([words[1], words[0], *words[2:]]), encoding="utf-8")
    message = refused(save(weights, args), "--src-dict", dicts["src"], "--tgt-dict", dicts["tgt"])
    assert f"{dicts['src']} and {dicts['tgt']} differ" in message
    weights["decoder.embed_tokens.weight"] = weights["decoder.embed_tokens.weight"] + 1
    message = refused(save(weights, args), "--dict", dicts["src"])
    assert "copies of: decoder.embed_tokens.weight (of encoder.embed_tokens.weight)" in message
