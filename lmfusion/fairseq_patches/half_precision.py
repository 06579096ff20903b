"""fairseq's flags of half precision, where fairseq takes them for something else.

On the command line ``--bf16`` asks fairseq for a TPU, GPUs or not; ``--fp16`` looks for a GPU's number on a CPU.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import Any, Callable

import torch
from fairseq import options
from fairseq.optim.dynamic_loss_scaler import DynamicLossScaler
from fairseq.trainer import Trainer
from omegaconf import open_dict

from lmfusion.errors import UserError

logger = logging.getLogger(__name__)


def prefer_devices_at_hand(args: Any, words: Sequence[str]) -> None:
    """``--bf16`` means a TPU only where ``--tpu`` says so.

    Args:
        args: fairseq's parsed command line, which is changed.
        words: of the command line.
    """
    if getattr(args, "bf16", False) and "--tpu" not in words:
        args.tpu = False


def prepare_for_cpu(common: Any) -> None:
    """Settings under which fairseq's half precision computes on a CPU.

    Args:
        common: that section of fairseq's configuration, which is changed.
    """
    if common.tpu or (torch.cuda.is_available() and not common.cpu):
        return
    if common.fp16 and not common.memory_efficient_fp16:
        with open_dict(common):
            common.fp16_no_flatten_grads = True  # the long row of them is kept by number of GPU
    if common.amp:
        logger.warning("--amp does nothing on a CPU: this run is in float32. Use --cpu-bf16 instead.")


def install() -> None:
    """Make fairseq do so; safe to call again."""
    _wrap_options()
    _wrap_trainer()
    _wrap_scaler()


def _wrap_options() -> None:
    original: Callable[..., Any] = options.parse_args_and_arch
    if getattr(original, "knows_bf16", False):
        return

    def parse_args_and_arch(parser: Any, input_args: Any = None, *args: Any, **kwargs: Any) -> Any:
        """fairseq's, for the devices at hand."""
        parsed = original(parser, input_args, *args, **kwargs)
        words = sys.argv[1:] if input_args is None else input_args
        prefer_devices_at_hand(parsed[0] if isinstance(parsed, tuple) else parsed, words)
        return parsed

    parse_args_and_arch.knows_bf16 = True  # type: ignore[attr-defined]
    options.parse_args_and_arch = parse_args_and_arch


def _wrap_trainer() -> None:
    original: Callable[..., Any] = Trainer.__init__
    if getattr(original, "prepares_for_cpu", False):
        return

    def init(self: Any, cfg: Any, *args: Any, **kwargs: Any) -> None:
        """fairseq's, with settings that a CPU can follow."""
        prepare_for_cpu(cfg.common)
        original(self, cfg, *args, **kwargs)

    init.prepares_for_cpu = True  # type: ignore[attr-defined]
    Trainer.__init__ = init


def _wrap_scaler() -> None:
    """An overflow, which fairseq skips on a GPU, would end in a request for one on a CPU."""
    original: Callable[..., Any] = DynamicLossScaler.check_overflow
    if getattr(original, "knows_cpus", False):
        return

    def check_overflow(self: DynamicLossScaler, grad_norm: Any) -> None:
        """fairseq's.

        Raises:
            UserError: where an update cannot be skipped.
        """
        try:
            original(self, grad_norm)
        except OverflowError as error:
            if torch.cuda.is_available():
                raise
            raise UserError(
                f"gradients overflow in fp16 ({error}), and fairseq can skip such an update on a GPU only. On a CPU "
                f"use --cpu-bf16, --bf16 or float32, or begin with a smaller --fp16-init-scale."
            ) from error

    check_overflow.knows_cpus = True  # type: ignore[attr-defined]
    DynamicLossScaler.check_overflow = check_overflow
