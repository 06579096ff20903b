"""Trainable language models that predict several words at a position: the next and the last one, or itself as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from lmfusion.lm.transformer.base import TrainableLM

BY_TARGET = "sums of the loss by target"
"""Entry of a validation batch; lmfusion/fairseq_patches/perplexities.py takes it from there."""


class SeveralTargets(TrainableLM):
    """A fairseq model around a language model that may have more than one target."""

    @property
    def targets(self) -> list[str]:
        """Return fairseq's names of what is predicted at a position, in the order of the logits."""
        return list(cast("Sequence[str]", self.decoder.targets))

    def get_targets(self, sample: dict[str, Any], net_output: Sequence[Any] | None) -> Tensor:
        """Return the targets in the shape of the logits without V: B x T or B x K x T.

        With several targets the loss of a position is the sum over its targets. fairseq's criteria count sentences
        in ``sample["target"]`` after this, so the list is replaced there as well.
        """
        if isinstance(sample["target"], list):
            sample["target"] = torch.stack(sample["target"], dim=1)
        target: Tensor = sample["target"]
        if net_output is not None and not self.training and target.dim() == 3:
            sample[BY_TARGET] = self._sums(net_output[0], target)
        return target

    def _sums(self, logits: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Return the negative log-likelihood and the number of predicted words of each target, for the log."""
        found = {}
        padding = self.decoder.padding_idx
        for number, name in enumerate(self.targets):
            words = target[:, number]
            scores = logits[:, number].flatten(0, 1).float()
            found[f"nll_{name}"] = F.cross_entropy(scores, words.flatten(), ignore_index=padding, reduction="sum")
            found[f"words_{name}"] = words.ne(padding).sum()
        return found
