"""Give a part of a model its own learning rate, under any of fairseq's optimizers.

fairseq sets one learning rate for everything. Parameters marked here go into a group of their own, whose rate is
multiplied just before a step and set back after it, so that schedulers, logs and checkpoints see fairseq's alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from lmfusion.errors import InputError

# The attribute that fairseq's half-precision optimizers carry over to their float32 copies of parameters.
_ATTRIBUTE, _KEY = "optim_overrides", "lmfusion"


@dataclass(eq=False)
class LearningRate:
    """A factor on ``--lr`` for some parameters, which may start after some updates."""

    scale: float = 1.0
    frozen_updates: int = 0
    """Number of first updates in which the parameters do not change at all."""
    num_updates: int = 0
    """Number of updates done so far; the owner of the parameters keeps it current."""

    @property
    def frozen(self) -> bool:
        """Return True if the next update leaves the parameters unchanged."""
        return self.num_updates < self.frozen_updates

    @property
    def factor(self) -> float:
        """Return the learning-rate factor for the next update."""
        return 0.0 if self.frozen else self.scale

    @property
    def is_plain(self) -> bool:
        """Return True if the factor is 1 for every update."""
        return self.scale == 1.0 and self.frozen_updates == 0


def set_learning_rate(module: nn.Module, rate: LearningRate) -> None:
    """Give a module's parameters a rate; call it before fairseq builds the optimizer.

    Args:
        module: all its parameters are marked.
        rate: the rate, which may change later.
    """
    for parameter in module.parameters():
        setattr(parameter, _ATTRIBUTE, {_KEY: rate})


def rate_of(parameter: torch.Tensor) -> LearningRate | None:
    """Return the rate that :func:`set_learning_rate` gave to a parameter, or None."""
    return getattr(parameter, _ATTRIBUTE, {}).get(_KEY)


def check_optimizer_settings(cfg: Any, flag: str) -> None:
    """Refuse settings of fairseq under which a part of a model cannot have its own learning rate.

    Args:
        cfg: fairseq's whole configuration; None where a model is built outside a training run.
        flag: the flag that asks for the learning rate, for the message.

    Raises:
        InputError: naming the setting and the fix.
    """
    if cfg is None or "common" not in cfg:
        return
    common, distributed = cfg["common"], cfg["distributed_training"]
    memory_efficient = common.memory_efficient_fp16 or common.memory_efficient_bf16
    if common.fp16 and not (memory_efficient or common.fp16_no_flatten_grads):
        raise InputError(
            f"{flag} needs parameters one by one, and --fp16 makes one long row of them: add --fp16-no-flatten-grads."
        )
    if distributed.ddp_backend == "fully_sharded":
        raise InputError(f"{flag} does not go with --ddp-backend fully_sharded: use pytorch_ddp.")
    if optimizer_name(cfg["optimizer"]) == "composite":
        raise InputError(f"{flag} does not go with --optimizer composite, which has groups of its own: leave one out.")
    if getattr(cfg["optimizer"], "relative_step", False):
        raise InputError(f"{flag} does not go with --relative-step, by which Adafactor sets its rate: leave one out.")


def optimizer_name(section: Any) -> str | None:
    """Return the optimizer's name in fairseq's configuration, which is an argparse.Namespace for older optimizers."""
    return getattr(section, "_name", None) or getattr(section, "optimizer", None)


def check_unused_parameters(cfg: Any, flag: str) -> None:
    """Refuse settings of fairseq under which a part of a model cannot lack gradients for some updates.

    Args:
        cfg: fairseq's whole configuration; None where a model is built outside a training run.
        flag: the flag that freezes the part at first, for the message.

    Raises:
        InputError: naming the setting and the fix.
    """
    if cfg is None or "distributed_training" not in cfg:
        return
    distributed = cfg["distributed_training"]
    if (
        distributed.distributed_world_size > 1
        and distributed.ddp_backend in ("c10d", "pytorch_ddp")
        and not distributed.find_unused_parameters
    ):
        raise InputError(
            f"{flag} leaves parameters without gradients, for which --ddp-backend {distributed.ddp_backend} waits: add "
            f"--find-unused-parameters."
        )


def _split_groups(optimizer: torch.optim.Optimizer) -> None:
    """Put parameters with a rate of their own into groups of their own, behind the others."""
    for group in list(optimizer.param_groups):
        by_rate: dict[LearningRate | None, list[torch.Tensor]] = {None: []}
        for parameter in group["params"]:
            by_rate.setdefault(rate_of(parameter), []).append(parameter)
        group["params"] = by_rate.pop(None)
        for parameters in by_rate.values():
            settings = {key: value for key, value in group.items() if key != "params"}
            optimizer.param_groups.append({**settings, "params": parameters})


def _multiply_while_stepping(optimizer: torch.optim.Optimizer) -> None:
    """Multiply the rates of marked groups during each step."""
    kept: list[float] = []

    def before(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        kept[:] = [group["lr"] for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            rate = rate_of(group["params"][0]) if group["params"] else None
            if rate is not None:
                group["lr"] = group["lr"] * rate.factor
            if rate is not None and rate.frozen:
                # In half precision, and with legacy_ddp, they have zeros: Adam would count steps that were none.
                for parameter in group["params"]:
                    parameter.grad = None

    def after(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        for group, lr in zip(optimizer.param_groups, kept):
            group["lr"] = lr

    optimizer.register_step_pre_hook(before)
    optimizer.register_step_post_hook(after)


def apply_learning_rates(optimizer: torch.optim.Optimizer, parameters: Iterable[Any]) -> None:
    """Make an optimizer apply the rates that :func:`set_learning_rate` gave to some of its parameters.

    Args:
        optimizer: PyTorch's, inside fairseq's.
        parameters: those it was built from; without a rate among them nothing changes.
    """
    if any(rate_of(parameter) is not None for parameter in parameters if isinstance(parameter, torch.Tensor)):
        _split_groups(optimizer)
        _multiply_while_stepping(optimizer)
