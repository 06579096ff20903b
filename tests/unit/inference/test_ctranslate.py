"""Folders of CTranslate2 without CTranslate2: a stand-in gives back what it reads."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sentencepiece

from lmfusion.errors import InputError
from lmfusion.inference import ctranslate
from lmfusion.inference.ctranslate import BPE, SHARED, SOURCE, TEXT, CTranslator

BPE_SECTION = {"_name": "sentencepiece", "sentencepiece_enable_sampling": False}


class Echo:
    """CTranslate2's translator, which repeats a sentence; what it does not know becomes <unk>."""

    def __init__(self, folder: str, **_: Any) -> None:
        self.known = json.loads((Path(folder) / SHARED).read_text(encoding="utf-8"))

    def translate_batch(self, sources: list[list[str]], **_: Any) -> list[SimpleNamespace]:
        written = ([word if word in self.known else "<unk>" for word in words] for words in sources)
        return [SimpleNamespace(hypotheses=[words], scores=[0.0]) for words in written]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose model knows what occurs in a small text."""
    lines = ["a small house by the sea", "the old tree near a café", "three green birds"] * 20
    prefix = str(tmp_path / "bpe")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=prefix, vocab_size=60, normalization_rule_name="identity",
        minloglevel=2, model_type="bpe",
    )  # fmt: skip
    pieces = sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")
    symbols = ["<s>", "<pad>", "</s>", "<unk>", *(pieces.id_to_piece(number) for number in range(3, len(pieces)))]
    assert (tmp_path / BPE).is_file()
    (tmp_path / SHARED).write_text(json.dumps(symbols), encoding="utf-8")
    content = {"tokenizer": {}, "bpe": BPE_SECTION, "languages": ["en", "de"], "source_positions": 100}
    (tmp_path / TEXT).write_text(json.dumps(content), encoding="utf-8")
    monkeypatch.setattr(ctranslate, "_library", lambda: SimpleNamespace(Translator=Echo))
    return tmp_path


def test_what_the_model_does_not_know_is_told_once_and_counted(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    lines = ["a house", "", "a house 漢", "漢 漢 tree", "birds"]
    assert CTranslator(folder).translate(lines)[4] == "birds"
    first, output, *last = caplog.messages
    assert "line 3: 1 of " in first
    assert "(漢)" in first
    assert "line 3: <unk>" in output
    assert "--unkpen" not in output, "CTranslate2 has none"
    assert ["2 lines" in told for told in last] == [True, True]


def test_known_text_is_told_nothing_of(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert CTranslator(folder).translate(["a house", "the sea"]) == ["a house", "the sea"]
    assert not caplog.messages


def test_the_sources_own_symbols_are_those_that_count(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / SOURCE).write_text('["<unk>"]', encoding="utf-8")
    CTranslator(folder).translate(["a house"])
    assert "line 1" in caplog.text


@pytest.mark.parametrize("content", [None, "[", "[[1]]", "7"])
def test_a_damaged_vocabulary_is_named(folder: Path, content: str | None) -> None:
    (folder / SHARED).unlink()
    if content is not None:
        (folder / SHARED).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=SHARED):
        CTranslator(folder)
