"""The dictionary a language model was trained with, kept inside its weights.

A model is useless with another dictionary, and a wrong one is hard to notice: every index is valid.
So the symbols travel in the state dict, as the code points of the symbols joined by newlines, and
loading into a model of another dictionary is an error that names the first symbol that differs.
Integers survive half precision and checkpoint averaging.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from lmfusion.errors import UserError
from lmfusion.lm.interface import first_difference


def encode_symbols(symbols: list[str]) -> Tensor:
    """Symbols -> int32 code points of their newline-joined text."""
    return torch.tensor([ord(char) for char in "\n".join(symbols)], dtype=torch.int32)


def decode_symbols(codes: Tensor) -> list[str]:
    """Inverse of :func:`encode_symbols`."""
    return "".join(map(chr, codes.tolist())).split("\n")


def check_symbols(trained: list[str], given: list[str], *, what: str) -> None:
    """Refuse another dictionary than the one the language model was trained with.

    Args:
        trained: the language model's symbols.
        given: the symbols of the data or of the side the model is used on.
        what: names both in the message, e.g. "the source dictionary".

    Raises:
        UserError: naming the first index and the two symbols that differ.
    """
    index = first_difference(trained, given)
    if index is None:
        return
    ours = repr(trained[index]) if index < len(trained) else "nothing (it ends there)"
    theirs = repr(given[index]) if index < len(given) else "nothing (it ends there)"
    raise UserError(
        f"{what} is not the dictionary the language model was trained with: they differ first at "
        f"index {index}, where the language model has {ours} and {what} has {theirs} "
        f"({len(trained)} and {len(given)} symbols). Encode the data with the language model's BPE "
        f"and give its dict.txt to fairseq-preprocess (--srcdict/--tgtdict)."
    )


def _same(stored: Tensor, codes: Tensor) -> bool:
    """Without decoding, which takes long where --store-ema loads weights at every update."""
    return stored.dtype == codes.dtype and torch.equal(stored.to(codes.device), codes)


class SymbolTable(nn.Module):
    """A buffer of symbols that checks itself when a state dict is loaded."""

    codes: Tensor

    def __init__(self, symbols: list[str]) -> None:
        super().__init__()
        self.symbols = list(symbols)
        self.register_buffer("codes", encode_symbols(self.symbols))

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        stored = state_dict.get(prefix + "codes")
        if stored is not None and not _same(stored, self.codes):
            check_symbols(decode_symbols(stored), self.symbols, what="the dictionary of this data")
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)
