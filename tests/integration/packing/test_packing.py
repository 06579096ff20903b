"""Plain text in and out of a trained checkpoint, an export and a packed file, by the commands a person gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import lmfusion
from lmfusion import InputError
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.commands import pack
from lmfusion.text import kit as kits

BEAM = ("--beam", 2, "--max-len-b", 10)
Saved = Callable[..., Path]


def printed(commands: Any, *words: object) -> list[str]:
    """What ``lmfusion translate`` prints; what it logs stands before it."""
    output = commands.ok("lmfusion", "translate", *words, *BEAM)
    return [" ".join(line.split()) for line in output.splitlines() if not line.startswith(("INFO", "WARNING"))]


@pytest.mark.slow
def test_translate_refuses_plain_text_without_a_bpe_and_takes_one_that_is_given(
    commands: Any, changed: Saved, trained: Path, text: Path, tmp_path: Path
) -> None:
    """As of a checkpoint trained without --bpe, or written by an earlier version whose files are gone."""
    cfg = read_checkpoint(trained)["cfg"]
    without = changed(text=None, cfg={**cfg, "bpe": None, "tokenizer": None})
    line = commands.refused("lmfusion", "translate", without, text)
    assert "--spm" in line
    spm = commands.prepared / "spm.model"
    assert len(printed(commands, without, text, "--spm", spm)) == 9
    moved = changed(text=None, cfg={**cfg, "bpe": None, "task": {**cfg["task"], "data": str(tmp_path / "gone")}})
    assert str(tmp_path / "gone") in commands.refused("lmfusion", "translate", moved, text, "--spm", spm)
    assert len(printed(commands, moved, text, "--spm", spm, "--data", commands.bitext)) == 9
    assert "--spm" in commands.refused("lmfusion", "pack", moved, "--out", tmp_path / "x.lmf")
    commands.ok("lmfusion", "pack", moved, "--out", tmp_path / "y.lmf", "--spm", spm, "--data", commands.bitext)
    assert read_checkpoint(tmp_path / "y.lmf")[kits.ENTRY]["bpe"]["_name"] == "sentencepiece"


@pytest.mark.slow
def test_pack_takes_from_given_files_what_a_checkpoint_lacks_and_refuses_others(
    commands: Any, changed: Saved, trained: Path, tmp_path: Path
) -> None:
    whole = read_checkpoint(trained)
    spm, other, kit = commands.prepared / "spm.model", tmp_path / "other.model", whole[kits.ENTRY]
    lacks_bpe = changed(
        text={**kit, "bpe": {}, "bpe_file": kits.to_tensor(b"")}, cfg={**whole["cfg"], "bpe": None, "tokenizer": None}
    )
    assert "--spm" in commands.refused("lmfusion", "pack", lacks_bpe, "--out", tmp_path / "x.lmf")
    commands.ok("lmfusion", "pack", lacks_bpe, "--out", tmp_path / "y.lmf", "--spm", spm)
    found = read_checkpoint(tmp_path / "y.lmf")[kits.ENTRY]
    assert torch.equal(found["bpe_file"], kit["bpe_file"])
    for name in ("languages", "tokenizer"):
        assert found[name] == kit[name]
    other.write_bytes(spm.read_bytes() + b" ")
    assert "other" in commands.refused("lmfusion", "pack", trained, "--out", tmp_path / "z.lmf", "--spm", other)
    commands.ok("lmfusion", "pack", trained, "--out", tmp_path / "z.lmf", "--spm", spm, "--data", commands.bitext)


def test_every_form_of_the_model_translates_the_same(
    commands: Any, trained: Path, packed: Path, text: Path, translations: list[str], tmp_path: Path
) -> None:
    commands.ok("lmfusion", "export", trained, "--out", tmp_path / "exported.pt")
    commands.ok("lmfusion", "pack", packed, "--out", tmp_path / "again.lmf", "--full")
    cards = {commands.ok("lmfusion", "inspect", path, "--card") for path in (packed, tmp_path / "again.lmf")}
    assert len(cards) == 1, "what was said of it holds, its licence too"
    for model in (trained, packed, tmp_path / "exported.pt", tmp_path / "again.lmf"):
        assert printed(commands, model, text, "--batch-size", 4) == [" ".join(line.split()) for line in translations]


def test_a_packed_file_generates_as_its_checkpoint_does(commands: Any, trained: Path, packed: Path) -> None:
    both = [commands.ok(*commands.generation(model)) for model in (trained, packed)]
    hypotheses = [[line for line in output.splitlines() if line.startswith("H-")] for output in both]
    assert hypotheses[0] == hypotheses[1]
    assert len(hypotheses[0]) == 25


def test_half_precision_halves_the_file_and_translates(
    commands: Any, packed: Path, trained: Path, text: Path, tmp_path: Path
) -> None:
    commands.ok("lmfusion", "pack", trained, "--out", tmp_path / "half.lmf")
    weights = read_checkpoint(tmp_path / "half.lmf")["model"].values()
    assert {tensor.dtype for tensor in weights if tensor.is_floating_point()} == {torch.float16}
    assert len(printed(commands, tmp_path / "half.lmf", text)) == 9
    assert len(printed(commands, tmp_path / "half.lmf", text, "--int8")) == 9


def test_inspect_tells_what_a_packed_file_is_for(commands: Any, packed: Path, trained: Path) -> None:
    shown = commands.ok("lmfusion", "inspect", packed)
    for part in ("en to de", "sentencepiece", "moses", "CC0"):
        assert part in shown
    assert "All of it." not in shown, "its first line"
    card = commands.ok("lmfusion", "inspect", packed, "--card")
    for part in ("en to de", "src_elmo_tiny", "CC0", "All of it.", "400 pairs" if "400 pairs" in card else "Use"):
        assert part in card
    assert "pack" in commands.refused("lmfusion", "inspect", trained, "--card")


def test_what_is_no_translation_model_is_not_packed(commands: Any, lm_files: dict[str, Path], packed: Path) -> None:
    line = commands.refused("lmfusion", "pack", lm_files["src"], "--out", packed.with_name("lm.lmf"))
    assert str(lm_files["src"]) in line
    assert "--out" in commands.refused("lmfusion", "pack", packed, "--out", packed)
    assert "nowhere" in commands.refused("lmfusion", "pack", packed, "--out", packed.parent / "nowhere" / "m.lmf")


@pytest.mark.parametrize("mistyped", ["LICENCE-2.0", "text/COPYING", "my-licence.txt", "../cc.md"])
def test_a_licence_that_names_a_file_which_is_not_there_is_no_licence(
    commands: Any, packed: Path, tmp_path: Path, mistyped: str
) -> None:
    out = tmp_path / "m.lmf"
    assert mistyped in commands.refused("lmfusion", "pack", packed, "--out", out, "--licence", mistyped)
    assert not out.exists()


@pytest.mark.parametrize("name", ["CC-BY-4.0", "GPL-2.0+", "MIT/X11", "https://example.org/licence.txt", "See a.txt"])
def test_a_name_or_an_address_is_a_licence(name: str) -> None:
    assert pack._licence(name) == name


def hostile(packed: Path) -> dict[str, dict[str, Any]]:
    """Entries by what is wrong with them."""
    kit = read_checkpoint(packed)[kits.ENTRY]
    return {
        "a language that leads out": {kits.ENTRY: {**kit, "languages": ["../../en", "de"]}},
        "a BPE that is none": {kits.ENTRY: {**kit, "bpe_file": kits.to_tensor(b"\x00" * 99)}},
        "a BPE of another kind": {kits.ENTRY: {**kit, "bpe": {**kit["bpe"], "_name": "subword_nmt"}}},
        "a dictionary that is none": {kits.ENTRY: {**kit, "dictionaries": [kits.to_tensor(b"\xff\xfe a\n")] * 2}},
        "a dictionary of others": {kits.ENTRY: {**kit, "dictionaries": [kits.to_tensor(b"a 1\nb 1\n")] * 2}},
        "no dictionaries": {kits.ENTRY: {**kit, "dictionaries": []}},
        "three languages": {kits.ENTRY: {**kit, "languages": ["a", "b", "c"]}},
        "no bytes": {kits.ENTRY: {**kit, "bpe_file": [1, 2]}},
        "no entry": {kits.ENTRY: "text"},
    }


@pytest.mark.parametrize(
    "fault",
    [
        *("a language that leads out", "a BPE that is none", "a BPE of another kind", "a dictionary that is none"),
        *("a dictionary of others", "no dictionaries", "three languages", "no bytes", "no entry"),
    ],
)
def test_a_file_from_a_stranger_is_refused_in_one_line(changed: Saved, packed: Path, fault: str) -> None:
    path = changed(packed, **hostile(packed)[fault])
    with pytest.raises(InputError, match=path.name) as refused:
        lmfusion.load_model(path).translate(["A library."])
    assert "\n" not in str(refused.value)
