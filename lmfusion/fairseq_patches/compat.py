"""What fairseq needs on today's Python, NumPy and PyTorch, in one place.

fairseq was written for NumPy 1.x and a torch.load that unpickled anything. Importing lmfusion
(which ``--user-dir`` does before anything else) makes its commands work, and keeps loading safe:
checkpoints are read with ``weights_only=True`` and this list of harmless types.
"""

from __future__ import annotations

import argparse
import collections
import logging
import math
import sys
import types
import typing
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Callable

# Every fairseq command would say that a package for speech is missing, which says nothing to our users.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)

import fairseq.distributed.utils as distributed_utils  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from fairseq.data import data_utils  # noqa: E402
from fairseq.ngram_repeat_block import NGramRepeatBlock  # noqa: E402
from fairseq.search import DiverseBeamSearch  # noqa: E402
from omegaconf import DictConfig, ListConfig, base, nodes  # noqa: E402
from torch import Tensor  # noqa: E402

from lmfusion.errors import UserError  # noqa: E402


def _safe_globals() -> list[Any]:
    """Types that fairseq's own checkpoints consist of; none of them runs code when unpickled."""
    try:
        from numpy._core import multiarray
    except ImportError:  # NumPy 1.x
        from numpy.core import multiarray  # type: ignore[no-redef]
    number_types = ("int64", "int32", "float64", "float32", "bool")
    return [
        argparse.Namespace,  # cfg.model of models registered without a dataclass
        *[multiarray._reconstruct, multiarray.scalar, np.ndarray, np.dtype],  # --eval-bleu meters
        *[type(np.dtype(name)) for name in number_types],
        # the state that rank 0 broadcasts when a multi-process run resumes
        *[DictConfig, ListConfig, base.ContainerMetadata, base.Metadata, nodes.AnyNode, typing.Any],
        *[collections.defaultdict, dict, list, int, distributed_utils._TensorPlaceholder],
    ]


def _restore_numpy_names() -> None:
    """NumPy 2 dropped names that fairseq's data sets still use."""
    if not hasattr(np, "compat"):
        vars(np)["compat"] = types.SimpleNamespace(long=int)  # mypy knows no such attribute
    original: Callable[..., Any] = np.percentile
    if getattr(original, "accepts_interpolation", False):
        return

    def percentile(*args: Any, interpolation: str | None = None, **kwargs: Any) -> Any:
        """numpy.percentile, also under its former keyword (--num-batch-buckets)."""
        if interpolation is not None:
            kwargs["method"] = interpolation
        return original(*args, **kwargs)

    percentile.accepts_interpolation = True  # type: ignore[attr-defined]
    np.percentile = percentile


def _batch_every_sentence() -> None:
    """fairseq's ``--required-batch-size-multiple`` (8 by default) drops the last sentences of a data set.

    Its help says that batches have a size below the multiple or divisible by it; what it does is to leave out the
    last batch, without a word: fewer translations than sources, a loss over a part of the validation set.
    """
    original: Callable[..., Any] = data_utils.batch_by_size
    if getattr(original, "batches_everything", False):
        return

    def batch_by_size(indices: Iterable[int], *args: Any, **kwargs: Any) -> Any:
        """fairseq's, with the batch it leaves out.

        Raises:
            UserError: there is no sentence.
        """
        wanted = indices if isinstance(indices, np.ndarray) else np.fromiter(indices, dtype=np.int64, count=-1)
        if not len(wanted):
            raise UserError(
                "no sentence of a data set is left: all are longer than the model, --max-source-positions, "
                "--max-target-positions or --max-tokens allow. Mend that, or leave a validation set out by "
                "--disable-validation."
            )
        batches = original(wanted, *args, **kwargs)
        done = sum(len(batch) for batch in batches)
        if kwargs.get("fixed_shapes") is None and done < len(wanted):  # batches keep the order of the indices
            batches = [*batches, wanted[done:]]
        return batches

    batch_by_size.batches_everything = True  # type: ignore[attr-defined]
    data_utils.batch_by_size = batch_by_size


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


def _block_repeated_ngrams() -> None:
    """``--no-repeat-ngram-size`` does nothing unless fairseq's CUDA extension was compiled, which no package does.

    Without it fairseq compares the end of the whole buffer, which is padding, with what was generated.
    """
    NGramRepeatBlock._no_repeat_ngram = _no_repeat_ngram


def _count_diverse_groups_in_the_batch() -> None:
    """``--diverse-beam-groups`` takes a sentence's number in the data set for its place in the batch.

    It ends in an IndexError, or counts one sentence's overlaps for another. (fairseq-interactive gives places.)
    """
    original: Callable[..., Any] = DiverseBeamSearch.step
    if getattr(original, "counts_places", False):
        return

    def step(self: Any, step: int, lprobs: Tensor, scores: Tensor, tokens: Any = None, ids: Any = None) -> Any:
        """fairseq's, with places in the batch as it was at the first step."""
        if step == 0:
            self.first_ids = ids
        places = None if ids is None else ids[:, None].eq(self.first_ids).int().argmax(dim=1)
        return original(self, step, lprobs, scores, tokens, places)

    step.counts_places = True  # type: ignore[attr-defined]
    DiverseBeamSearch.step = step


def _print_user_errors_plainly() -> None:
    """A mistake of the user's ends a fairseq command in one line instead of a traceback."""
    previous = sys.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, UserError):
            sys.stdout.flush()
            print(f"lmfusion: error: {error}", file=sys.stderr)
        else:
            previous(kind, error, traceback)

    sys.excepthook = hook


def prepare_fairseq() -> None:
    """Apply all of the above; safe to call again."""
    _restore_numpy_names()
    _batch_every_sentence()
    _block_repeated_ngrams()
    _count_diverse_groups_in_the_batch()
    torch.serialization.add_safe_globals(_safe_globals())
    _print_user_errors_plainly()
