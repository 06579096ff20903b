"""Heads on the states of a sentence: classes, yes or no, scores and tags, of sentences and of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmfusion.errors import InputError
from lmfusion.lm.symbols import decode_symbols, encode_symbols
from lmfusion.operations import dropout
from lmfusion.text.labelled import BINARY, CLASS, HIGHEST, SCORE, TAGS

CONCAT, UV, UV_DIFF, UV_DIFF_PROD, COS = PAIRS = ("concat", "uv", "uv_diff", "uv_diff_prod", "cos")
"""Ways of treating a pair: one row through the language model, or two whose vectors u and v are joined."""
_VECTORS = {CONCAT: 1, UV: 2, UV_DIFF: 3, UV_DIFF_PROD: 4}
IGNORED = -100
"""The target of a position without a tag."""


@dataclass(frozen=True)
class HeadSpec:
    """Describes what a head is for.

    Attributes:
        name: of its task.
        kind: one of :data:`lmfusion.text.labelled.KINDS`.
        pair: one of :data:`PAIRS`; None: single sentences.
        classes: names of the classes or tags, in the order of the logits; of a score none.

    Raises:
        InputError: if kind and pair do not go together.
    """

    name: str
    kind: str
    pair: str | None
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind == CLASS and self.pair == COS:
            raise InputError(f"{self.name}: cos gives one number, {len(self.classes)} classes need as many: use uv.")
        if self.kind == TAGS and self.pair is not None:
            raise InputError(f"{self.name}: tags are for single sentences, not for pairs.")
        if self.kind in (CLASS, TAGS) and len(self.classes) < 2:
            raise InputError(f"{self.name}: its training data have one class alone, {self.classes}: nothing to learn.")

    @property
    def rows(self) -> int:
        """Return the number of rows that one example is: 2 where both sentences are read apart."""
        return 1 if self.pair in (None, CONCAT) else 2

    def as_plain(self) -> dict[str, Any]:
        """Return plain values, from which ``HeadSpec.of`` makes the same."""
        return asdict(self)

    @classmethod
    def of(cls, values: dict[str, Any]) -> HeadSpec:
        """Return the specification that :meth:`as_plain` gave."""
        return cls(values["name"], values["kind"], values["pair"], tuple(values["classes"]))


class Head(nn.Module):
    """A linear layer over the vector of a sentence or pair, or over each state of a sentence.

    With ``cos`` the logit is ``a cos(u, v) + b``, which is the same for (u, v) and (v, u). A score is
    ``5 sigmoid(logit)``.

    Args:
        spec: what it is for.
        channels: C of the vectors.
        rate: of the dropout before the layer.
    """

    names: Tensor

    def __init__(self, spec: HeadSpec, channels: int, rate: float) -> None:
        super().__init__()
        self.spec, self.rate = spec, rate
        outputs = len(spec.classes) if spec.kind in (CLASS, TAGS) else 1
        self.layer: nn.Linear | None = None
        if spec.pair == COS:
            self.affine = nn.Parameter(torch.tensor([1.0, 0.0]))
        else:
            self.layer = nn.Linear(_VECTORS[spec.pair or CONCAT] * channels, outputs)
            nn.init.normal_(self.layer.weight, std=0.02)
            nn.init.zeros_(self.layer.bias)
        self.register_buffer("names", encode_symbols(spec.classes))

    def forward(self, vectors: Sequence[Tensor]) -> Tensor:
        """Compute logits.

        Args:
            vectors: one or two of B x C; of tags one of B x T x C.

        Returns:
            B x K of K classes, B of ``binary`` and ``score``, B x T x K of tags.
        """
        dropped = [dropout(vector, self.rate, self.training) for vector in vectors]
        if self.layer is None:
            scale, shift = self.affine
            return scale * F.cosine_similarity(dropped[0], dropped[1], dim=-1) + shift
        logits: Tensor = self.layer(joined(dropped, self.spec.pair))
        return logits if self.spec.kind in (CLASS, TAGS) else logits.squeeze(-1)

    def loss(self, logits: Tensor, target: Tensor) -> Tensor:
        """Return the mean loss of a batch, a scalar: cross-entropy, or the squared difference of scores."""
        if self.spec.kind == SCORE:
            return F.mse_loss(scores(logits), target.float())
        if self.spec.kind == BINARY:
            return F.binary_cross_entropy_with_logits(logits.float(), target.float())
        return F.cross_entropy(logits.float().flatten(0, -2), target.flatten(), ignore_index=IGNORED)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        stored = state_dict.get(prefix + "names")
        if stored is not None:
            ours, theirs = list(self.spec.classes) or [""], decode_symbols(stored)
            check_classes(theirs, ours, self.spec.name)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


def check_classes(trained: list[str], given: list[str], name: str) -> None:
    """Refuse classes other than those a head was trained with.

    Raises:
        InputError: naming the task and both.
    """
    if trained != given:
        raise InputError(f"{name}: the model was trained on the classes {trained}, and these data have {given}.")


RENAMED = "A task is called as its folder: where that was renamed, give it its name of then (a link will do)."


def check_tasks(trained: set[str], given: set[str]) -> None:
    """Refuse other tasks than those that a model has heads for.

    Args:
        trained: names of its heads; none: they are not known.
        given: names of the tasks.

    Raises:
        InputError: naming both.
    """
    if trained and trained != given:
        raise InputError(
            f"the model has heads for {', '.join(sorted(trained))}, and the tasks are {', '.join(sorted(given))}. "
            f"{RENAMED}"
        )


def joined(vectors: Sequence[Tensor], pair: str | None) -> Tensor:
    """Join the vectors u and v of a pair: ``[u; v]``, with ``|u - v|``, with ``u * v``; one vector stays as it is.

    Args:
        vectors: one or two of ... x C.
        pair: one of :data:`PAIRS` but ``cos``.

    Returns:
        ... x 1C to 4C.
    """
    if pair in (None, CONCAT):
        return vectors[0]
    u, v = vectors
    parts = [u, v, (u - v).abs(), u * v]
    return torch.cat(parts[: _VECTORS[pair]], dim=-1)


def scores(logits: Tensor) -> Tensor:
    """Turn logits into scores of 0 to 5."""
    return HIGHEST * torch.sigmoid(logits.float())


def probabilities(spec: HeadSpec, logits: Tensor) -> Tensor:
    """Turn logits into what is told of them: probabilities (B x K, or B x T x K of tags), or scores (B x 1)."""
    if spec.kind == SCORE:
        return scores(logits).unsqueeze(-1)
    if spec.kind == BINARY:
        yes = torch.sigmoid(logits.float()).unsqueeze(-1)
        return torch.cat([1 - yes, yes], dim=-1)
    return logits.float().softmax(-1)
