"""What may be asked of the search: texts, and fairseq's settings with values that make sense."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any

from fairseq.dataclass.configs import GenerationConfig
from torch import nn

from lmfusion.errors import InputError

_OF_GENERATE = ("skip_invalid_size_inputs", "inference_step_args", "prefix_allowed_tokens_fn", "score_reference")
_LEAST = {
    "lenpen": -math.inf,
    "unkpen": -math.inf,
    "temperature": 1e-6,
    "max_len_a": 0,
    "max_len_b": 0,
    "min_len": 0,
    "no_repeat_ngram_size": 0,
    "nbest": 1,
}
"""The least value of settings that are numbers: below it fairseq fails in its middle, or every score is NaN."""


def check_texts(sentences: Any) -> None:
    """Refuse what is no list of texts.

    Raises:
        InputError: naming what it is, or the first sentence that is no text.
    """
    if not isinstance(sentences, (list, tuple)):
        raise InputError(f"translate takes a list of texts (str), not a {type(sentences).__name__}.")
    for number, sentence in enumerate(sentences):
        if not isinstance(sentence, str):
            raise InputError(f"sentence {number} is a {type(sentence).__name__}, {sentence!r:.60}: give text (str).")


def check_settings(given: Mapping[str, Any]) -> None:
    """Refuse settings that the search does not have, and numbers that it cannot work with.

    Args:
        given: values by fairseq's names of them, such as ``max_len_b``.

    Raises:
        InputError: naming the setting, and the nearest or the least one.
    """
    known = {*GenerationConfig.__dataclass_fields__, *_OF_GENERATE}
    for name, value in given.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise InputError(f"the search has no setting {name!r}" + (f"; did you mean {near[0]}?" if near else "."))
        if name not in _LEAST:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise InputError(f"{name} {value!r}: give a number.")
        if value < _LEAST[name]:
            raise InputError(f"{name} {value}: give {_LEAST[name]:g} or more.")


def why_it_ended(model: nn.Module, said: str) -> str:
    """Return why a search broke off: weights that are no numbers, which give no symbol a probability, or its settings.

    Args:
        model: the model that it was given.
        said: what the search itself says.
    """
    for name, weight in model.named_parameters():
        if not weight.isfinite().all():
            return (
                f"the model cannot translate: its weights {name} are not all numbers. Its file is damaged, or its "
                f"training diverged: take an earlier checkpoint."
            )
    return f"the search refuses these settings: {said}"
