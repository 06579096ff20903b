"""``--bf16`` on the command line, which fairseq takes for a request for a TPU, and ``--fp16`` without a GPU."""

from __future__ import annotations

import sys
from typing import Any, Callable

import torch

from lmfusion.errors import InputError


def bf16_without_tpu(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``--bf16`` mean a TPU only where ``--tpu`` says so."""

    def parse_args_and_arch(parser: Any, input_args: Any = None, *args: Any, **kwargs: Any) -> Any:
        parsed = original(parser, input_args, *args, **kwargs)
        words = sys.argv[1:] if input_args is None else input_args
        settings = parsed[0] if isinstance(parsed, tuple) else parsed
        if getattr(settings, "bf16", False) and "--tpu" not in words:
            settings.tpu = False
        if hasattr(settings, "optimizer"):
            _check_fp16(settings)
        return parsed

    return parse_args_and_arch


def _check_fp16(settings: Any) -> None:
    """Refuse to train in fp16 without a GPU in the one way that asks for CUDA's tensors."""
    flat = settings.fp16 and not (settings.memory_efficient_fp16 or settings.fp16_no_flatten_grads)
    if flat and (settings.cpu or not torch.cuda.is_available()):
        raise InputError(
            "--fp16 is for GPUs, and there is none: train with --cpu-bf16 (transformers) or --bf16, or add "
            "--fp16-no-flatten-grads."
        )
