"""What may be asked of a model and its search: texts, and fairseq's settings with values that make sense."""

from __future__ import annotations

import difflib
import math
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import torch
from fairseq.dataclass.configs import FairseqConfig, GenerationConfig
from fairseq.registry import REGISTRIES
from omegaconf import DictConfig, OmegaConf
from torch import Tensor, nn

from lmfusion.errors import InputError

_OF_GENERATE = ("verbose", "skip_invalid_size_inputs", "inference_step_args", "prefix_allowed_tokens_fn")
_OF_THE_COMMAND = ("constraints", "lm_path", "lm_weight", "prefix_size", "replace_unk")
"""What the commands do around the search, which would pass over it without a word."""
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
        check_text(sentence, f"sentence {number}")


def check_text(sentence: Any, name: str = "a sentence") -> None:
    """Refuse what is no text, and text with halves of characters, which stand for bytes that are no UTF-8.

    Args:
        sentence: to be looked at.
        name: what it is called in the message.

    Raises:
        InputError: naming it.
    """
    if not isinstance(sentence, str):
        raise InputError(f"{name} is a {type(sentence).__name__}, {sentence!r:.60}: give text (str).")
    try:
        sentence.encode("utf-8")
    except UnicodeEncodeError as error:
        half = sentence[error.start]
        raise InputError(f"{name} has {half!r}, which is no character: give text, decoded as UTF-8.") from error


def check_rows(sentences: Any) -> None:
    """Refuse what is neither a list of rows of ids nor a row.

    Raises:
        InputError: naming what it is.
    """
    if not isinstance(sentences, (list, tuple, Tensor)):
        raise InputError(f"generate takes a list of rows of ids, not a {type(sentences).__name__}.")


def check_tokens(sentences: Any, symbols: int) -> None:
    """Refuse a sentence that is no row of the dictionary's ids, or has none, not even the </s> of an empty text.

    Args:
        sentences: rows of ids, or one.
        symbols: number of the source dictionary's.

    Raises:
        InputError: naming it.
    """
    alone = isinstance(sentences, Tensor) and sentences.dim() == 1
    for number, tokens in enumerate([sentences] if alone else sentences):
        if not isinstance(tokens, Tensor) or tokens.dim() != 1:
            raise InputError(f"sentence {number} is a {type(tokens).__name__}: give a row of ids, as encode gives it.")
        if not len(tokens):
            raise InputError(f"sentence {number} has no tokens: give ids that end in </s>, as encode gives them.")
        if tokens.dtype not in (torch.int64, torch.int32):
            raise InputError(f"sentence {number} is of {tokens.dtype}: give ids (torch.int64), as encode gives them.")
        wrong = tokens[(tokens < 0) | (tokens >= symbols)]
        if len(wrong):
            raise InputError(
                f"sentence {number} has {int(wrong[0])}, no index of the source dictionary's {symbols} symbols."
            )


def check_limits(limits: Sequence[Any]) -> None:
    """Refuse a model that takes no token at all.

    Args:
        limits: tokens of the longest source and target.

    Raises:
        InputError: naming the limit.
    """
    for side, limit in zip(("source", "target"), limits):
        if limit < 1:
            raise InputError(f"max_{side}_positions {limit} would leave no room for a word: give a number above 0.")


def check_settings(given: Mapping[str, Any]) -> None:
    """Refuse settings that the search does not have, and numbers that it cannot work with.

    Args:
        given: values by fairseq's names of them, such as ``max_len_b``.

    Raises:
        InputError: naming the setting, and the nearest or the least one.
    """
    if given.get("score_reference"):  # fairseq's score(), which knows language models only
        raise InputError(
            "given translations are scored by fairseq-generate --score-reference, beside prepared data; the score of "
            "its own ones is in what generate returns, and printed by lmfusion translate --scores."
        )
    defaults = GenerationConfig.__dataclass_fields__
    for name, value in given.items():
        _check_name(name, {*defaults, *_OF_GENERATE}, "the search has no setting")
        if name in _OF_THE_COMMAND and value != defaults[name].default:
            raise InputError(
                f"{name}={value!r} would be ignored here: fairseq-generate and fairseq-interactive have it, as "
                f"--{name.replace('_', '-')}. Leave it out, or use these."
            )
        if name not in _LEAST:
            continue
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise InputError(f"{name} {value!r}: give a number.")
        if value < _LEAST[name]:
            raise InputError(f"{name} {value}: give {_LEAST[name]:g} or more.")


def check_overrides(given: Mapping[str, Any], cfg: Mapping[str, Any]) -> None:
    """Refuse values of a configuration that it does not have: fairseq would pass over them without a word.

    Args:
        given: values by name.
        cfg: of the checkpoint, with its sections.

    Raises:
        InputError: naming the value, and the nearest one.
    """
    defaults = OmegaConf.structured(FairseqConfig())
    text = [kind for name in ("bpe", "tokenizer") for kind in REGISTRIES[name]["dataclass_registry"].values()]
    known = {*_names(cfg), *_names(defaults), *(name for kind in text for name in kind.__dataclass_fields__)}
    for name in given:
        _check_name(name, known, "the model's configuration has no value")


def check_languages(own: Mapping[str, str], given: Mapping[str, Any]) -> None:
    """Refuse languages that are not those of a model that holds its dictionaries.

    Args:
        own: the model's, by the configuration's names of them.
        given: values by name; with ``data`` its dictionaries are others.

    Raises:
        InputError: naming the language, and what the model translates.
    """
    for name, language in own.items():
        if given.get(name, language) != language and "data" not in given:
            raise InputError(f"{name}={given[name]!r}: the model translates {' to '.join(own.values())}. Leave it out.")


def _names(section: Any) -> Iterator[str]:
    """Yield the names in a section and those in it; older models have a Namespace."""
    if isinstance(section, DictConfig):
        section = OmegaConf.to_container(section, resolve=False)
    values = vars(section) if isinstance(section, Namespace) else section
    for name, inner in values.items():
        yield name
        if isinstance(inner, (Mapping, DictConfig, Namespace)):
            yield from _names(inner)


def _check_name(name: str, known: set[str], what: str) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        raise InputError(f"{what} {name!r}" + (f"; did you mean {near[0]}?" if near else "."))


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
