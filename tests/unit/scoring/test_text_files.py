"""Strict reading of text files: every line end counts, and every fault is named."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path
from typing import Callable

import pytest

from lmfusion.errors import InputError
from lmfusion.scoring.text_files import read_lines


@pytest.mark.parametrize(("kind", "compress"), [("gzip", gzip.compress), ("xz", lzma.compress)])
def test_compressed_text_is_called_so_and_not_another_encoding(
    tmp_path: Path, kind: str, compress: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "text").write_bytes(compress(b"ein Satz\n" * 50))
    with pytest.raises(InputError, match=f"compressed by {kind}"):
        read_lines(tmp_path / "text")


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\n\nb\n\n", ["a", "", "b", ""]),
        (b"\n", [""]),
        (b"\xef\xbb\xbfa\n", ["a"]),
        ("a\u2028b\x0cc\u0085d\n".encode(), ["a\u2028b\x0cc\u0085d"]),
        (" ä \t\n".encode(), [" ä \t"]),
    ],
)
def test_only_line_feeds_end_lines(tmp_path: Path, data: bytes, lines: list[str]) -> None:
    (tmp_path / "text").write_bytes(data)
    assert read_lines(tmp_path / "text") == lines


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"There is no file .*/nowhere\.txt"):
        read_lines(tmp_path / "nowhere.txt")


def test_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder, and a text file is needed"):
        read_lines(tmp_path)


def test_empty_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "hyp").touch()
    with pytest.raises(InputError, match="hyp is empty"):
        read_lines(tmp_path / "hyp")


def test_line_that_is_not_utf8_is_named_with_the_mend(tmp_path: Path) -> None:
    (tmp_path / "hyp").write_bytes("gut\nschön\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"hyp, line 2, is not UTF-8 text \(byte 0xf6 at position 3\).* iconv"):
        read_lines(tmp_path / "hyp")


@pytest.mark.parametrize(("mark", "encoding"), [("", "utf-16"), ("\ufeff", "utf-16-be")])
def test_utf_16_is_named_and_not_taken_for_latin_1(tmp_path: Path, mark: str, encoding: str) -> None:
    (tmp_path / "text").write_bytes(f"{mark}Häuser\n".encode(encoding))
    with pytest.raises(InputError, match="iconv -f UTF-16 "):
        read_lines(tmp_path / "text")
