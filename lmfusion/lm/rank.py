"""Measure how much of a language model's states lies in a few directions, beside random matrices of the same shape.

A share means nothing by itself: ten of 128 singular values hold 11 % of a random 128 x 768 matrix, ten of 20 hold 53 %.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.lm.interface import LAYERS, PretrainedLM

logger = logging.getLogger(__name__)

LARGEST = 10
MUCH_UNKNOWN = 0.1
"""Share of unknown symbols from which on a text is probably not the language model's."""
_SEED = 1


@dataclass(frozen=True)
class Rank:
    """The spread of the singular values of a matrix.

    Attributes:
        share: of the ten largest in their sum, 0 to 1.
        share_of_squares: of their squares in the sum of squares, which is the variance about zero.
        effective: effective rank, exp(entropy) of the singular values as shares of their sum (Roy and Vetterli 2007).
    """

    share: float
    share_of_squares: float
    effective: float


@dataclass(frozen=True)
class LayerRank:
    """The states of a layer over a text.

    Attributes:
        layer: its name.
        words: n, rows of the matrix.
        channels: C', columns of the matrix.
        states: of the layer's states.
        random: of a matrix of that shape with normally distributed entries.
    """

    layer: str
    words: int
    channels: int
    states: Rank
    random: Rank


def rank_of(matrix: Tensor) -> Rank:
    """Describe the singular values of a matrix, n x C; they are computed in float64.

    Raises:
        InputError: if all entries are zero, or one is no number.
    """
    values = torch.linalg.svdvals(matrix.double()) if matrix.isfinite().all() else torch.zeros(1)
    if not values.sum() > 0:
        raise InputError("states that are all zero, or not finite, have no singular values to compare.")
    shares, squares = values / values.sum(), values.square() / values.square().sum()
    entropy = -torch.special.xlogy(shares, shares).sum()
    return Rank(shares[:LARGEST].sum().item(), squares[:LARGEST].sum().item(), entropy.exp().item())


@torch.no_grad()
def layer_ranks(lm: PretrainedLM, sentences: Iterable[str]) -> list[LayerRank]:
    """Describe each layer's states of all words of a text, one matrix a layer.

    Args:
        lm: the language model.
        sentences: plain text, or symbols, as the model's ``encode`` takes it; overlong ones are cut.

    Raises:
        InputError: if the text has no more than ten words, whose matrix has nothing but large singular values.
    """
    rows: list[list[Tensor]] = [[] for _ in lm.state_names]
    first = len(lm.vocabulary.opening)
    unknown = words = 0
    for sentence in sentences:
        tokens = lm.encode(sentence)[:, : lm.max_positions()]
        unknown += int(tokens.eq(-1 if lm.vocabulary.unknown is None else lm.vocabulary.unknown).sum())
        words += tokens.size(1) - first - 1
        for kept, states in zip(rows, lm.states(tokens, want={LAYERS}).layers):
            kept.append(states[0, first:-1].float())
    if unknown > MUCH_UNKNOWN * words:
        logger.warning(
            f"{unknown / words:.0%} of the text's symbols are none of the language model's, and read as <unk>: is it "
            f"encoded as the text that the model was trained on?"
        )
    matrices = [torch.cat(kept) if kept else torch.zeros(0, lm.state_dim) for kept in rows]
    if min(matrices[0].shape) <= LARGEST:
        words, channels = matrices[0].shape
        raise InputError(
            f"{words} words with states of {channels} channels have at most {min(words, channels)} singular values, so "
            f"the {LARGEST} largest hold all: give more text, or a larger model."
        )
    random = rank_of(torch.randn(matrices[0].shape, generator=torch.Generator().manual_seed(_SEED)))
    return [
        LayerRank(name, matrix.size(0), matrix.size(1), rank_of(matrix), random)
        for name, matrix in zip(lm.state_names, matrices)
    ]
