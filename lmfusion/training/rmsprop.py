"""``--optimizer rmsprop``: RMSprop (Hinton 2012), which fairseq lacks, as PyTorch computes it."""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from omegaconf import II

from lmfusion.errors import InputError


@dataclass
class RMSpropConfig(FairseqDataclass):
    """Flags of ``--optimizer rmsprop``."""

    rmsprop_alpha: float = field(
        default=0.99, metadata={"help": "part of the running average of squared gradients that a step keeps"}
    )
    rmsprop_eps: float = field(default=1e-8, metadata={"help": "added to the root of the average"})
    rmsprop_centered: bool = field(
        default=False, metadata={"help": "divide by the deviation of gradients instead: subtract their squared average"}
    )
    momentum: float = field(default=0.0, metadata={"help": "part of the last step that a step keeps"})
    weight_decay: float = field(default=0.0, metadata={"help": "weight decay, added to the gradient"})
    lr: list[float] = field(default=II("optimization.lr"))


@register_optimizer("rmsprop", dataclass=RMSpropConfig)
class RMSprop(FairseqOptimizer):
    """Steps of ``lr g / (sqrt(E) + eps)`` with ``E = alpha E + (1 - alpha) g^2`` (Hinton 2012, lecture 6e).

    Args:
        cfg: the flags.
        params: the parameters.

    Raises:
        InputError: if a value is out of its range.
    """

    def __init__(self, cfg: Any, params: Iterable[torch.Tensor]) -> None:
        super().__init__(cfg)
        for name in ("rmsprop_alpha", "momentum"):
            if not 0 <= getattr(cfg, name) < 1:
                raise InputError(f"--{name.replace('_', '-')} {getattr(cfg, name):g}: give 0 or more and below 1.")
        for name in ("rmsprop_eps", "weight_decay"):
            if not getattr(cfg, name) >= 0:
                raise InputError(f"--{name.replace('_', '-')} {getattr(cfg, name):g}: give 0 or more.")
        self._optimizer = torch.optim.RMSprop(params, **self.optimizer_config)

    @property
    def optimizer_config(self) -> dict[str, Any]:
        """Return the settings that replace those of a checkpoint when a run resumes."""
        return {
            "lr": self.cfg.lr[0],
            "alpha": self.cfg.rmsprop_alpha,
            "eps": self.cfg.rmsprop_eps,
            "centered": self.cfg.rmsprop_centered,
            "momentum": self.cfg.momentum,
            "weight_decay": self.cfg.weight_decay,
        }

    @property
    def supports_flat_params(self) -> bool:
        """Return True: a step is computed number by number."""
        return True
