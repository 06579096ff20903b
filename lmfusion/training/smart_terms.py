"""The terms that SMART adds to a loss, and their flags, for criterions of any task."""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.training.smart import INF, NORMS, Ball, Changes, SameDropout, most_distant

_LARGE_PRIME = 1_000_003  # keeps the seeds of all updates of two runs apart


def _flag(text: str, default: Any) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass
class SmartConfig(FairseqDataclass):
    """Flags of SMART."""

    smart_weight: float = _flag("SMART: weight of smoothness under changed embeddings (0: off; paper: 1 to 5)", 0.0)
    smart_epsilon: float = _flag("SMART: radius of the ball around an example's embeddings", 1e-5)
    smart_steps: int = _flag("SMART: steps of the search for the most distant output", 1)
    smart_step_size: float = _flag("SMART: length of such a step", 1e-3)
    smart_noise: float = _flag("SMART: standard deviation of the noise that the search starts from", 1e-5)
    smart_norm: ChoiceEnum(list(NORMS)) = field(  # type: ignore[valid-type]
        default=INF, metadata={"help": "SMART: norm of the ball"}
    )
    bregman_weight: float = _flag("SMART: weight of the distance from averaged weights (0: off; paper: 1)", 0.0)
    bregman_momentum: float = _flag("SMART: part of the former average in each new one", 0.99)
    bregman_momentum_late: Optional[float] = _flag(
        "SMART: that part after the first tenth of --max-update (paper: 0.999; default: the same throughout)", None
    )
    seed: int = II("common.seed")


class SmartTerms:
    """Computes the terms of a batch.

    Args:
        cfg: the flags, a :class:`SmartConfig`.

    Raises:
        InputError: if a flag is out of range.
    """

    def __init__(self, cfg: Any) -> None:
        for name in ("smart_weight", "smart_noise", "bregman_weight"):
            if not 0 <= getattr(cfg, name) < math.inf:
                raise InputError(f"--{name.replace('_', '-')} {getattr(cfg, name):g}: give 0 or more.")
        if not (0 < cfg.smart_epsilon < math.inf and 0 < cfg.smart_step_size < math.inf and cfg.smart_steps >= 1):
            raise InputError("--smart-epsilon and --smart-step-size have to be above 0, --smart-steps 1 or more.")
        for name in ("bregman_momentum", "bregman_momentum_late"):
            value = getattr(cfg, name, None)
            if value is not None and not 0 <= value < 1:
                raise InputError(f"--{name.replace('_', '-')} {value:g}: give 0 or more and below 1.")
        self.weight, self.bregman_weight, self.seed = cfg.smart_weight, cfg.bregman_weight, cfg.seed
        self.ball = Ball(cfg.smart_epsilon, cfg.smart_steps, cfg.smart_step_size, cfg.smart_noise, str(cfg.smart_norm))

    def __call__(
        self,
        run: Callable[[], Tensor],
        apart: Callable[[Tensor, Tensor], Tensor],
        again: Callable[[], Tensor],
        former: Optional[Callable[[], Tensor]],
        changes: Changes,
        update: int,
        device: torch.device,
    ) -> tuple[Tensor, dict[str, Tensor], Optional[Tensor]]:
        """Run a model and compute the terms of what it says.

        Args:
            run: runs the model that is trained, perhaps in its wrapper for several processes; returns logits.
            apart: the distance of two logits, a scalar.
            again: runs the model without wrapper.
            former: runs the model with averaged weights; None: there is none.
            changes: of the model's embeddings.
            update: number of the step.
            device: of the model.

        Returns:
            The logits, the terms by name as logged, and their weighted sum (None without terms).

        Raises:
            InputError: if a language model passes no gradients on to its embeddings, or at the first step if half
                precision loses the changes.
        """
        passes = SameDropout(device)
        with changes.seen():
            logits = run()
        terms: dict[str, Tensor] = {}
        added = torch.zeros((), device=device)

        def repeated() -> Tensor:
            passes.again()
            return again()

        if self.weight > 0:
            if update == 0:
                self.ball.check(max(map(float, changes.lost), default=0.0))
            generator = torch.Generator().manual_seed((self.seed * _LARGE_PRIME + update) % 2**63)
            terms["smart"] = most_distant(repeated, logits, changes, apart, self.ball, generator)
            added = added + self.weight * terms["smart"]
        if self.bregman_weight > 0 and former is not None:
            passes.again()
            with torch.no_grad():
                before = former()
            terms["bregman"] = apart(logits, before)
            added = added + self.bregman_weight * terms["bregman"]
        return logits, {name: term.detach() for name, term in terms.items()}, added if terms else None


_OTHER_AVERAGES = {"ema_update_freq": 1, "ema_start_update": 0}
"""fairseq's flags of an average that is not renewed by each update, with their defaults."""
_PARTS = 10  # of all updates, the first of which has the first momentum (Jiang et al. 2020)


class MovingAverage:
    """Switches on fairseq's moving average of weights if a criterion's Bregman term needs it, and sets its momentum.

    Args:
        cfg: the criterion's flags, part of fairseq's whole configuration, which is changed; None: there is none.
        stored: the configuration is a checkpoint's, of a training that is over.

    Attributes:
        needed: whether the term needs it.

    Raises:
        InputError: if another average was asked for: ``--store-ema`` with another ``--ema-decay``, or one that is not
            renewed by each update; or if a later momentum has no end of the training to be counted from.
    """

    def __init__(self, cfg: Any, *, stored: bool = False) -> None:
        self.needed = float(getattr(cfg, "bregman_weight", 0) or 0) > 0
        run = (getattr(cfg, "_get_parent", lambda: None)() if self.needed else None) or {}
        self._average = run.get("ema")
        self._late = getattr(cfg, "bregman_momentum_late", None)
        if self._average is None:
            return
        self._first, self._updates = cfg.bregman_momentum, run["optimization"]["max_update"]
        if not stored:
            _check_average(self._average, self._first)
            if self._late is not None and self._updates <= 0:
                raise InputError("--bregman-momentum-late is for the last nine tenths of --max-update: give that, too.")
        self._average["store_ema"], self._average["ema_decay"] = True, self._first
        self._average["ema_fp32"] = True  # a hundredth of a small change is nothing in half precision

    def before(self, update: int) -> None:
        """Set the momentum with which the weights join the average after the step that follows ``update`` others."""
        if self._average is not None and self._late is not None:
            self._average["ema_decay"] = self._first if _PARTS * (update + 1) <= self._updates else self._late


def _check_average(average: Any, momentum: float) -> None:
    if average["store_ema"] and average["ema_decay"] != momentum:
        raise InputError(
            f"--store-ema --ema-decay {average['ema_decay']:g} and --bregman-momentum {momentum:g}: there is one "
            "average of the weights. Give both the same number, or leave --store-ema out."
        )
    for name, default in _OTHER_AVERAGES.items():
        if average[name] != default:
            raise InputError(
                f"--{name.replace('_', '-')} {average[name]}: the average for --bregman-weight is renewed by "
                "each update, from the first on. Leave it out."
            )
