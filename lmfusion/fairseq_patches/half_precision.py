"""``--bf16`` on the command line, which fairseq takes for a request for a TPU, and ``--fp16`` without a GPU."""

from __future__ import annotations

import sys
from typing import Any, Callable

from lmfusion.errors import InputError


def bf16_without_tpu(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``--bf16`` mean a TPU only where ``--tpu`` says so."""

    def parse_args_and_arch(parser: Any, input_args: Any = None, *args: Any, **kwargs: Any) -> Any:
        parsed = original(parser, input_args, *args, **kwargs)
        words = sys.argv[1:] if input_args is None else input_args
        settings = parsed[0] if isinstance(parsed, tuple) else parsed
        if getattr(settings, "bf16", False) and "--tpu" not in words:
            settings.tpu = False
        return parsed

    return parse_args_and_arch


def refuse_flat_fp16_on_cpus(original: classmethod[Any, ..., Any]) -> classmethod[Any, ..., Any]:
    """Make ``FP16Optimizer.build_optimizer`` refuse ``--fp16`` on a CPU, which asks for CUDA's tensors there."""

    def build_optimizer(cls: Any, cfg: Any, params: Any, **kwargs: Any) -> Any:
        params = list(params)
        flat = not (cfg.common.bf16 or cfg.common.fp16_no_flatten_grads)
        if flat and not any(parameter.is_cuda for parameter in params):
            raise InputError(
                "--fp16 is for GPUs, and the model is on none: train with --cpu-bf16 (transformers, lstm_lmfusion) or "
                "--bf16, or add --fp16-no-flatten-grads."
            )
        return original.__func__(cls, cfg, params, **kwargs)

    return classmethod(build_optimizer)
