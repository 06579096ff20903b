"""The command line of ``lmfusion translate``."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lmfusion.cli import build_parser, main
from lmfusion.commands import translate
from lmfusion.errors import InputError


@pytest.mark.parametrize(
    "words", ["m f --beam 3 --scores", "m --beam 3 f --scores", "--beam 3 --scores m f", "m --scores --beam 3 f"]
)
def test_options_may_stand_anywhere(words: str) -> None:
    args = build_parser().parse_args(["translate", *words.split()])
    assert (args.model, args.file, args.beam, args.scores) == ("m", "f", 3, True)


@pytest.mark.parametrize("words", ["m", "m --beam 3", "--beam 3 m"])
def test_without_a_file_it_is_standard_input(words: str) -> None:
    assert build_parser().parse_args(["translate", *words.split()]).file is None


@pytest.mark.parametrize("words", ["", "m f g", "m --beems 3", "m f --beam x", "m f --device tpu", "m f --lenpen"])
def test_what_it_does_not_know_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        build_parser().parse_args(["translate", *words.split()])
    assert ended.value.code == 2
    assert capsys.readouterr().err


def test_a_parser_is_used_again() -> None:
    parser = build_parser()
    for _ in range(2):
        assert parser.parse_args(["translate", "m", "--beam", "2", "f"]).file == "f"


@pytest.mark.parametrize(("pack", "kind"), [(bz2.compress, "bzip2"), (gzip.compress, "gzip"), (lzma.compress, "xz")])
def test_what_is_compressed_is_said_to_be(
    pack: Callable[[bytes], bytes], kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a stream all kinds, of a file the one that is not read."""
    packed = pack("Das Paket enthält Spiele.\r\n".encode() * 9)
    read, write = os.pipe()
    os.write(write, packed)
    os.close(write)
    with pytest.raises(InputError, match=f"{kind} -dc"):
        list(translate._streamed(read, "standard input"))
    os.close(read)
    if kind == "bzip2":
        (tmp_path / "new.en.bz2").write_bytes(packed)
        assert main(["translate", "m", str(tmp_path / "new.en.bz2")]) == 2
        assert "bunzip2 new.en.bz2" in capsys.readouterr().err


def test_a_folder_is_no_text(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "m", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
