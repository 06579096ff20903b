"""What a checkpoint holds to read and write plain text: bytes and plain values, which lead nowhere else."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from lmfusion.errors import InputError
from lmfusion.text import kit as kits
from lmfusion.text.kit import CARD, ENTRY, TextKit, collect, from_state, written

BPE = {"_name": "sentencepiece", "sentencepiece_enable_sampling": False}
KIT = TextKit(
    languages=("en", "pt_BR"),
    tokenizer={"_name": "moses", "moses_no_escape": True},
    bpe=BPE,
    bpe_file=bytes(range(256)),
    dictionaries=("▁a 3\nä 1\n".encode(), b"b 1\n"),
)


def test_a_kit_survives_a_checkpoint_that_is_read_as_weights_only(tmp_path: Path) -> None:
    torch.save({ENTRY: KIT.to_state()}, tmp_path / "kit.pt")
    assert from_state("kit.pt", torch.load(tmp_path / "kit.pt", weights_only=True)) == KIT
    assert from_state("kit.pt", {}) is None


def test_its_files_are_written_as_fairseq_wants_them(tmp_path: Path) -> None:
    section = KIT.unpack(tmp_path)
    assert section == {**BPE, "sentencepiece_model": str(tmp_path / "bpe.model")}
    assert Path(section["sentencepiece_model"]).read_bytes() == bytes(range(256))
    assert (tmp_path / "dict.en.txt").read_text(encoding="utf-8") == "▁a 3\nä 1\n"
    assert (tmp_path / "dict.pt_BR.txt").read_bytes() == b"b 1\n"
    assert KIT.facts()["dictionaries"] == [2, 1]


@pytest.mark.parametrize(
    "changed",
    [
        {"languages": ["../en", "de"]},
        {"languages": ["/etc/x", "de"]},
        {"languages": ["..", "de"]},
        {"languages": [3, "de"]},
        {"languages": ["en", "en"]},
        {"bpe": {"_name": "gpt2"}},
        {"bpe": {"_name": ["sentencepiece"]}},
        {"bpe": {"sentencepiece_model": "x"}},
        {"tokenizer": {"_name": "os.system"}},
        {"bpe_file": "text"},
        {"bpe_file": torch.ones(3)},
        {"bpe_file": torch.ones(2, 2, dtype=torch.uint8)},
        {"dictionaries": [None]},
        {"dictionaries": 7},
    ],
    ids=str,
)
def test_an_entry_that_training_does_not_write_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"strange\.pt"):
        from_state("strange.pt", {ENTRY: {**KIT.to_state(), **changed}})


@pytest.mark.parametrize("entry", [[], "x", 5, torch.ones(2), {"languages": ["en"]}], ids=str)
def test_what_is_no_entry_at_all_is_refused(entry: Any) -> None:
    with pytest.raises(InputError, match=r"strange\.pt"):
        from_state("strange.pt", {ENTRY: entry})


def test_no_value_of_a_file_names_a_file_of_this_machine(tmp_path: Path) -> None:
    """The path of the BPE is that of the unpacked bytes, whatever the entry says."""
    named = {**BPE, "sentencepiece_model": "/etc/passwd", "bpe_codes": "/etc/passwd", "src_bpe": "hf:/etc"}
    section = from_state("kit.pt", {ENTRY: {**KIT.to_state(), "bpe": named}}).unpack(tmp_path)  # type: ignore[union-attr]
    assert "/etc" not in " ".join(map(str, section.values()))
    assert section["sentencepiece_model"] == str(tmp_path / "bpe.model")


@pytest.fixture
def run(tmp_path: Path) -> dict[str, Any]:
    """The configuration of a training, with its files."""
    (tmp_path / "dict.en.txt").write_bytes(b"a 1\n")
    (tmp_path / "dict.de.txt").write_bytes(b"b 1\n")
    (tmp_path / "spm.model").write_bytes(b"pieces")
    return {
        "task": {"data": f"{tmp_path}:elsewhere", "source_lang": "en", "target_lang": "de"},
        "bpe": {**BPE, "sentencepiece_model": str(tmp_path / "spm.model")},
        "tokenizer": {"_name": "moses", "source_lang": "en"},
    }


def test_a_training_leaves_its_files_in_the_kit(run: dict[str, Any]) -> None:
    found = collect(run)
    assert found is not None
    assert (found.languages, found.dictionaries, found.bpe_file) == (("en", "de"), (b"a 1\n", b"b 1\n"), b"pieces")
    assert (found.bpe, found.tokenizer["_name"]) == (BPE, "moses")


def test_languages_that_training_was_not_told_are_those_of_the_datas_names(run: dict[str, Any], tmp_path: Path) -> None:
    run["task"].update(data=str(tmp_path), source_lang=None, target_lang=None)
    (tmp_path / "train.en-de.en.idx").touch()
    found = collect(run)
    assert found is not None
    assert (found.languages, found.dictionaries) == (("en", "de"), (b"a 1\n", b"b 1\n"))


def test_a_language_models_data_have_no_languages(run: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "train.en-de.en.idx").touch()
    found = collect({**run, "task": {"data": str(tmp_path)}})
    assert found is not None
    assert (found.languages, found.dictionaries, found.bpe_file) == ((), (), b"pieces")


def test_without_its_files_there_is_no_kit(run: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "dict.de.txt").unlink()
    assert collect(run) is None
    assert collect({"task": {}, "bpe": None, "tokenizer": None}) is None
    assert collect({"task": {}, "bpe": {"_name": "sentencepiece", "sentencepiece_model": str(tmp_path / "no")}}) is None


def test_a_card_is_text_without_a_terminals_control_characters() -> None:
    state = {CARD: kits.to_tensor("# Ä\n\x1b]0;title\x07\x1b[31mred\tend\r\n".encode())}
    assert written("m.lmf", state, CARD) == "# Ä\n]0;title[31mred\tend\n"
    assert written("m.lmf", {}, CARD) == ""


@pytest.mark.parametrize("card", [torch.ones(3), "text", kits.to_tensor(b"\xff"), None], ids=str)
def test_a_card_that_is_no_text_is_refused(card: Any) -> None:
    with pytest.raises(InputError, match="card"):
        written("m.lmf", {CARD: card}, CARD)


def test_a_kit_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        KIT.bpe_file = b""  # type: ignore[misc]
