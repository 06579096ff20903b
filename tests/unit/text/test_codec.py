"""Plain text to symbols and back, as data preparation makes them."""

from __future__ import annotations

from pathlib import Path

import pytest
import sentencepiece

from lmfusion.errors import InputError
from lmfusion.text.codec import TextCodec, sentencepiece_codec
from lmfusion.text.encode_bpe import encode_file
from lmfusion.text.kit import TextKit
from lmfusion.text.tokenize_text import tokenize_file

MODEL = Path(__file__).parents[3] / "pretrained" / "spm.model"
TEXT = ["It's a well-known library (5% off), isn't it?", 'Tom & Jerry said "no".', "Grüße", ""]


def test_symbols_are_those_that_data_preparation_writes(tmp_path: Path) -> None:
    plain, tokens, symbols = (tmp_path / name for name in ("plain", "tokens", "symbols"))
    plain.write_text("".join(f"{line}\n" for line in TEXT), encoding="utf-8")
    tokenize_file(plain, tokens, "en", 1)
    encode_file(tokens, symbols, MODEL, 1)
    codec = sentencepiece_codec(MODEL, "en")
    assert [codec.encode(line) for line in TEXT] == symbols.read_text(encoding="utf-8").splitlines()


def test_symbols_become_the_text_again() -> None:
    codec = sentencepiece_codec(MODEL, "en")
    for line in TEXT:
        assert codec.decode(codec.encode(line)) == line


def test_without_a_language_text_is_not_tokenized() -> None:
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(MODEL)).encode("A (small) tool.", out_type=str)
    assert sentencepiece_codec(MODEL, None).encode("A (small) tool.").split() == pieces


def test_a_kit_without_a_bpe_changes_nothing() -> None:
    assert TextCodec(TextKit()).encode("a  b") == TextCodec(TextKit()).decode("a  b") == "a  b"


@pytest.mark.parametrize(("name", "lang"), [("absent", "en"), ("text", "en"), (".", "en"), (None, "../x")])
def test_what_is_no_model_or_no_language_is_refused(tmp_path: Path, name: str | None, lang: str) -> None:
    (tmp_path / "text").write_text("no model\n", encoding="utf-8")
    path = MODEL if name is None else tmp_path / name
    with pytest.raises(InputError, match=lang if name is None else "bpe="):
        sentencepiece_codec(path, lang)


def test_damaged_bytes_of_a_kit_are_one_error_when_they_are_used() -> None:
    codec = TextCodec(TextKit(bpe={"_name": "sentencepiece"}, bpe_file=b"\x00damaged"))
    with pytest.raises(InputError, match="sentencepiece"):
        codec.encode("a")
