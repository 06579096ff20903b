"""Models that start whole, encoder and decoder, from one that fairseq's task ``denoising`` pretrained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from lmfusion.errors import InputError
from lmfusion.lm.symbols import check_symbols, decode_symbols
from lmfusion.lm.vocabulary import Vocabulary
from lmfusion.text.kit import BPE

_NAME = "symbol_table"
CODES = f"{_NAME}.codes"
"""The name, in a checkpoint of a denoiser, of its symbols' code points."""


def keep_symbols(model: nn.Module, task: Any) -> None:
    """Make a denoiser keep the symbols of its task among its weights; other models are left as they are.

    Args:
        model: of fairseq's kind with encoder and decoder.
        task: fairseq's; one that denoises puts ``<mask>`` behind the symbols of the data.

    Raises:
        InputError: if it would mask whole words of a BPE that it could not load.
    """
    if hasattr(task, "mask_idx"):
        settings: Any = getattr(task, "cfg", None)
        bpe = getattr(settings, "bpe", None)
        if bpe in BPE and str(settings.mask_length) != "subword":
            raise InputError(
                f"--bpe {bpe}: fairseq would mask whole words by it, and does not give it its file; leave it out, and "
                f"spans are counted in symbols."
            )
        model.add_module(_NAME, Vocabulary(task.source_dictionary.symbols))


def fit_denoiser(weights: Mapping[str, Tensor], model: Any) -> Mapping[str, Tensor]:
    """Return the weights to load into a model: those of a denoiser without the rows of symbols that it has alone.

    A denoiser has the ``<mask>`` of its task, which no translation knows. It stands behind all other symbols.

    Args:
        weights: of a checkpoint, by name; those of other models are returned unchanged.
        model: that they are for, with dictionaries in its encoder and its decoder.

    Raises:
        InputError: if a side has another dictionary than the denoiser, naming the first symbol that differs.
    """
    if hasattr(model, _NAME):  # a denoiser itself; earlier versions did not keep its symbols
        return {CODES: model.get_submodule(_NAME).codes, **weights}
    if CODES not in weights:
        return weights
    symbols, own = decode_symbols(weights[CODES]), model.state_dict()
    fitted = {name: weight for name, weight in weights.items() if name != CODES}
    for name, side in (("encoder", "source"), ("decoder", "target")):
        given = list(getattr(model, name).dictionary.symbols)
        check_symbols(symbols[: len(given)], given, what=f"the {side} dictionary", model="denoising model")
        for key in [key for key in fitted if key.startswith(f"{name}.") and key in own]:
            if fitted[key].shape[:1] == (len(symbols),) and own[key].shape[:1] == (len(given),):
                fitted[key] = fitted[key][: len(given)]
    return fitted
