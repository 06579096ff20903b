"""Import the package transformers where fairseq is installed, and keep its reports off the terminal."""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lmfusion.errors import InputError

logger = logging.getLogger(__name__)

_NEVER_LOADED = (ImportError, OSError, RuntimeError, AttributeError)
"""What importing a torchaudio raises that was built for another torch."""


def hide_broken_torchaudio() -> None:
    """Keep a torchaudio that cannot be imported out of this process, and say so once; one that can be is left alone.

    ve-fairseq requires torchaudio, and where that was built for another torch, ``from transformers import BertModel``
    ends in its error: transformers looks whether it is installed, not whether it works.
    """
    if "torchaudio" in sys.modules or importlib.util.find_spec("torchaudio") is None:
        return
    try:
        importlib.import_module("torchaudio")
    except _NEVER_LOADED as error:
        sys.modules["torchaudio"] = None  # type: ignore[assignment]
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        logger.warning(
            f"torchaudio does not fit the installed torch and is left out of this process ({reason}); nothing here "
            f"needs it: pip uninstall torchaudio"
        )


def import_transformers() -> Any:
    """Import the package transformers and return it; see :func:`hide_broken_torchaudio`.

    Raises:
        InputError: if transformers is not installed.
    """
    hide_broken_torchaudio()
    try:
        import transformers
    except ModuleNotFoundError as error:
        raise InputError(
            f"models of Hugging Face need the package {error.name}: pip install lmfusion[hf], or pip install "
            f"transformers tokenizers safetensors."
        ) from error
    if sys.modules.get("torchaudio", transformers) is None:  # where transformers was imported before, it has looked
        transformers.utils.import_utils.is_torchaudio_available.cache_clear()
    return transformers


@contextmanager
def quiet(transformers: Any) -> Iterator[None]:
    """Keep transformers' progress bars and reports of what it loads away from the terminal; errors are ours to tell."""
    messages = transformers.utils.logging
    level, bars = messages.get_verbosity(), messages.is_progress_bar_enabled()
    messages.set_verbosity_error()
    messages.disable_progress_bar()
    try:
        yield
    finally:
        messages.set_verbosity(level)
        if bars:
            messages.enable_progress_bar()
