"""tokenize_text.py: what fairseq's own `--tokenizer moses` does, with errors that name file and line."""

from __future__ import annotations

import gzip
import lzma
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fairseq import options
from fairseq.data import encoders
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from lmfusion.text import textio, tokenize_text

HARD_SENTENCES = [
    'A "state-of-the-art" tool & its user\'s <b>guide</b> [beta].',
    "See http://example.org/a?b=c&d=e, i.e. Dr. Who's e-mail: who@example.org.",
    "Größe: 3,5 GB … don't (z.B. „Anführung“) -- 100% 'ok'",
    "",
    "  spaces\tand\u00a0more   spaces ",
    "Markup </s> and <unk> | pipes @-@ and 漢字 and \u200b zero width.",
]


def fairseq_tokenizer(source_lang: str, target_lang: str):
    """The tokenizer fairseq builds from the flags the recipes give it."""
    parser = options.get_interactive_generation_parser()
    words = [*tokenize_text.tokenizer_flags(), "-s", source_lang, "-t", target_lang, "--path", "unused"]
    args = options.parse_args_and_arch(parser, ["data", *words, "--sentencepiece-model", "unused"])
    return encoders.build_tokenizer(convert_namespace_to_omegaconf(args).tokenizer)


@pytest.mark.parametrize("lang", ["en", "de"])
def test_tokens_are_those_of_fairseq_with_the_flags_of_the_recipes(tmp_path: Path, lang: str) -> None:
    source, target = tmp_path / "raw", tmp_path / "tok"
    source.write_text("\n".join(HARD_SENTENCES) + "\n", encoding="utf-8")
    tokenize_text.tokenize_file(source, target, lang, workers=1)
    theirs = fairseq_tokenizer(lang, "de")
    assert target.read_text(encoding="utf-8").split("\n")[:-1] == [
        theirs.encode(line.strip()) for line in HARD_SENTENCES
    ]


def test_many_processes_keep_the_order_of_the_lines(tmp_path: Path) -> None:
    source, target = tmp_path / "raw", tmp_path / "tok"
    source.write_text("".join(f"Line {i}.\n" for i in range(2500)), encoding="utf-8")
    tokenize_text.tokenize_file(source, target, "en", workers=3)
    assert target.read_text(encoding="utf-8").splitlines() == [f"Line {i} ." for i in range(2500)]


def test_compressed_input_is_read_as_it_is(tmp_path: Path) -> None:
    source, target = tmp_path / "raw.xz", tmp_path / "tok"
    source.write_bytes(lzma.compress(b"Compressed, indeed.\n"))
    tokenize_text.tokenize_file(source, target, "en")
    assert target.read_text(encoding="utf-8") == "Compressed , indeed .\n"


def test_a_line_that_is_not_utf8_is_one_error_with_file_and_line(tmp_path: Path) -> None:
    source, target = tmp_path / "raw", tmp_path / "tok"
    source.write_bytes(b"fine\nGr\xf6\xdfe\nfine\n")
    command = [sys.executable, tokenize_text.__file__, "--lang", "de", "--input", source, "--output", target]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"{source}, line 2: not UTF-8 (byte 0xf6 at position 3 of the line)" in done.stderr
    assert "iconv" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


@pytest.mark.parametrize("content", [b"not xz at all", lzma.compress(b"cut off\n" * 9999)[:-40]])
def test_a_broken_archive_is_named(tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "raw.xz"
    source.write_bytes(content)
    with pytest.raises(textio.DataError, match=r"raw\.xz: cannot be decompressed after line \d+ .*Fetch it again"):
        list(textio.read_lines(source))


def test_a_full_disk_is_one_error_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    source, target = tmp_path / "raw", tmp_path / "tok"
    source.write_text("A sentence that takes some space.\n" * 9000, encoding="utf-8")
    command = shlex.join(
        [sys.executable, tokenize_text.__file__, "--lang", "en", "--input", str(source), "--output", str(target)]
    )
    # A limit on the size of files stands in for a full disk: the same error, but for its number.
    done = subprocess.run(["bash", "-c", f"ulimit -f 64; {command}"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert str(target) in done.stderr
    assert "Free some space or choose another output folder" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_a_moses_flag_without_a_meaning_here_is_refused() -> None:
    with pytest.raises(textio.DataError, match="--moses-something"):
        tokenize_text.moses_options(["--tokenizer", "moses", "--moses-something"])


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    source, target = tmp_path / "raw", tmp_path / "tok"
    source.write_bytes("\ufeffHello world.\n".encode())
    tokenize_text.tokenize_file(source, target, "en", workers=1)
    assert target.read_text(encoding="utf-8") == "Hello world .\n"


@pytest.mark.parametrize("compress", [lzma.compress, gzip.compress], ids=["xz", "gz"])
def test_a_file_that_was_cut_is_one_error_also_when_its_lines_are_counted(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / ("cut.xz" if compress is lzma.compress else "cut.gz")
    data = compress(os.urandom(3000).hex().encode())
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(textio.DataError, match=rf"{path}: cannot be decompressed"):
        tokenize_text.tokenize_file(path, tmp_path / "out", "en")


def test_an_output_that_is_the_input_and_no_workers_are_refused(tmp_path: Path) -> None:
    source = tmp_path / "raw"
    source.write_text("Hello.\n", encoding="utf-8")
    with pytest.raises(textio.DataError, match="is one of the files to be read"):
        tokenize_text.tokenize_file(source, source, "en")
    with pytest.raises(textio.DataError, match="--workers -1: give a number above 0"):
        tokenize_text.tokenize_file(source, tmp_path / "tok", "en", workers=-1)
    assert source.read_text(encoding="utf-8") == "Hello.\n"
