"""The operations of our models that :mod:`lmfusion.kernels` makes faster, in plain PyTorch.

Models import them from :mod:`lmfusion.operations`, which takes those of the kernels where they are there.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from fairseq.models.lstm import LSTMDecoder
from torch import Tensor, nn

Linear = nn.Linear


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``x weightᵀ + bias``: ... x K, N x K and N -> ... x N."""
    return F.linear(x, weight, bias)


def product(left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
    """Return ``left @ right``, M x K times K x N; ``out`` is memory that the result may take."""
    return torch.mm(left, right, out=out)


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add ``left @ right``, M x K times K x N, to ``total`` in place."""
    total.addmm_(left, right)


def dropout(x: Tensor, probability: float, training: bool = True) -> Tensor:
    """Zero elements at random and scale the others up by ``1 / (1 - probability)``.

    Args:
        x: of any shape, which is that of the result.
        probability: of an element to be zeroed.
        training: False: ``x`` as it is.
    """
    return F.dropout(x, probability) if training and probability > 0.0 else x


def relu_dropout(x: Tensor, probability: float, training: bool = True) -> Tensor:
    """Return ``dropout(relu(x))``, arguments as of :func:`dropout`; of the shape of ``x``."""
    return dropout(F.relu(x), probability, training)


def attention(
    query: Tensor, key: Tensor, value: Tensor, visible: Tensor, *, dropout: float = 0.0, scale: float | None = None
) -> Tensor:
    """Return ``dropout(softmax(scale * Q Kᵀ)) V`` over the keys that a query sees.

    Args:
        query: B x H x T x D.
        key, value: B x H x S x D.
        visible: bool, of any shape that expands to B x H x T x S: keys that a query sees; it has to see one.
        dropout: probability of dropping an attention weight, below 1.
        scale: 1/sqrt(D) if None.

    Returns:
        B x H x T x D.
    """
    return F.scaled_dot_product_attention(query, key, value, attn_mask=visible, dropout_p=dropout, scale=scale)


def causal_attention(query: Tensor, key: Tensor, value: Tensor, *, dropout: float = 0.0) -> Tensor:
    """Return the same where position i sees positions <= i; all three, and the result, B x H x T x D."""
    return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)


def lstm_features(
    decoder: LSTMDecoder, tokens: Tensor, encoder_out: Any, state: dict[str, Any] | None
) -> tuple[Tensor, Tensor | None]:
    """Return what fairseq's LSTM decoder computes: features, B x T x C, and attention, B x T x S, or None.

    Args:
        decoder: fairseq's, with its attention or another.
        tokens: B x T, the output before each position.
        encoder_out: what the encoder returned.
        state: fairseq's decoding state, None in training.
    """
    found: tuple[Tensor, Tensor | None] = LSTMDecoder.extract_features(decoder, tokens, encoder_out, state)
    return found


def speed_up(model: nn.Module, *, products: bool = True, attention: bool = True) -> None:
    """Leave the modules of a fairseq model as they are, for there is nothing faster."""
