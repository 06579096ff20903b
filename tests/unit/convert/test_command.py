"""``lmfusion convert`` on the command line, and the per-layer summary of ``--check``."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

import lmfusion
from lmfusion import cli

TOWERS = ["embeddings", *(f"layer {number} {way}" for number in (1, 2) for way in ("forward", "backward"))]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """What the command prints."""

    def printed(*words: object) -> str:
        assert cli.main(["convert", *map(str, words)]) == 0
        return capsys.readouterr().out

    return printed


@pytest.fixture
def causal(make: ModuleType) -> dict[str, Tensor]:
    """Weights of a tiny causal LM."""
    weights: dict[str, Tensor] = make.language_model(make.CAUSAL, 24)
    return weights


def rows(text: str) -> dict[str, tuple[float, float, list[float]]]:
    """Mean, standard deviation and first values of each layer, from the printed table."""
    found = re.findall(r"^(\S.*?)  +(-?\d+\.\d{6}) +(\d+\.\d{6})  ((?: *-?\d+\.\d{5})+)$", text, flags=re.MULTILINE)
    return {name: (float(mean), float(std), [float(v) for v in first.split()]) for name, mean, std, first in found}


def assert_row(row: tuple[float, float, list[float]], state: Tensor) -> None:
    assert row[0] == pytest.approx(state.mean().item(), abs=2e-6)
    assert row[1] == pytest.approx((state - state.mean()).square().mean().sqrt().item(), abs=2e-6)
    assert row[2] == pytest.approx(state[0, :4].tolist(), abs=2e-5)


def test_writes_one_complete_file(
    make: ModuleType, causal: Any, save: Any, dicts: Any, run: Any, tmp_path: Path
) -> None:
    out = tmp_path / "converted.pt"
    text = run(save(causal, make.CAUSAL), "--dict", dicts["src"], "--out", out)
    count = sum(value.numel() for name, value in causal.items() if "version" not in name and "_float" not in name)
    assert text == f"wrote {out}: uni_transformer_lm, {count:,} parameters\n"
    assert [path.name for path in tmp_path.glob("converted*")] == ["converted.pt"]
    Path(dicts["src"]).unlink()
    assert lmfusion.load_lm(out).symbols[4] == "src0"


def test_check_of_a_causal_lm(
    make: ModuleType, reference: ModuleType, causal: Any, save: Any, dicts: Any, run: Any, tmp_path: Path
) -> None:
    text = run(save(causal, make.CAUSAL), "--dict", dicts["src"], "--check", "src3 src19 what src7")
    assert text.startswith("tokens: 2 7 23 3 11  (unknown: what)\n")
    assert not list(tmp_path.glob("*out*"))
    states, tops = reference.language_model(reference.double(causal), "decoder.", make.CAUSAL, [2, 7, 23, 3, 11])
    logits = reference.softmax_input(reference.double(causal), "decoder.", make.CAUSAL, tops[0])
    table = rows(text)
    assert list(table) == ["embeddings", "layer 1", "layer 2", "logits (future)"]
    for row, state in zip(table.values(), [*states, logits], strict=True):
        assert_row(row, state)


@pytest.mark.parametrize("targets", [("self",), ("future", "past"), ("self", "future", "past")], ids=str)
def test_check_of_a_cloze_lm(
    make: ModuleType, reference: ModuleType, save: Any, dicts: Any, run: Any, targets: tuple[str, ...]
) -> None:
    args = {**make.CLOZE, **{f"{name}_target": name in targets for name in ("self", "future", "past")}}
    weights = make.language_model(args, 24)
    text = run(save(weights, args), "--dict", dicts["src"], "--check", "src3 src19")
    assert text.startswith("tokens: 2 7 23 2\n")
    w, tokens = reference.double(weights), [2, 7, 23, 2]
    states, tops = reference.language_model(w, "decoder.", args, tokens)
    visible = reference.language_model(w, "decoder.", args, tokens, hide_self=False)[1][0]
    table = rows(text)
    joined = {"joined, token visible": visible} if "self" in targets else {}
    logits = [reference.softmax_input(w, "decoder.", args, top) for top in tops]
    assert list(table) == [*TOWERS, *joined, *(f"logits ({name})" for name in targets)]
    for row, state in zip(table.values(), [*states[:5], *joined.values(), *logits], strict=True):
        assert_row(row, state)


# The flags of a language model inside, where it is, and whether its last state sees the token.
INSIDE = {
    # The file's own flag was written by code that hid the token then, which the command is told.
    "source": ({"encoder_embed_path": "bilm:x", "bilm_mask_last_state": True}, "encoder.embed_tokens.bilm", "hidden"),
    "mixed": ({"encoder_embed_path": "elmo:x", "elmo_affine": True}, "encoder.embed_tokens.language_model", "visible"),
    "target": ({"decoder_embed_path": "bilm:x"}, "decoder.embed_tokens.lm", None),
}


@pytest.mark.parametrize(("flags", "place", "joined"), INSIDE.values(), ids=INSIDE)
def test_check_of_a_sequence_to_sequence_model(
    make: ModuleType, reference: ModuleType, save: Any, dicts: Any, run: Any,
    flags: dict[str, Any], place: str, joined: str | None,
) -> None:  # fmt: skip
    """Every state of both sides; before a mixed language model stands an </s>."""
    side, lm = ("src", make.CLOZE) if place.startswith("encoder") else ("tgt", make.CAUSAL)
    args = {**make.SEQ2SEQ, **flags}
    weights = make.seq2seq(args, {side: lm}, {"src": 24, "tgt": 21})
    given = ["--src-dict", dicts["src"], "--tgt-dict", dicts["tgt"], "--lm", save({}, lm, "lm.pt")]
    given += ["--arg", "bilm_mask_last_state=full"] if joined == "hidden" else []
    text = run(save(weights, args), *given, "--check", "src3 what src19 ||| tgt0 tgt16 where")
    read = {"src": [7, 3, 23, 2], "tgt": [2, 4, 20, 3]}
    assert text.startswith("source: 7 3 23 2  (unknown: what)\ntarget so far: 2 4 20 3  (unknown: where)\n")
    args["bilm_mask_last_state"] = "full" if joined == "hidden" else False
    w = reference.double(weights)
    tokens = [2, *read[side]] if "elmo_affine" in flags else read[side]
    states, _ = reference.language_model(w, f"{place}.decoder.", lm, tokens, hide_self=joined == "hidden")
    names = [*TOWERS, f"joined, token {joined}"] if joined else ["embeddings", "layer 1", "layer 2"]
    expected: dict[str, Tensor] = {}
    memory = None
    for name, word, part in (("src", "source", "encoder"), ("tgt", "target", "decoder")):
        own = lm if name == side else None
        expected |= dict(zip([f"{word} LM, {state}" for state in names], states, strict=True)) if own else {}
        expected[f"{word} embeddings"] = reference.side(w, part, args, own, read[name])
        found = reference.stack(w, part, args, own, read[name], memory)
        layers = [f"{part} layer {number}" for number in (1, 2)]
        expected |= dict(zip([f"{part} input", *layers, f"{part} output"], found, strict=True))
        memory = found[-1]
    expected["logits"] = reference.softmax_input(w, "decoder.", {}, expected.pop("decoder output"))
    table = rows(text)
    assert list(table) == list(expected)
    for row, state in zip(table.values(), expected.values(), strict=True):
        assert_row(row, state)


@pytest.mark.parametrize(
    ("sample", "reason"),
    [("", "--check needs a sentence"), (" ||| a", "--check needs a sentence"), ("a ||| b", "this is a language model")],
)
def test_nothing_to_check(
    make: ModuleType, causal: Any, save: Any, dicts: Any, refused: Any, sample: str, reason: str
) -> None:
    assert reason in refused(save(causal, make.CAUSAL), "--dict", dicts["src"], "--check", sample)


@pytest.mark.parametrize(("side", "words"), [("source", 38), ("target", 41)])
def test_a_sample_is_as_long_as_the_model_reads(
    make: ModuleType, save: Any, dicts: Any, run: Any, refused: Any, side: str, words: int
) -> None:
    """Of tables of positions: 38 and 41 rows are for words and </s>."""
    flags = {"encoder_learned_pos": True, "decoder_learned_pos": True, "max_source_positions": 39}
    args = {**make.SEQ2SEQ, **flags, "max_target_positions": 42}
    path = save(make.seq2seq(args, {}, {"src": 24, "tgt": 21}), args)
    given = ("--src-dict", dicts["src"], "--tgt-dict", dicts["tgt"], "--check")
    samples = [" ".join(["a"] * number) for number in (words, words + 1)]
    fits, longer = (sample if side == "source" else f"a ||| {sample}" for sample in samples)
    assert "logits" in rows(run(path, *given, fits))
    line = refused(path, *given, longer)
    assert side in line
    assert str(words + 2) in line


def test_help_says_what_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["convert", "--help"])
    text = capsys.readouterr().out
    for flag in ("--dict", "--src-dict", "--tgt-dict", "--lm", "--src-lm-arg", "--check", "--out", "--drop-meters"):
        assert flag in text


@torch.no_grad()
def test_both_sides_on_one_file_of_an_lm(make: ModuleType, save: Any, dicts: Any, run: Any, tmp_path: Path) -> None:
    """--lm serves both sides; each has its own weights."""
    args = {**make.SEQ2SEQ, "encoder_embed_path": "elmo:x", "decoder_embed_path": "elmo:x", "elmo_affine": True}
    weights = make.seq2seq(args, {"src": make.CLOZE, "tgt": make.CLOZE}, {"src": 24, "tgt": 21})
    lm, out = save({}, make.CLOZE, "lm.pt"), tmp_path / "converted.pt"
    run(save(weights, args), "--src-dict", dicts["src"], "--tgt-dict", dicts["tgt"], "--lm", lm, "--out", out)
    model = lmfusion.load_model(out).models[0]
    for part in ("encoder", "decoder"):
        found = getattr(model, part).embed_tokens.lm.embed.tokens.weight
        assert torch.equal(found, weights[f"{part}.embed_tokens.language_model.decoder.embed_tokens.weight"])
