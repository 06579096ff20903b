"""A folder of Hugging Face on a full disk: an error of the system, and nothing left."""

from __future__ import annotations

import errno
import resource
from pathlib import Path
from typing import Any

import pytest

from lmfusion.convert import causal_folder
from lmfusion.convert.model_folder import making_model_folder

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")


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


def test_a_tokenizer_for_which_there_is_no_room_is_an_error_of_the_system_too(tmp_path: Path) -> None:
    """Its package raises Exception itself."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"word": 0}, "word"))
    with pytest.raises(OSError, match=str(tmp_path)) as raised, making_model_folder(transformers, tmp_path / "hf"):
        tokenizer.save("/dev/full")
    assert raised.value.errno == errno.ENOSPC
    with pytest.raises(RuntimeError), making_model_folder(transformers, tmp_path / "hf"):
        raise RuntimeError("of another kind (os error 28)")
    assert list(tmp_path.iterdir()) == []
