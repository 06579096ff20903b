"""Make checkpoints out of checkpoints: average several, or strip one of what only training needs.

fairseq's own averaging script is not part of its package.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lmfusion.checkpoint.atomic_files import replacing
from lmfusion.checkpoint.files import is_checkpoint
from lmfusion.checkpoint.frozen_file import AVERAGES
from lmfusion.checkpoint.plain_values import with_plain_values
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.errors import InputError


def average(paths: Sequence[str | Path], out: str | Path) -> None:
    """Average the weights of checkpoints of one model; all else is the last one's, without optimizer and --store-ema.

    Sums are taken in float64. Integers (dictionaries, versions) must be the same in all.

    Args:
        paths: two checkpoints or more.
        out: file to write.

    Raises:
        InputError: if one cannot be read, their weights do not go together, or ``out`` is one of them.
    """
    if len(paths) < 2:
        raise InputError(f"averaging needs two checkpoints or more, and {len(paths)} was given.")
    total: dict[str, Tensor] = {}
    refuse_to_overwrite(paths, out)
    for path in paths:
        state = read_checkpoint(path)
        _add(total, state["model"], first=paths[0], path=path)
    last = state["model"]
    state["model"] = {
        name: (value / len(paths)).to(last[name].dtype) if value.is_floating_point() else value
        for name, value in total.items()
    }
    write_checkpoint(_without_training(state), out)


def export(path: str | Path, out: str | Path, *, half: bool = False) -> None:
    """Write a copy of a checkpoint for passing on, without what training needs and folder names of this machine.

    Of the configuration only model and task are kept, which is what loading needs.

    Args:
        path: of the checkpoint.
        out: file to write.
        half: store the weights in half precision, which halves the size.

    Raises:
        InputError: if it cannot be read or written, or ``out`` is the same file.
    """
    refuse_to_overwrite([path], out)
    write_checkpoint(exported(read_checkpoint(path), half=half), out)


def exported(state: dict[str, Any], *, half: bool) -> dict[str, Any]:
    """Return what a checkpoint for passing on holds; see :func:`export`.

    Args:
        state: a checkpoint; it is changed.
        half: store the weights in half precision.

    Raises:
        InputError: naming a weight that is too large for that.
    """
    if half:
        state["model"] = {name: _halved(name, value) for name, value in state["model"].items()}
    sections = state.get("cfg") or {}
    state["cfg"] = {name: _without_folders(sections[name]) for name in ("model", "task") if sections.get(name)}
    return _without_training(state)


def write_checkpoint(state: dict[str, Any], out: str | Path) -> None:
    """Write a checkpoint whole or not at all.

    Args:
        state: its content, as fairseq's checkpoints have it.
        out: file to write.

    Raises:
        InputError: if there is no folder for it, no right to write, or no space left.
    """
    with replacing(out) as stream:
        torch.save(with_plain_values(state), stream)


def refuse_to_overwrite(paths: Sequence[str | Path], out: str | Path) -> None:
    """Refuse to write over an input, or over a file that is no checkpoint.

    Args:
        paths: of all that is read: a checkpoint without its optimizer could not be resumed from.
        out: file to write.

    Raises:
        InputError: naming it.
    """
    for path in map(Path, paths):
        if path.exists() and Path(out).exists() and path.samefile(out):
            raise InputError(f"--out {out} is {path} itself, which would be lost: give another name.")
    if Path(out).is_file() and not is_checkpoint(Path(out)):
        raise InputError(f"--out {out} is there already and is no checkpoint: give another name, or delete it.")


def _halved(name: str, value: Tensor) -> Tensor:
    """Return a tensor in half precision, if it has fractions."""
    if not value.is_floating_point():
        return value
    half = value.half()
    if not torch.equal(half.isfinite(), value.isfinite()):
        largest = float(value[value.isfinite()].abs().max())
        raise InputError(
            f"{name} has the value {largest:g}, too large for half precision: leave out --half (pack: give --full)."
        )
    return half


def _without_training(state: dict[str, Any]) -> dict[str, Any]:
    """Return a checkpoint without the optimizer's state, and without the average of weights that --store-ema keeps."""
    kept = {**state, "last_optimizer_state": None}
    if isinstance(extra := state.get("extra_state"), dict):
        kept["extra_state"] = {name: value for name, value in extra.items() if name not in AVERAGES}
    return kept


def _without_folders(value: Any) -> Any:
    """Return a configuration with file names in place of absolute paths, which are of this machine only."""
    value = vars(value) if isinstance(value, Namespace) else value
    if isinstance(value, Mapping):
        return {name: _without_folders(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        found = map(_without_folders, value)
        return tuple(found) if isinstance(value, tuple) else list(found)
    return Path(value).name if isinstance(value, str) and os.path.isabs(value) else value


def _kind(value: Tensor) -> tuple[torch.Size, bool]:
    """Return what two tensors have in common that can be averaged: the shape, and whether they have fractions."""
    return value.shape, value.is_floating_point()


def _add(total: dict[str, Tensor], weights: dict[str, Tensor], *, first: str | Path, path: str | Path) -> None:
    if not total:
        # Copies, also of float64: to a matrix that has two names the next ones would be added twice.
        total.update({n: v.to(torch.float64, copy=True) if v.is_floating_point() else v for n, v in weights.items()})
        return
    different = sorted(set(total) ^ set(weights))
    different += sorted(name for name in set(total) & set(weights) if _kind(total[name]) != _kind(weights[name]))
    if different:
        more = f" and {len(different) - 3:,} more weights" if len(different) > 3 else ""
        raise InputError(
            f"{path} and {first} are checkpoints of different models and cannot be averaged: they differ in "
            f"{', '.join(different[:3])}{more}."
        )
    for name, value in weights.items():
        if value.is_floating_point():
            total[name] += value
        elif not torch.equal(total[name], value):
            raise InputError(f"{path} and {first} cannot be averaged: {name} differs, and is not a weight.")
