"""A folder of Hugging Face on a full disk: an error of the system, and nothing left."""

from __future__ import annotations

import errno
import resource
from pathlib import Path
from typing import Any

import pytest

from lmfusion.convert import causal_folder

pytest.importorskip("transformers")


def test_a_full_disk_is_an_error_of_the_system_and_leaves_no_folder(
    make_causal: Any, save_lm: Any, tmp_path: Path
) -> None:
    checkpoint, out = save_lm(make_causal()), tmp_path / "exports" / "hf"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, before[1]))
    try:
        with pytest.raises(OSError, match=str(tmp_path)) as raised:
            causal_folder.to_folder(checkpoint, out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert raised.value.errno == errno.EFBIG
    assert type(raised.value.__cause__).__name__ == "SafetensorError", "the weights were the first file too large"
    assert list((tmp_path / "exports").iterdir()) == []
    causal_folder.to_folder(checkpoint, out)
    assert (out / "model.safetensors").stat().st_size > 4000
