"""Files that begin like a checkpoint of the old format and are none, or are cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from lmfusion.errors import InputError
from lmfusion.lm.loading import load_lm


@pytest.mark.parametrize("content", [b"\x80\x02.", b"\x80\x02}q\x01X\x05"], ids=["empty pickle", "cut pickle"])
def test_pickle_that_is_no_checkpoint(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "thing.pt").write_bytes(content)
    with pytest.raises(InputError, match=r"thing\.pt (cannot be read as|is not) a checkpoint"):
        load_lm(tmp_path / "thing.pt")


def test_truncated_file_of_the_old_format(make_cloze: Any, save_lm: Any) -> None:
    """Checkpoints of 2019, and of fairseq runs that save in the old format, are plain pickles."""
    path = save_lm(make_cloze())
    torch.save(torch.load(path, weights_only=True), path, _use_new_zipfile_serialization=False)
    whole = path.read_bytes()
    for size in range(1, len(whole), 397):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"lm\.pt (was not loaded|.*damaged)"):
            load_lm(path)
