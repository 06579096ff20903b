"""Parts of the released format without a counterpart of ours, multiplied into weights that have one.

All of it is exact but for rounding; products are taken in float64.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from lmfusion.errors import InputError

Weights = dict[str, Tensor]


def fold_projections(weights: Weights, prefix: str, *, shared: bool) -> tuple[Weights, bool]:
    """Multiply the projections between embeddings and blocks of other sizes into the embeddings.

    Args:
        weights: of the whole checkpoint.
        prefix: of a decoder.
        shared: whether its input embedding is its output embedding.

    Returns:
        weights with embeddings of the blocks' size, and whether these still are shared.

    Raises:
        InputError: if sizes do not go together.
    """
    embed, out = f"{prefix}embed_tokens.weight", f"{prefix}embed_out"
    inner, outer = f"{prefix}project_in_dim.weight", f"{prefix}project_out_dim.weight"
    if inner not in weights and outer not in weights:
        return weights, shared
    folded = dict(weights)
    softmax = embed if shared else out
    if outer in folded and softmax in folded:  # inside another model there is no softmax
        folded[out] = _product(folded, softmax, outer, transposed=False)
    if inner in folded:
        folded[embed] = _product(folded, embed, inner, transposed=True)
    return {name: value for name, value in folded.items() if name not in (inner, outer)}, False


def _product(weights: Weights, embedding: str, projection: str, *, transposed: bool) -> Tensor:
    rows, matrix = weights.get(embedding), weights[projection]
    matrix = matrix.T if transposed and matrix.dim() == 2 else matrix
    if rows is None or rows.dim() != 2 or matrix.dim() != 2 or rows.size(1) != matrix.size(0):
        shape = "missing" if rows is None else tuple(rows.shape)
        raise InputError(f"{embedding} ({shape}) and {projection} ({tuple(weights[projection].shape)}) do not fit.")
    return (rows.double() @ matrix.double()).float()


def fold_scale(embedding: Tensor, scale: float) -> Tensor:
    """Return an embedding (V x C) that, multiplied by sqrt(C) as always, is what ``scale`` makes of the one given."""
    return (embedding.double() * (scale / math.sqrt(embedding.size(1)))).float()


def fold_plain_shares(weights: Weights, prefix: str) -> Weights:
    """Replace the shares of an ELMo mix without a softmax by those of one with it: w = (sum w) softmax(log w).

    Args:
        weights: of the whole checkpoint.
        prefix: of the mix.

    Raises:
        InputError: if a share is not positive.
    """
    shares, gamma = weights.get(f"{prefix}weights"), weights.get(f"{prefix}gamma")
    if shares is None or gamma is None:
        return weights  # what is missing will be listed
    if not bool((shares > 0).all()):
        raise InputError(
            f"{prefix}weights was trained without a softmax (elmo_softmax=False) and has shares that are not positive, "
            f"which lmfusion's mix cannot have: {', '.join(f'{share:.4g}' for share in shares.flatten().tolist())}."
        )
    total = shares.double().sum()
    return {
        **weights,
        f"{prefix}weights": torch.log(shares.double()).float(),
        f"{prefix}gamma": (gamma.double() * total).float(),
    }
