"""Which files a packed model gets: those in its checkpoint, those that this names, those that are given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmfusion.errors import InputError
from lmfusion.inference.packing import _complete_kit
from lmfusion.text import kit as kits
from lmfusion.text.kit import TextKit

BPE, MOSES = {"_name": "sentencepiece"}, {"_name": "moses", "source_lang": "en"}
OWN = TextKit(("en", "de"), MOSES, BPE, b"own pieces", (b"own 1\n", b"eigene 1\n"))
PIECES, WORDS = {"bpe": {}, "bpe_file": b""}, {"languages": (), "dictionaries": ()}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """A BPE and a folder with dictionaries."""
    for name, content in (("spm.model", b"pieces"), ("dict.en.txt", b"a 1\n"), ("dict.de.txt", b"b 1\n")):
        (tmp_path / name).write_bytes(content)
    return {"bpe_model": str(tmp_path / "spm.model"), "data": str(tmp_path)}


def complete(kit: TextKit | None, named: dict[str, str], bpe: Any = BPE, **given: str) -> TextKit:
    """Complete the kit of a checkpoint whose configuration names files."""
    cfg: dict[str, Any] = {
        "task": {"data": named.get("data", "/gone"), "source_lang": "en", "target_lang": "de"},
        "bpe": bpe and {**bpe, "sentencepiece_model": named.get("bpe_model", "/gone/spm.model")},
        "tokenizer": MOSES,
    }
    state = {"cfg": cfg, **({kits.ENTRY: kit.to_state()} if kit else {})}
    return _complete_kit(Path("m.pt"), state, given.get("data"), given.get("bpe_model"))


def test_what_a_checkpoint_holds_is_taken_and_else_what_it_names_or_what_is_given(files: dict[str, str]) -> None:
    read = TextKit(("en", "de"), MOSES, BPE, b"pieces", (b"a 1\n", b"b 1\n"))
    assert complete(OWN, {}) == complete(OWN, files) == OWN
    assert complete(None, files) == complete(None, {}, **files) == read
    assert complete(TextKit(), files) == read


@pytest.mark.parametrize("tokenizer", [{}, {"_name": "space"}], ids=["no tokenizer", "a tokenizer"])
def test_one_half_is_given_where_the_other_is_in_the_checkpoint(files: dict[str, str], tokenizer: Any) -> None:
    """The files that the configuration names may be gone; a tokenizer that is stored stays."""
    spm, data = ({name: files[name]} for name in ("bpe_model", "data"))
    words = replace(OWN, tokenizer=tokenizer, **PIECES)
    expected = replace(words, tokenizer=tokenizer or MOSES, bpe=BPE, bpe_file=b"pieces")
    assert complete(words, {}, **spm) == complete(words, spm) == expected
    pieces = replace(OWN, tokenizer=tokenizer, **WORDS)
    expected = replace(pieces, languages=("en", "de"), dictionaries=(b"a 1\n", b"b 1\n"))
    assert complete(pieces, {}, **data) == complete(pieces, data) == expected


def test_files_that_are_given_are_those_that_the_checkpoint_holds(files: dict[str, str]) -> None:
    same = replace(OWN, bpe_file=b"pieces", dictionaries=(b"a 1\n", b"b 1\n"))
    assert complete(same, {}, **files) == same
    for name, flag in (("bpe_model", "--spm"), ("data", "--data")):
        with pytest.raises(InputError, match=rf"m\.pt.*{flag}") as refused:
            complete(OWN, {}, **{name: files[name]})
        assert f"{flag} {files[name]}" in str(refused.value)


def test_a_bpe_that_is_given_has_its_kind_and_the_trainings_options(files: dict[str, str]) -> None:
    """Whether the training had none, or one of another kind."""
    options = {"_name": "subword_nmt", "bpe_codes": "/gone", "sentencepiece_alpha": 0.25}
    assert complete(None, {}, bpe=None, **files).bpe == BPE
    assert complete(None, {}, bpe=options, **files).bpe == {**BPE, "sentencepiece_alpha": 0.25}


@pytest.mark.parametrize("kit", [None, TextKit(tokenizer=MOSES), replace(OWN, **PIECES), replace(OWN, **WORDS)])
def test_all_that_is_nowhere_is_asked_for(kit: TextKit | None, tmp_path: Path) -> None:
    lacking = {"--spm": not (kit and kit.bpe), "--data": not (kit and kit.dictionaries)}
    with pytest.raises(InputError, match=r"m\.pt") as refused:
        complete(kit, {})
    assert {flag: flag in str(refused.value) for flag in lacking} == lacking
    with pytest.raises(InputError) as refused:  # and what was given and is not there either
        complete(None, {}, data=str(tmp_path), bpe_model=str(tmp_path / "no.model"))
    assert all(f"{flag} {tmp_path}" in str(refused.value) for flag in lacking)
