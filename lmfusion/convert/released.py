"""Reading checkpoints of the paper's released code (a fork of fairseq, 2019), and what they say about themselves.

Such a file is a pickle of weights and of the ``argparse.Namespace`` of the training command, without a dictionary.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor

from lmfusion.checkpoint.reading import model_config, read_checkpoint
from lmfusion.convert.arguments import Arguments
from lmfusion.errors import InputError

_METERS = ("AverageMeter", "TimeMeter", "StopwatchMeter")


class _DroppedMeter:
    """Stand in for a running average of the released code's training, of which nothing is kept."""


def _stand_in(name: str) -> type:
    """Return a class of the name that the file has: PyTorch before 2.6 takes no other name beside a class."""
    return type(name, (_DroppedMeter,), {"__module__": "fairseq.meters"})


@dataclass(frozen=True)
class Released:
    """Hold a checkpoint of the released code.

    Attributes:
        path: of the file.
        args: of the training command.
        weights: by name, in single or half precision.
        updates: of the optimizer, if known.
    """

    path: Path
    args: Arguments
    weights: dict[str, Tensor]
    updates: int


def read_released(path: str | Path, *, drop_meters: bool = False) -> Released:
    """Read a checkpoint of the released code without running anything in it.

    Args:
        path: of the file.
        drop_meters: read past the running averages that the released code keeps of a training (objects of its own).

    Raises:
        InputError: if it cannot be read, holds anything but weights, plain values and one plain namespace, or has
            lmfusion's format already.
    """
    path = Path(path)
    state = _read(path, drop_meters)
    if state.get("cfg") is not None:
        raise InputError(f"{path} has the format of today's fairseq already: there is nothing to convert.")
    args = _flags(path, state)
    history = state.get("optimizer_history") or [{}]
    return Released(
        path=path,
        args=Arguments(vars(args), hasattr(args, "arch"), str(path), "Give them by {flags}.", "--arg"),
        weights=dict(state["model"]),
        updates=int(history[-1].get("num_updates") or 0) if isinstance(history[-1], dict) else 0,
    )


def read_lm_values(path: str | Path, *, drop_meters: bool = False) -> dict[str, Any]:
    """Return the flags of a language model's own file (released format or lmfusion's) under the released names.

    Raises:
        InputError: as of :func:`read_released`.
    """
    path = Path(path)
    state = _read(path, drop_meters)
    if state.get("cfg") is None:
        return vars(_flags(path, state))
    task = state["cfg"].get("task") or {}
    values = {**(vars(task) if isinstance(task, Namespace) else task), **model_config(path, state)}
    return {**values, "relu_dropout": values.get("activation_dropout")}


def _flags(path: Path, state: Mapping[str, Any]) -> Namespace:
    """Return the flags of the training command; empty where the file has none."""
    args = state.get("args") or Namespace()
    if not isinstance(args, Namespace):
        raise InputError(f"{path}: its flags are a {type(args).__name__}, where the released code has a namespace.")
    odd = sorted(str(name) for name, value in vars(args).items() if isinstance(value, Tensor))
    if odd:
        raise InputError(f"{path}: these are among its flags and are weights: {', '.join(odd)}.")
    return args


def _read(path: Path, drop_meters: bool) -> dict[str, Any]:
    with torch.serialization.safe_globals([_stand_in(name) for name in _METERS] if drop_meters else []):
        try:
            return read_checkpoint(path)
        except InputError as error:
            if "fairseq.meters." in str(error) and not drop_meters:
                raise InputError(
                    f"{error} This one is a running average of the training, which the released code saves; "
                    f"--drop-meters reads past these, running nothing."
                ) from error
            raise


def rows(weights: Mapping[str, Tensor], name: str) -> int:
    """Return the rows of a weight; 0 if there is none of this name, an error where nothing else tells the size."""
    return weights[name].size(0) if name in weights and weights[name].dim() else 0


def count_layers(weights: Mapping[str, Tensor], prefix: str) -> int:
    """Return the number of blocks whose weights begin with a prefix that ends with a dot."""
    return len({name[len(prefix) :].split(".")[0] for name in weights if name.startswith(prefix)})


def check_size(dictionary: Dictionary, path: str | Path, weights: Mapping[str, Tensor], embedding: str) -> None:
    """Refuse a dictionary of another size than the embedding's.

    Raises:
        InputError: naming both sizes.
    """
    if embedding in weights and rows(weights, embedding) != len(dictionary):
        special = dictionary.nspecial
        raise InputError(
            f"{path} has {len(dictionary)} symbols ({len(dictionary) - special} lines and fairseq's {special} special "
            f"ones), and {embedding} has {rows(weights, embedding)} rows: give the dictionary that the model was "
            f"trained with."
        )
