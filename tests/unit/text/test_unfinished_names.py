"""What is unfinished has a name that no file or folder of the user's has."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion.text.binarize import making_folder
from lmfusion.text.textio import writing
from lmfusion.text.word_vectors import check_output

LIKELY = ("made.partial", "partial.made", ".made.partial", "made.tmp", "made.part")


@pytest.mark.parametrize("inside", ["", "mine"], ids=["files", "folders"])
def test_what_lies_beside_it_stays(tmp_path: Path, inside: str) -> None:
    theirs = [tmp_path / name / inside for name in LIKELY]
    for path in theirs:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine", encoding="utf-8")
    check_output(tmp_path / "made")
    with making_folder(tmp_path / "made") as work:
        (work / "new").write_text("new", encoding="utf-8")
    with writing(tmp_path / "made" / "new") as stream:
        stream.write("newer")
    assert [path.read_text(encoding="utf-8") for path in theirs] == ["mine"] * len(LIKELY)
    assert (tmp_path / "made" / "new").read_text(encoding="utf-8") == "newer"
