"""The corpus as a study reads it."""

from __future__ import annotations

import lzma
import sys
from pathlib import Path

import pytest
from study.task import read_lines

from lmfusion.errors import InputError

sys.path.insert(0, str(Path(__file__).parents[4] / "data-prep"))
from lmfusion.text import corpus

TEXT = "Das\u00a0ist  gut.\r\n\tZwei\u2028W\u00f6rter \n\nDrei.\n"


@pytest.mark.parametrize("packed", [False, True])
def test_it_reads_the_lines_that_data_prep_makes(tmp_path: Path, packed: bool) -> None:
    """Runs are scored against data-prep's text; the report finds them by the text they were scored against."""
    file = tmp_path / ("test.de.xz" if packed else "test.de")
    file.write_bytes(lzma.compress(TEXT.encode()) if packed else TEXT.encode())
    lines = read_lines(tmp_path, "test.de")
    assert lines == ["Das ist gut.", "Zwei W\u00f6rter", "", "Drei."]
    assert corpus.unpack(file, tmp_path / "clean") == 4
    assert (tmp_path / "clean").read_text(encoding="utf-8") == "".join(f"{line}\n" for line in lines)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"test\.de: no such file, nor test\.de\.xz\. Set CORPUS"):
        read_lines(tmp_path, "test.de")
