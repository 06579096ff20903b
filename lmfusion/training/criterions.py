"""Criterions that compute fairseq's two cross-entropies in chunks: same flags, same figures, less memory.

The loss is computed where the model would compute its logits (its ``head``), inside the model's forward pass: there its
autocast holds, and every wrapper for several processes sees the output embeddings used.
"""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
from dataclasses import dataclass, field
from typing import Any

from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.criterions.cross_entropy import CrossEntropyCriterion, CrossEntropyCriterionConfig
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.training.chunked_loss import ChunkedLoss, chunked_cross_entropy

_CHUNK_HELP = "tokens whose logits exist at once; 0: as many as 24 MiB hold, on a GPU 512"


def _check(model: Any, chunk_tokens: int, reduce: bool) -> None:
    """Refuse settings under which the loss would differ from fairseq's."""
    if not getattr(model, "takes_head", False):
        raise InputError(
            "the chunked criterions need a model of lmfusion's (transformer_lmfusion, bi_transformer_lm, "
            "uni_transformer_lm): leave chunked_ out of --criterion, or choose one of these models "
            "(transformer_lmfusion without language models is fairseq's transformer)."
        )
    if chunk_tokens < 0:
        raise InputError(f"--loss-chunk-tokens {chunk_tokens} is no number of tokens: give one from 1, or 0.")
    if not reduce:
        raise InputError("the chunked criterions give sums only: leave chunked_ out of --criterion for single losses.")


def _with_head(model: Any, sample: dict[str, Any], prefix: int, **settings: Any) -> dict[str, Any]:
    """Return the sample with a head for the model that computes the loss instead of logits.

    Args:
        model: its ``get_targets`` shapes the targets.
        sample: fairseq's batch; it is left unchanged.
        prefix: number of leading target tokens that do not count.
        settings: of :func:`chunked_cross_entropy`.
    """
    sample = dict(sample)
    target = model.get_targets(sample, None)

    def head(features: Tensor, weight: Tensor) -> ChunkedLoss:
        """Compute the loss from features (... x T x C) and output embeddings (V x C)."""
        return chunked_cross_entropy(features[..., prefix:, :], weight, target[..., prefix:], **settings)

    return {**sample, "net_input": {**sample["net_input"], "head": head}}


class _Chunked(FairseqCriterion):
    """Compute the loss of the fairseq criterion that stands behind this class in a chunk of tokens at a time."""

    loss_chunk_tokens: int
    padding_idx: int
    ignore_prefix_size = 0

    def settings(self) -> dict[str, Any]:
        """Return settings of :func:`chunked_cross_entropy` besides padding and the size of a chunk."""
        return {}

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> Any:
        """Compute the loss of a batch.

        Args:
            model: one that takes a head.
            sample: fairseq's batch.
            reduce: must be True: the loss is a sum.

        Returns:
            The loss (a scalar), the sample size and the values to log, as fairseq's criterion does.

        Raises:
            InputError: if the model takes no head, or single losses are asked for.
        """
        _check(model, self.loss_chunk_tokens, reduce)
        settings = {"padding_idx": self.padding_idx, "chunk_tokens": self.loss_chunk_tokens, **self.settings()}
        return super().forward(model, _with_head(model, sample, self.ignore_prefix_size, **settings))


@dataclass
class ChunkedCrossEntropyConfig(CrossEntropyCriterionConfig):
    """Flags of ``--criterion chunked_cross_entropy``: those of ``cross_entropy``, and the size of a chunk."""

    loss_chunk_tokens: int = field(default=0, metadata={"help": _CHUNK_HELP})


@register_criterion("chunked_cross_entropy", dataclass=ChunkedCrossEntropyConfig)
class ChunkedCrossEntropy(_Chunked, CrossEntropyCriterion):
    """The cross-entropy of ``--criterion cross_entropy``, computed for a chunk of tokens at a time."""

    def __init__(self, task: Any, sentence_avg: bool, loss_chunk_tokens: int = 0) -> None:
        super().__init__(task, sentence_avg)
        self.loss_chunk_tokens = loss_chunk_tokens

    def compute_loss(
        self, model: Any, net_output: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Return the summed loss that the model's head has computed, twice as fairseq's criterion does."""
        computed: ChunkedLoss = net_output[0]
        return computed.loss, computed.loss


@dataclass
class ChunkedLabelSmoothedCrossEntropyConfig(LabelSmoothedCrossEntropyCriterionConfig):
    """Flags of ``chunked_label_smoothed_cross_entropy``: those of fairseq's criterion, and the size of a chunk."""

    loss_chunk_tokens: int = field(default=0, metadata={"help": _CHUNK_HELP})


@register_criterion("chunked_label_smoothed_cross_entropy", dataclass=ChunkedLabelSmoothedCrossEntropyConfig)
class ChunkedLabelSmoothedCrossEntropy(_Chunked, LabelSmoothedCrossEntropyCriterion):
    """The loss of ``--criterion label_smoothed_cross_entropy``, computed for a chunk of tokens at a time."""

    def __init__(
        self,
        task: Any,
        sentence_avg: bool,
        label_smoothing: float,
        ignore_prefix_size: int = 0,
        report_accuracy: bool = False,
        loss_chunk_tokens: int = 0,
    ) -> None:
        super().__init__(task, sentence_avg, label_smoothing, ignore_prefix_size, report_accuracy)
        self.loss_chunk_tokens = loss_chunk_tokens

    def settings(self) -> dict[str, Any]:
        """Return label smoothing, and whether correct predictions are counted."""
        return {"label_smoothing": self.eps, "count_correct": self.report_accuracy}

    def compute_loss(
        self, model: Any, net_output: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Return the summed loss that the model's head has computed, with and without label smoothing."""
        computed: ChunkedLoss = net_output[0]
        return computed.loss, computed.nll

    def compute_accuracy(self, model: Any, net_output: Any, sample: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Return the numbers of correct predictions and of all predictions."""
        target = sample["target"][..., self.ignore_prefix_size :]
        return net_output[0].correct, target.ne(self.padding_idx).sum()
