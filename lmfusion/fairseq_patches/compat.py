"""What fairseq's data sets, decoding and commands need on today's Python and NumPy, or get wrong by themselves."""

from __future__ import annotations

import math
import sys
import types
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Callable

import numpy as np
from fairseq.ngram_repeat_block import NGramRepeatBlock
from torch import Tensor

from lmfusion.fairseq_patches import one_line


class _FormerNumpy(types.ModuleType):
    """NumPy with the names of NumPy 1 that fairseq's data sets use."""

    compat = types.SimpleNamespace(long=int)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def percentile(*args: Any, interpolation: str | None = None, **kwargs: Any) -> Any:
        """Return ``numpy.percentile``, whose keyword ``method`` may be called ``interpolation`` as it once was."""
        return np.percentile(*args, **kwargs if interpolation is None else {**kwargs, "method": interpolation})


def give_former_names(numpy: Any) -> types.ModuleType:
    """Make a module's ``np`` have ``np.compat.long`` and ``np.percentile(interpolation=…)`` again."""
    return _FormerNumpy("numpy")


def batch_every_sentence(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``batch_by_size`` keep the last batch, which ``--required-batch-size-multiple`` (8 by default) drops."""

    def batch_by_size(indices: Iterable[int], *args: Any, **kwargs: Any) -> Any:
        wanted = indices if isinstance(indices, np.ndarray) else np.fromiter(indices, dtype=np.int64, count=-1)
        batches = original(wanted, *args, **kwargs)
        done = sum(len(batch) for batch in batches)
        if kwargs.get("fixed_shapes") is None and done < len(wanted):  # batches keep the order of the indices
            batches = [*batches, wanted[done:]]
        return batches

    return batch_by_size


def block_repeated_ngrams(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Make ``--no-repeat-ngram-size`` compare with what was generated, not with the padding behind it."""
    return _no_repeat_ngram


def _no_repeat_ngram(
    self: NGramRepeatBlock, tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int
) -> Tensor:
    """Forbid each hypothesis (rows) the tokens that would complete an n-gram it already has.

    TorchScript compiles this text together with fairseq's generator: no closures, no annotation of what it infers.
    """
    size, generated = self.no_repeat_ngram_size, tokens[:, 1 : step + 1]  # without the </s> it starts from
    if step >= size:
        ngrams = generated.unfold(1, size, 1)  # rows x places x n
        last = generated[:, step + 1 - size :].unsqueeze(1)
        repeated = ngrams[:, :, : size - 1].eq(last).all(dim=-1)
        found = repeated.nonzero()
        rows = found[:, 0]
        lprobs[rows, ngrams[rows, found[:, 1], size - 1]] = -math.inf
    return lprobs


def count_diverse_groups_in_the_batch(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``--diverse-beam-groups`` take places in the batch where it takes numbers of the data set."""

    def step(self: Any, step: int, lprobs: Tensor, scores: Tensor, tokens: Any = None, ids: Any = None) -> Any:
        if step == 0:
            self.first_ids = ids
        places = None if ids is None else ids[:, None].eq(self.first_ids).int().argmax(dim=1)
        return original(self, step, lprobs, scores, tokens, places)

    return step


def print_user_errors_plainly(original: Callable[..., None]) -> Callable[..., None]:
    """Make a mistake of the user's end a command in one line instead of a traceback (:mod:`~.one_line`)."""

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if (line := one_line.describe(error)) is not None:
            sys.stdout.flush()
            print(line, file=sys.stderr)
        else:
            original(kind, error, traceback)

    return hook
