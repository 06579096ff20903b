"""From plain text to a model's symbols and back, by the tokenizer and the BPE of a kit."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from functools import cached_property
from pathlib import Path
from typing import Any

from fairseq.data import encoders

from lmfusion.errors import InputError
from lmfusion.text.dictionaries import read_dictionary_text
from lmfusion.text.kit import TextKit
from lmfusion.text.languages import is_language
from lmfusion.text.tokenize_text import tokenizer_flags


def built_bpe(kit: TextKit) -> Any:
    """Return fairseq's BPE of a kit, or None where it has none.

    Raises:
        InputError: if its file is not what its kind says.
    """
    with tempfile.TemporaryDirectory() as folder:
        section = kit.unpack(Path(folder))
        if not section:
            return None
        try:
            return encoders.build_bpe(Namespace(bpe=section.pop("_name"), **section))
        # subword-nmt ends the process at a file that is none
        except (RuntimeError, OSError, ValueError, TypeError, LookupError, AttributeError, SystemExit) as error:
            fault = " ".join(str(error).split())[:200]
            raise InputError(f"its BPE, of the kind {kit.bpe['_name']}, cannot be read: {fault}.") from error


def check(kit: TextKit) -> None:
    """Refuse a kit whose files are no BPE and no dictionaries: what names them may name any file of this machine.

    Args:
        kit: of files that a checkpoint names.

    Raises:
        InputError: saying which is none.
    """
    built_bpe(kit)
    for language, content in zip(kit.languages, kit.dictionaries):
        read_dictionary_text(content.decode("utf-8", errors="replace"), f"its dictionary of {language}")


def built_tokenizer(kit: TextKit) -> Any:
    """Return fairseq's tokenizer of a kit, or None where it has none."""
    section = dict(kit.tokenizer)
    return encoders.build_tokenizer(Namespace(tokenizer=section.pop("_name"), **section)) if section else None


class TextCodec:
    """Turns plain text into symbols and back; tokenizer and BPE are built when they are first used.

    Args:
        kit: with the tokenizer and the BPE.
    """

    def __init__(self, kit: TextKit) -> None:
        self.kit = kit

    @cached_property
    def _bpe(self) -> Any:
        return built_bpe(self.kit)

    @cached_property
    def _tokenizer(self) -> Any:
        return built_tokenizer(self.kit)

    def encode(self, text: str) -> str:
        """Turn text into symbols with spaces between."""
        for step in (self._tokenizer, self._bpe):
            text = text if step is None else step.encode(text)
        return text

    def decode(self, symbols: str) -> str:
        """Turn symbols with spaces between into text."""
        for step in (self._bpe, self._tokenizer):
            symbols = symbols if step is None else step.decode(symbols)
        return symbols


def sentencepiece_codec(model: str | Path, lang: str | None) -> TextCodec:
    """Return the codec of a sentencepiece model's file.

    Args:
        model: the file.
        lang: language of the text, which is tokenized as data preparation does it; None: it is not tokenized.

    Raises:
        InputError: if it cannot be read, is no sentencepiece model, or ``lang`` is no language's code.
    """
    try:
        content = Path(model).read_bytes()
    except OSError as error:
        raise InputError(f"bpe={str(model)!r} cannot be read: {error.strerror}.") from error
    tokenizer: dict[str, Any] = {}
    if lang is not None:
        if not is_language(lang):
            raise InputError(f"lang={lang!r} is no language's code: give one such as 'en'.")
        flags = {flag: f"--{flag.replace('_', '-')}" in tokenizer_flags() for flag in _MOSES}
        tokenizer = {"_name": "moses_monolingual", "moses_lang": lang, **flags}
    bpe = {"_name": "sentencepiece", "sentencepiece_enable_sampling": False}
    codec = TextCodec(TextKit(tokenizer=tokenizer, bpe=bpe, bpe_file=content))
    try:
        codec.encode("")
    except InputError as error:
        raise InputError(f"bpe={str(model)!r}: {error}") from error
    return codec


_MOSES = ("moses_no_dash_splits", "moses_no_escape")
