"""Folders of Hugging Face that lmfusion writes: whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lmfusion.text.binarize import making_folder
from lmfusion.text.import_transformers import quiet

_NUMBER = re.compile(r"\(os error (\d+)\)")


@contextmanager
def making_model_folder(transformers: Any, final: Path) -> Iterator[Path]:
    """Make an empty folder for transformers to write into, which gets its name if the block ends without an exception.

    Raises:
        OSError: the system refuses to write, to a full disk for one; safetensors makes an exception of its own of that,
            and the package tokenizers Exception itself.
    """
    from safetensors import SafetensorError

    with quiet(transformers), making_folder(final) as work:
        try:
            yield work
        except Exception as error:  # others pass
            number = _NUMBER.search(str(error)) if type(error) in (SafetensorError, Exception) else None
            if number is None:
                raise
            raise OSError(int(number[1]), os.strerror(int(number[1])), str(work)) from error
