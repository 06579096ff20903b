"""Tell before training what a large target vocabulary takes, and which criterion takes less."""

from __future__ import annotations

import logging
from typing import Any

logger = logging.getLogger(__name__)

MANY = 50_000
"""Target symbols from which the memory is told; a BPE of one's own has fewer."""
_BYTES = 4
_COPIES = 4
"""Of the output embeddings while training: weights, gradients, and two moments of Adam."""
_LOGITS = 3
"""Copies of the logits with fairseq's criterions: logits, their log-probabilities, the gradient."""


def tell_memory(symbols: int, channels: int, run: Any) -> None:
    """Warn of the memory that the output layer of a large vocabulary takes in training.

    Args:
        symbols: of the target dictionary, V.
        channels: of the output embeddings, C.
        run: fairseq's whole configuration; None where a model is built outside a training run.
    """
    if run is None or symbols < MANY or "criterion" not in run:
        return
    weights = _COPIES * _BYTES * symbols * channels
    text = (
        f"the target has {symbols:,} symbols: its output embeddings of {channels} channels take "
        f"{weights / 2**30:.1f} GiB in training, with gradients and Adam's moments (less where they are shared)"
    )
    criterion, tokens = str(getattr(run["criterion"], "_name", "")), run["dataset"].max_tokens
    if criterion.startswith("chunked_"):
        logger.info(text)
        return
    batch = f"{_LOGITS * _BYTES * symbols * tokens / 2**30:.1f} GiB more" if tokens else "far more"
    logger.warning(
        f"{text}; its logits take up to {batch} for --max-tokens {tokens or '…'}. --criterion "
        f"chunked_{criterion or 'cross_entropy'} computes the same loss without them."
    )
