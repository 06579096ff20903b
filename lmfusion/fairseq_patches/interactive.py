"""Input lines of ``fairseq-interactive`` that are longer than the model takes, or unknown to it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sized
from functools import cache
from typing import Any

import numpy as np
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.lm.symbols import plain_word

logger = logging.getLogger(__name__)

MOST_UNKNOWN = 0.5


def make_batches_without_overlong_lines(original: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    """Return fairseq's ``make_batches``, which makes no batch where every line of a buffer is too long.

    Args:
        original: fairseq's; of no line it makes an error.
    """
    lines_before = 0  # this process has one input
    is_told = False

    def make_batches(
        lines: list[str], cfg: Any, task: Any, max_positions: Any, encode_fn: Callable[[str], str]
    ) -> Iterator[Any]:
        """Yield the batches of a buffer of lines; ``--truncate-source`` cuts as it does in training.

        Raises:
            InputError: a line is too long, and nothing says that it may be cut or left out.
        """
        nonlocal lines_before, is_told
        first, lines_before = lines_before + 1, lines_before + len(lines)
        cuts = isinstance(max_positions, tuple) and getattr(task.cfg, "truncate_source", False)

        @cache  # tokenized once, here and by fairseq
        def encode(line: str) -> str:
            words = encode_fn(line).split()
            return " ".join(words[: max_positions[0] - 1] if cuts else words)  # and </s>

        texts = [line.partition("\t")[0] for line in lines] if cfg.generation.constraints else lines
        sentences, lengths = task.get_interactive_tokens_and_lengths(texts, encode)
        _say_unknown(sentences, task)
        kept: Sized = lines
        overlong: Iterable[int] = ()
        if not isinstance(max_positions, dict):  # of several languages: that data set cannot say which are too long
            dataset = task.build_dataset_for_inference(sentences, lengths)
            kept, overlong = dataset.filter_indices_by_size(np.arange(len(lines)), max_positions)
        words = [word for text in texts for word in encode(text).split()]
        known = getattr(task.source_dictionary, "indices", words)
        if not is_told and (word := plain_word(words, known)) is not None:
            is_told = True
            logger.warning(
                f"{word!r} is none of the model's symbols, which are pieces of words: plain text needs the --bpe and "
                f"--tokenizer of its training, and without them becomes {task.source_dictionary.unk_word}."
            )
        for index in overlong:
            _report(first + int(index), dataset.size(index), max_positions, cfg)
        if len(kept):
            yield from original(lines, cfg, task, max_positions, encode)

    return make_batches


def _say_unknown(sentences: list[Tensor], task: Any) -> None:
    """Warn where most of the input is unknown to the model, as text is that lacks the model's BPE."""
    tokens = [token for sentence in sentences for token in sentence.tolist()[:-1]]
    unknown = tokens.count(task.source_dictionary.unk())
    if tokens and unknown > len(tokens) * MOST_UNKNOWN:
        logger.warning(
            f"{unknown} of {len(tokens)} symbols of the input are unknown to the model: give the --tokenizer and --bpe "
            f"that it was trained with."
        )


def _report(line: int, size: Any, max_positions: Any, cfg: Any) -> None:
    length, limit = (pair[0] if isinstance(pair, tuple) else pair for pair in (size, max_positions))
    text = f"line {line} of the input has {length} tokens, more than the {limit} that the model takes"
    if not cfg.dataset.skip_invalid_size_inputs_valid_test:
        raise InputError(
            f"{text}: shorten it, or add --truncate-source, or --skip-invalid-size-inputs-valid-test to leave such "
            f"lines out."
        )
    logger.warning(f"{text}: it is left out.")
