"""What is said of symbols that a model does not know; the model reads characters."""

from __future__ import annotations

import unicodedata

import pytest

from lmfusion.inference.unknown_symbols import UnknownSymbols

KNOWN = frozenset("abcdefghijklmnopqrstuvwxyzéガ0123456789²")


def told(line: str, caplog: pytest.LogCaptureFixture) -> str:
    """What is said of the only line; nothing where all is known."""
    caplog.clear()
    unknown = UnknownSymbols(lambda text: list(text.replace(" ", "")), KNOWN.__contains__, "<unk>")
    assert unknown.encode(1, line) == list(line.replace(" ", ""))
    unknown.finish()
    return caplog.text


@pytest.mark.parametrize("line", ["café", "ガ", "abc 12"])
def test_only_text_that_is_not_in_nfc_is_told_to_be_made_so(line: str, caplog: pytest.LogCaptureFixture) -> None:
    assert not told(line, caplog)
    decomposed = unicodedata.normalize("NFD", line)
    assert ("any-nfc" in told(decomposed, caplog)) == (decomposed != line)
    assert "any-nfc" in told(f"{unicodedata.normalize('NFD', 'é')} ☃", caplog), "the snowman stays unknown"
    assert "any-" not in told("☃", caplog)


def test_no_form_is_told_that_has_as_many(caplog: pytest.LogCaptureFixture) -> None:
    assert "any-" not in told(unicodedata.normalize("NFD", "ö"), caplog)


def test_full_width_digits_are_told_to_be_made_plain(caplog: pytest.LogCaptureFixture) -> None:
    said = told("ab １２", caplog)
    assert "2 of 4" in said
    assert "１" in said
    assert "any-nfkc" in said


def test_an_accent_alone_stands_on_a_circle(caplog: pytest.LogCaptureFixture) -> None:
    assert "(◌\u0301)" in told(unicodedata.normalize("NFD", "café"), caplog)


@pytest.mark.parametrize(
    ("symbol", "shown"),
    [("\u2581漢", "(漢)"), ("漢@@", "(漢)"), ("\u2581", "(\u2581)"), ("漢" * 99, f"({'漢' * 20}…)")],
)
def test_symbols_are_shown_without_marks_of_their_bpe(
    symbol: str, shown: str, caplog: pytest.LogCaptureFixture
) -> None:
    UnknownSymbols(str.split, KNOWN.__contains__, "<unk>").encode(7, f"a {symbol}")
    assert shown in caplog.text
    assert "line 7: 1 of 2" in caplog.text


@pytest.mark.parametrize(("line", "shown"), [("А Б В Г Д", "(А, Б, В, Г, Д)"), ("А Б В Г Д А Е", "(А, Б, В, Г, Д, …)")])
def test_more_than_five_are_not_all_shown(line: str, shown: str, caplog: pytest.LogCaptureFixture) -> None:
    assert shown in told(line, caplog)
