"""Load a file's weights into a language model: all of them, in the right shapes, or none."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.lm.interface import PretrainedLM

PREFIX = "decoder."
"""Prefix of a language model's weights in its own checkpoint."""


def load_strictly(lm: PretrainedLM, weights: dict[str, Tensor], path: Path) -> None:
    """Load a checkpoint's weights; refuse missing, unexpected and ill-shaped ones.

    Args:
        lm: the model that the checkpoint describes.
        weights: of the checkpoint, by name.
        path: of the checkpoint, for messages.

    Raises:
        InputError: if they are not those of the model (all differences are listed by name).
    """
    stripped = {(name[len(PREFIX) :] if name.startswith(PREFIX) else name): value for name, value in weights.items()}
    lm.vocabulary.make_room(stripped, "symbol_table.")
    own = lm.state_dict()
    problems = {
        "missing": sorted(set(own) - set(stripped)),
        "not expected": sorted(set(stripped) - set(own)),
        "of another shape": sorted(
            f"{name} {tuple(stripped[name].shape)} instead of {tuple(own[name].shape)}"
            for name in set(own) & set(stripped)
            if own[name].shape != stripped[name].shape
        ),
        "of another type": sorted(
            f"{name} {stripped[name].dtype}"
            for name in set(own) & set(stripped)
            if own[name].is_floating_point() != stripped[name].is_floating_point()
        ),
    }
    found: str | None = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in problems.items() if names)
    if found:
        raise InputError(f"the weights in {path} are not those of the model it describes. {found}.")
    lm.load_state_dict(stripped)
