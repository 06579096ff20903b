"""What a comparison of two systems says, in one sentence: how far apart they are, and whether that may be chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CHANCE = 0.05
"""A difference with a smaller p value is more than chance."""


def is_more_than_chance(p_values: Sequence[float]) -> bool:
    """Tell whether a difference was tested, and no test of it, one a seed, leaves it to chance."""
    return bool(p_values) and max(p_values) < CHANCE


SHOWN = 0.005
"""A smaller difference is printed as none, and none is made of it."""
USELESS = 1.0
"""Of systems that are both below it, 0..100, none is called better."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of comparing a system with its baseline."""

    name: str
    baseline: str
    metric: str
    difference: float
    """To the baseline, 0..100; the mean over seeds."""
    p_values: Sequence[float]
    """Of the paired bootstrap, one a seed; none if it was not computed."""
    sentences: int = 0
    where: str = ""
    """At which bitext size, if there are several."""
    untested: str = ""
    """Why there are no p values, and what to do about it."""
    higher: float = 100.0
    """The higher of both scores."""

    @property
    def holds(self) -> bool:
        """Tell whether the difference is more than chance."""
        return abs(self.difference) >= SHOWN and self.higher >= USELESS and is_more_than_chance(self.p_values)

    @property
    def text(self) -> str:
        """Return the sentence; a second one where no significance was computed."""
        if self.higher < USELESS:
            both = f"Neither {self.name} nor {self.baseline}"
            return f"{both} is of use yet{self.where}: {self.higher:.2f} {self.metric} at most."
        size = abs(self.difference)
        if size < SHOWN:
            return f"{self.name} and {self.baseline} have the same {self.metric}{self.where}."
        amount = f"{size:.1f}" if size >= 1 else f"{size:.2f}"
        side = "above" if self.difference >= 0 else "below"
        base = "the baseline" if self.baseline == "baseline" else self.baseline
        said = f"{self.name} is {amount} {self.metric} {side} {base}{self.where}"
        return f"{said}{self._chance()}" if self.p_values else f"{said}. {self.untested}".rstrip()

    def _chance(self) -> str:
        """Return the second half of the sentence, from its comma on."""
        below = sum(p < CHANCE for p in self.p_values)
        how = f"paired bootstrap, {self.sentences:,} sentences"
        if len(self.p_values) == 1:
            return f", {'' if below else 'no '}more than chance (p = {self.p_values[0]:.4f}, {how})."
        seeds = len(self.p_values)
        said = f"more than chance with each of {seeds} seeds" if self.holds else "no more than chance"
        if 0 < below < seeds:
            said = f"more than chance with only {below} of {seeds} seeds"
        return f", {said} (largest p = {max(self.p_values):.4f}, {how})."
