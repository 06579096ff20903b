"""What ``lmfusion convert`` refuses of files and weights, what it says, and that nothing is left behind."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from lmfusion import cli
from lmfusion.convert import Inputs, convert


def test_dictionary_of_another_size_is_named_with_both_sizes(
    make: ModuleType, cloze: Any, save: Any, dicts: dict[str, str], refused: Any
) -> None:
    message = refused(save(cloze, make.CLOZE), "--dict", dicts["tgt"])
    assert f"{dicts['tgt']} has 21 symbols (17 lines and fairseq's 4 special ones)" in message
    assert "decoder.embed_tokens.weight has 24 rows" in message
    weights = make.seq2seq(make.SEQ2SEQ, {}, {"src": 24, "tgt": 21})
    message = refused(save(weights, make.SEQ2SEQ), "--dict", dicts["src"])
    assert "dict.en.txt has 24 symbols" in message
    assert "decoder.embed_tokens.weight has 21 rows" in message


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a 1\nb\n", "a symbol and its count"),
        (b"a 1\na 2\n", "Duplicate"),
        ("ä 1\n".encode("latin-1"), "cannot be read as a dictionary"),
        (None, "does not exist"),
    ],
    ids=["no count", "twice", "latin-1", "none"],
)
def test_unfit_dictionary(
    make: ModuleType, cloze: Any, save: Any, tmp_path: Path, refused: Any, content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / "d.txt").write_bytes(content)
    message = refused(save(cloze, make.CLOZE), "--dict", str(tmp_path / "d.txt"))
    assert f"{tmp_path}/d.txt" in message
    assert reason in message


def test_no_dictionary(make: ModuleType, cloze: Any, save: Any, dicts: dict[str, str], refused: Any) -> None:
    message = refused(save(cloze, make.CLOZE), "--arg", "dropout=0.1")
    assert "give the one it was trained with by --dict" in message
    weights = make.seq2seq(make.SEQ2SEQ, {}, {"src": 24, "tgt": 21})
    message = refused(save(weights, make.SEQ2SEQ), "--src-dict", dicts["src"])
    assert "by --tgt-dict (or --dict for both sides)" in message


def test_every_wrong_weight_is_listed_by_the_name_it_has_in_the_file(
    make: ModuleType, cloze: Any, save: Any, refused: Any
) -> None:
    del cloze["decoder.forward_layers.1.fc1.bias"], cloze["decoder.embed_out"]
    cloze["decoder.surplus"] = torch.zeros(2)
    cloze["encoder.extra"] = torch.zeros(2)
    cloze["decoder.forward_layers.0.fc2.bias"][3] = float("nan")
    cloze["decoder.forward_layers.1.fc2.bias"][3] = -float("inf")
    cloze["decoder.forward_layers.0.fc1.bias"] = torch.zeros(20, dtype=torch.int64)
    cloze["decoder.backward_layers.0.self_attn.bias_k"] = torch.zeros(1, 1, 8)
    message = refused(save(cloze, make.CLOZE))
    assert "missing: decoder.embed_out, decoder.forward_layers.1.fc1.bias;" in message
    assert "not expected: decoder.surplus, encoder.extra;" in message
    assert "of another shape: decoder.backward_layers.0.self_attn.bias_k (1, 1, 8) instead of (1, 1, 16);" in message
    infinite = (f"decoder.forward_layers.{name}.bias" for name in ("0.fc1", "0.fc2", "1.fc2"))
    assert f"not finite numbers: {', '.join(infinite)}." in message


def test_todays_format(make: ModuleType, cloze: Any, save: Any, dicts: dict[str, str], refused: Any) -> None:
    path = save(cloze, make.CLOZE)
    convert(path, Inputs(dictionary=dicts["src"])).write(path)
    assert "has the format of today's fairseq already: there is nothing to convert" in refused(path)


def test_another_lm_than_the_one_inside(make: ModuleType, save: Any, dicts: dict[str, str], refused: Any) -> None:
    args = {**make.SEQ2SEQ, "encoder_embed_path": "elmo:bilm.pt", "elmo_affine": True}
    path = save(make.seq2seq(args, {"src": make.CLOZE}, {"src": 24, "tgt": 21}), args)
    other = save({}, {**make.CLOZE, "decoder_ffn_embed_dim": 21}, "other.pt")
    message = refused(path, "--src-dict", dicts["src"], "--tgt-dict", dicts["tgt"], "--lm", other)
    inner = "encoder.embed_tokens.language_model.decoder."
    assert f"of another shape: {inner}backward_layers.0.fc1.bias (20,) instead of (21,)" in message


@pytest.mark.parametrize("count", [4, 6, 7])
def test_mix_of_another_number_of_states(
    make: ModuleType, save: Any, dicts: dict[str, str], refused: Any, count: int
) -> None:
    args = {**make.SEQ2SEQ, "encoder_embed_path": "elmo:bilm.pt", "elmo_affine": True}
    weights = make.seq2seq(args, {"src": make.CLOZE}, {"src": 24, "tgt": 21})
    weights["encoder.embed_tokens.weights"] = torch.zeros(count)
    lm = save({}, make.CLOZE, "lm.pt")
    message = refused(save(weights, args), "--src-dict", dicts["src"], "--tgt-dict", dicts["tgt"], "--lm", lm)
    assert f"encoder.embed_tokens.weights has shares for {count} states of 32 channels" in message


def test_causal_lm_in_an_encoder(make: ModuleType, save: Any, dicts: dict[str, str], refused: Any) -> None:
    args = {**make.SEQ2SEQ, "encoder_embed_path": "elmo:lm.pt"}
    weights = make.seq2seq(args, {"src": make.CAUSAL}, {"src": 24, "tgt": 21})
    lm = save({}, make.CAUSAL, "lm.pt")
    message = refused(save(weights, args), "--src-dict", dicts["src"], "--tgt-dict", dicts["tgt"], "--lm", lm)
    assert "has a causal language model in its encoder" in message


def test_output_that_cannot_be_written_is_not_half_written(
    make: ModuleType, cloze: Any, save: Any, dicts: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = save(cloze, make.CLOZE)
    assert cli.main(["convert", path, "--dict", dicts["src"], "--out", str(tmp_path / "no" / "out.pt")]) == 2
    assert "no/out.pt could not be written" in capsys.readouterr().err
    assert cli.main(["convert", path, "--dict", dicts["src"], "--out", path]) == 2
    assert "is one of the files to be read" in capsys.readouterr().err
    assert cli.main(["convert", path, "--dict", dicts["src"], "--out", dicts["src"]]) == 2
    assert "is one of the files to be read" in capsys.readouterr().err
    assert cli.main(["convert", path, "--dict", dicts["src"]]) == 2
    assert "give --out FILE to write the converted checkpoint, or --check SAMPLE" in capsys.readouterr().err


def test_size_in_the_weights_that_no_model_has(
    make: ModuleType, cloze: Any, save: Any, dicts: dict[str, str], refused: Any
) -> None:
    """No flag says it: it is the number of rows that a weight has."""
    cloze["decoder.forward_layers.0.self_attn.out_proj.weight"] = torch.zeros(1_000_001, 1)
    said = {"arch": "bi_transformer_lm", "decoder_attention_heads": 2, "double_final_heads": False}
    words = [word for name, value in said.items() for word in ("--arg", f"{name}={value}")]
    assert "decoder_embed_dim is 1000001" in refused(save(cloze, {}), "--dict", dicts["src"], *words)


def test_sizes_far_beyond_the_files_are_refused_before_memory_is_taken(
    make: ModuleType, cloze: Any, save: Any, refused: Any
) -> None:
    """With a million channels one matrix of one block would take 4 TB."""
    path = save(cloze, {**make.CLOZE, "decoder_embed_dim": 10**6})
    assert path in refused(path)


def test_decoder_that_cannot_attend_to_its_encoder(
    make: ModuleType, save: Any, dicts: dict[str, str], refused: Any
) -> None:
    """The released code knows no attention over states of another width."""
    args = {**make.SEQ2SEQ, "encoder_embed_dim": 6}
    path = save(make.seq2seq(args, {}, {"src": 24, "tgt": 21}), args)
    message = refused(path, "--src-dict", dicts["src"], "--tgt-dict", dicts["tgt"])
    assert "of another shape: decoder.layers.0.encoder_attn.in_proj_weight (36, 12) instead of (36, 6)" in message


def test_a_checkpoint_that_is_missing_beside_an_output_that_is_there(refused: Any, tmp_path: Path) -> None:
    (tmp_path / "out.pt").write_bytes(b"kept")
    assert "missing.pt does not exist" in refused(str(tmp_path / "missing.pt"), "--out", str(tmp_path / "out.pt"))
    assert (tmp_path / "out.pt").read_bytes() == b"kept"
