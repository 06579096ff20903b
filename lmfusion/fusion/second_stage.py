"""Models that start from one trained without a language model: the second stage of their training."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lmfusion.checkpoint.reading import read_checkpoint, stored_model_config
from lmfusion.checkpoint.starting_point import FINETUNE, finetunes_from
from lmfusion.errors import InputError
from lmfusion.fusion.config import NONE, SIDE_NAMES, SIDES, STACKS, integration
from lmfusion.fusion.interface import Fusion
from lmfusion.lm.symbols import check_symbols
from lmfusion.text.dictionaries import read_dictionary_text
from lmfusion.text.kit import from_state

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SecondStage:
    """A start from a model without a language model on one side or both.

    Attributes:
        path: of its checkpoint.
        sides: those that have an integration now and had none there.
        symbols: of its dictionaries, source first; none where the checkpoint does not tell.
    """

    path: Path
    sides: tuple[str, ...]
    symbols: tuple[list[str], ...]

    def complete(self, weights: Mapping[str, Tensor], model: Any) -> dict[str, Tensor]:
        """Return weights for the whole model: those of the trained one, and where it has none the integrations' own.

        Args:
            weights: of the trained model, by name.
            model: that they are for; its integrations join the trained part.

        Raises:
            InputError: naming a weight that is missing on either side, has another shape, or is tied here alone; or the
                first symbol by which a dictionary differs.
        """
        for symbols, side in zip(self.symbols, SIDES):
            given = list(getattr(model, STACKS[side]).dictionary.symbols)
            check_symbols(symbols, given, what=f"the {SIDE_NAMES[side]} dictionary", model=f"model {self.path}")
        fusions = [getattr(model, STACKS[side]).fusion for side in self.sides]
        for fusion in fusions:
            fusion.join()
        state = model.state_dict()
        names = _names_without(model, fusions, list(state))
        self._check(weights, {names[name]: weight for name, weight in state.items() if name in names})
        logger.info(
            f"{self.path}: {len(names)} weights are taken from this model, "
            f"{len(state) - len(names)} come with {' and '.join(fusion.name for fusion in fusions)}"
        )
        return {name: weights[names[name]] if name in names else weight for name, weight in state.items()}

    def _check(self, weights: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
        for name in (*own, *weights):
            if name not in weights:
                self._refuse(f"it has no {name}")
            if name not in own:
                self._refuse(f"its {name} has no place here")
            if weights[name].shape != own[name].shape:
                self._refuse(f"its {name} is {_size(weights[name])} and not {_size(own[name])}")
        tied: dict[int, str] = {}
        for name, weight in own.items():
            other = tied.setdefault(weight.data_ptr(), name) if weight.numel() else name
            if not torch.equal(weights[name], weights[other]):
                self._refuse(f"its {other} and {name} differ, and are tied here")

    def _refuse(self, reason: str) -> None:
        raise InputError(
            f"{FINETUNE} {self.path} does not fit this model: {reason}. Give the sizes and ties that it was trained "
            f"with (lmfusion inspect {self.path} tells them)."
        )


def find_second_stage(cfg: Any) -> SecondStage | None:
    """Return how a training that is about to begin starts from a model without the language models it has now.

    Args:
        cfg: the model's configuration as fairseq gives it.

    Returns:
        None where it starts in another way: from scratch, by resuming, or from a model with the same integrations.

    Raises:
        InputError: if the model to start from has another integration, or one chosen here cannot join a trained model.
    """
    parent = getattr(cfg, "_get_parent", lambda: None)()
    options = parent.get("checkpoint") if parent is not None else None
    path = None if options is None else finetunes_from(options)
    chosen = {side: fusion for side in SIDES if (fusion := integration(cfg, side)) is not None}
    if path is None or not chosen:
        return None
    state = read_checkpoint(path)
    stored = stored_model_config(state)
    before = {side: str(stored.get(f"{side}_fusion") or NONE) for side in SIDES}
    for side in SIDES:
        now = chosen[side].name if side in chosen else NONE
        if before[side] not in (NONE, now):
            raise InputError(
                f"{FINETUNE} {path} has --{side}-fusion {before[side]}, and --{side}-fusion {now} cannot take its "
                f"place: give a model without a language model on that side, or the same integration."
            )
    added = tuple(side for side in chosen if before[side] == NONE)
    for side in added:
        if (reason := _refusal(chosen[side])) is not None:
            raise InputError(
                f"{FINETUNE} {path} has no language model, and --{side}-fusion {chosen[side].name} cannot be added to "
                f"a trained model: {reason}. Leave {FINETUNE} out."
            )
    kit = from_state(path, state)
    known = (
        [read_dictionary_text(each.decode("utf-8"), f"a dictionary in {path}") for each in kit.dictionaries]
        if kit
        else []
    )
    return SecondStage(path, added, tuple(dictionary.symbols for dictionary in known)) if added else None


def _refusal(fusion: type[Fusion]) -> str | None:
    """Return why an integration cannot join a model that was trained without it; None if it can."""
    if fusion.replaces_embeddings:
        return "the language model takes the place of the word embeddings by which the rest was trained"
    if not fusion.keeps_lm:
        return "the side's layers start from the language model, and trained ones would take their place"
    return None


def _names_without(model: nn.Module, fusions: list[Fusion], names: list[str]) -> dict[str, str]:
    """Return the names of the weights that are no integration's, each with its name in a model without these."""
    own = tuple(f"{name}." for name, module in model.named_modules() if any(module is each for each in fusions))
    found = {}
    for name in names:
        plain: str | None = None if name.startswith(own) else name
        for fusion in fusions:
            plain = None if plain is None else fusion.name_without(plain)
        if plain is not None:
            found[name] = plain
    return found


def _size(weight: Tensor) -> str:
    return " x ".join(map(str, weight.shape)) or "one number"
