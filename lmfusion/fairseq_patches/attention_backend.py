"""cuDNN's attention, whose backward pass makes NaN in some lengths: switched off where fairseq trains on a GPU.

PyTorch issue 196678 (H100, H200): with an attention mask, in half precision, at lengths of 64 + 128 n, the gradients
of queries whose log-sum of scores is below -88.7 are NaN. All attention with a mask is exposed: fairseq's decoder and
encoder, our joining block, encoders of Hugging Face. PyTorch takes cuDNN first on these GPUs since 2.11; before, it
came last. No later version is known to be sound, so there is no upper end: ``lmfusion bench gpu`` tests the one
installed. The forward pass is not affected, so that decoding keeps all kernels.
"""

from __future__ import annotations

import logging
from typing import Any, Callable

import torch
from torch.torch_version import TorchVersion

logger = logging.getLogger(__name__)

FIRST_AFFECTED = TorchVersion("2.11")
"""PyTorch's first version that prefers cuDNN's attention."""


def avoid_cudnn_attention() -> None:
    """Disable cuDNN's attention in this process if there is a GPU and PyTorch is of an affected version."""
    affected = torch.cuda.is_available() and torch.__version__ >= FIRST_AFFECTED
    if affected and torch.backends.cuda.cudnn_sdp_enabled():
        logger.info("cuDNN's attention is off: its gradients are NaN at some lengths (PyTorch issue 196678)")
        torch.backends.cuda.enable_cudnn_sdp(False)


def without_cudnn_attention(original: Callable[..., None]) -> Callable[..., None]:
    """Make a trainer's ``__init__`` call :func:`avoid_cudnn_attention` first."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        avoid_cudnn_attention()
        original(self, *args, **kwargs)

    return __init__
