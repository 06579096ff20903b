"""Translate a stream of lines in order, in batches of sentences of like length."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.hub_utils import GeneratorHubInterface
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.inference.hub import Translator
from lmfusion.inference.search_settings import check_settings, check_text
from lmfusion.inference.unknown_symbols import UnknownSymbols, of_model
from lmfusion.text.opening import clean

logger = logging.getLogger(__name__)

WINDOW = 16
"""Batches' worth of lines that are sorted by length together."""
PATIENCE = 0.05
"""Seconds to wait for another line before those that are there are translated."""

Done = Callable[[int], Any]
"""A function that is told how many more lines are finished."""


@dataclass(frozen=True)
class Search:
    """Settings of the translation.

    Attributes:
        beam: hypotheses that are kept at every step.
        nbest: hypotheses that are returned of each line, at most ``beam``.
        batch_size: sentences a batch.
        settings: further settings of fairseq's search, ``lenpen`` and the like, but ``beam`` and ``nbest``.
    """

    beam: int = 5
    nbest: int = 1
    batch_size: int = 64
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in (("--beam", self.beam), ("--nbest", self.nbest), ("--batch-size", self.batch_size)):
            if value < 1:
                raise InputError(f"{name} {value}: give a number above 0.")
        if self.nbest > self.beam:
            raise InputError(
                f"--nbest {self.nbest}: a beam of {self.beam} has no more hypotheses; give --beam as well."
            )
        if named := [name for name in ("beam", "nbest") if name in self.settings]:
            raise InputError(f"{named[0]} is no further setting of a search: give Search({named[0]}=…).")
        check_settings(self.settings)


@dataclass(frozen=True)
class Hypothesis:
    """One translation: its text and its score, the mean log-probability of its symbols unless ``lenpen`` says else."""

    text: str
    score: float


def translate_lines(
    model: Translator, lines: Iterable[str], search: Search, *, ahead: bool = True, done: Done | None = None
) -> Iterator[list[Hypothesis]]:
    """Translate lines as they come in.

    White space of every kind counts as a space, as in prepared text. A line without a word gives one empty hypothesis,
    so that output and input stay parallel. A line longer than the model reads is cut, and a warning names it. Others
    name the first line with symbols that the model does not know (in a dialogue, each) and the first whose translation
    has ``<unk>``, which the setting ``unkpen`` prevents; at the end it is said how many there were, if more than one.

    Args:
        model: from :func:`lmfusion.load_model`.
        lines: one sentence (or article) each.
        search: settings.
        ahead: read lines while others are being translated; False: in a dialogue, where each waits for its answer.
        done: told the number of lines of each batch that is finished.

    Yields:
        The hypotheses of each line, best first, in the order of the lines.

    Raises:
        InputError: if something is no text, or a setting is none.
    """
    batches = model.cfg.dataset
    sizes, before = (batches.batch_size, batches.max_tokens), model.after_batch
    first, unknown = 1, of_model(model, is_dialogue=not ahead)
    model.after_batch = done or before
    batches.batch_size, batches.max_tokens = search.batch_size, None
    try:
        for window in windows(lines, search.batch_size * WINDOW) if ahead else ([line] for line in lines):
            for number, found in enumerate(_translate(model, window, search, first, unknown), start=first):
                unknown.check_translation(number, (each.text for each in found))
                yield found
            first += len(window)
    finally:  # what the model translates later has its own batches, and who was told of these is not told of those
        batches.batch_size, batches.max_tokens = sizes
        model.after_batch = before
    unknown.finish()


def _translate(
    model: Translator, lines: list[str], search: Search, first: int, unknown: UnknownSymbols
) -> Iterator[list[Hypothesis]]:
    tokens = [_tokens(model, line, first + place, unknown) for place, line in enumerate(lines) if line.strip()]
    found = iter(model.generate(tokens, search.beam, nbest=search.beam, **search.settings))
    for line in lines:
        if not line.strip():
            model.after_batch(1)
            yield [Hypothesis("", 0.0)]
            continue
        best = next(found)[: search.nbest]
        yield [Hypothesis(clean(model.decode(each["tokens"])), float(each["score"])) for each in best]


def _tokens(model: Translator, line: str, number: int, unknown: UnknownSymbols) -> Tensor:
    check_text(line, f"line {number}")
    tokens: Tensor = GeneratorHubInterface.encode(model, clean(line))
    unknown.check_source(number, line, int((tokens == model.src_dict.unk()).sum()))
    limit = model.max_positions[0]
    if len(tokens) <= limit:
        return tokens
    warn_of_cut(number, len(tokens), limit)
    return torch.cat([tokens[: limit - 1], tokens[-1:]])


def warn_of_cut(number: int, symbols: int, limit: int) -> None:
    """Warn of a line that is longer than the model reads.

    Args:
        number: of the line, from 1.
        symbols: of the line, with </s>.
        limit: as many are read.
    """
    logger.warning(f"line {number} has {symbols} symbols, and the model reads {limit}: the rest is left out")


def windows(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    """Yield lists of up to ``size`` lines: what is there already, so that a slow stream is answered line by line."""
    waiting: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=2 * size)
    threading.Thread(target=_read, args=(lines, waiting), daemon=True).start()
    while True:
        window: list[str] = []
        ended = waiting.get()
        while isinstance(ended, str):
            window.append(ended)
            if len(window) == size:
                break
            try:
                ended = waiting.get(timeout=PATIENCE)
            except queue.Empty:
                break
        if window:
            yield window
        if isinstance(ended, BaseException):
            raise ended
        if ended is None:
            return


def _read(lines: Iterable[str], waiting: queue.Queue[str | BaseException | None]) -> None:
    """Put lines into a queue, and at the end None or what went wrong."""
    end: BaseException | None = RuntimeError("the lines to translate could not be read, as said above")
    try:
        for line in lines:
            waiting.put(line)
        end = None
    except (InputError, OSError, ValueError) as error:
        end = error
    finally:  # Python prints anything else that ends a thread, and whoever waits has to hear of it
        waiting.put(end)
