"""``--bf16`` on the command line, which fairseq takes for a request for a TPU, GPUs or not."""

from __future__ import annotations

import sys
from typing import Any, Callable


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
