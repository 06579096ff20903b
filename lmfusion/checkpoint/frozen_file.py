"""Keep a frozen language model in a separate file, to which all checkpoints of a run refer by its content.

A checkpoint keeps, in place of the weights, where they belong (a prefix of names), the name of the file beside it and
the SHA-256 of the weights. Whoever reads the checkpoint gets it complete, or an error.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Callable

import torch
from torch import Tensor

from lmfusion.checkpoint.atomic_files import replacing
from lmfusion.errors import InputError

logger = logging.getLogger(__name__)

KEY = "frozen_lms"
"""Key in a checkpoint of the references, {prefix: {"file": name, "sha256": of the weights}}."""

AVERAGES = ("ema", "ema_fp32_params")
"""Parts of ``extra_state`` with averages of all weights (--store-ema); of frozen weights they are copies."""

_CHECKED: set[tuple[Path, int, int, int]] = set()
"""Files whose content this process has compared with their names: path, size, time of change, inode."""

_NAME = re.compile(r"frozen_lm\.[0-9a-f]{16}\.pt")


def digest(weights: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 (hex) over names, types, shapes and bytes of tensors."""
    total = hashlib.sha256()
    for name, value in sorted(weights.items()):
        total.update(f"{name}\n{value.dtype}\n{tuple(value.shape)}\n".encode())
        total.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()


def externalize(
    state: dict[str, Any], prefixes: Sequence[str], folder: Path, *, read: Callable[[Path], dict[str, Any]]
) -> dict[str, Any]:
    """Return a checkpoint whose weights under these prefixes have been moved to files in ``folder``.

    Args:
        state: the checkpoint; it is left as it is.
        prefixes: of the names of weights, one for each language model.
        folder: where the checkpoint will be written.
        read: function that reads a file with weights, or raises InputError.

    Raises:
        InputError: if a file cannot be written.
    """
    model, references = dict(state["model"]), {}
    extra = dict(state.get("extra_state") or {})
    for prefix in prefixes:
        inside = {name: model.pop(name) for name in list(model) if name.startswith(prefix)}
        weights = {name[len(prefix) :]: value for name, value in inside.items()}
        sha256 = digest(weights)
        file = folder / f"frozen_lm.{sha256[:16]}.pt"
        if not (file.exists() and _verify(file, sha256, read)):
            with replacing(file) as stream:
                torch.save({"model": weights}, stream)
        references[prefix] = {"file": file.name, "sha256": sha256}
        for name in set(AVERAGES) & set(extra):
            extra[name] = {key: value for key, value in extra[name].items() if not _is_copy(value, inside.get(key))}
    return {**state, "model": model, **({"extra_state": extra} if extra else {}), KEY: references}


def _is_copy(value: Any, weight: Any) -> bool:
    """Return True if a value of an average is a weight, perhaps in another precision."""
    both = isinstance(value, Tensor) and isinstance(weight, Tensor)
    return both and value.shape == weight.shape and torch.equal(value, weight.to(value.dtype))


def _verify(file: Path, sha256: str, read: Callable[[Path], dict[str, Any]]) -> bool:
    """Return True if an existing file holds these weights, on which all checkpoints to come will depend."""
    about = file.stat()
    known = (file, about.st_size, about.st_mtime_ns, about.st_ino)
    if known not in _CHECKED:
        try:
            whole = digest(read(file)["model"]) == sha256
        except InputError as error:
            logger.warning(f"{error} It is written again.")
            return False
        if not whole:
            logger.warning(f"{file} does not hold the weights that its name says: it is written again.")
            return False
        _CHECKED.add(known)
    return True


def inline(state: dict[str, Any], path: Path, *, read: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """Return a checkpoint with the weights that it refers to put back in their places.

    Args:
        state: as read from ``path``; it is changed.
        path: of the checkpoint.
        read: function that reads a file with weights, or raises InputError.

    Raises:
        InputError: if a file is missing, damaged or another one.
    """
    references = state.pop(KEY, None)
    for prefix, reference in _checked(path, references).items():
        file = path.parent / reference["file"]
        if not file.exists():
            raise InputError(
                f"{path} keeps its frozen language model in {file.name} beside it, and that file is missing: copy it "
                f"from the folder the checkpoint comes from (lmfusion export makes one file of both)."
            )
        weights = read(file)["model"]
        if digest(weights) != reference["sha256"]:
            raise InputError(
                f"{file}, the frozen language model of {path.name}, is not the one it was trained with: copy it again "
                f"from the folder the checkpoint comes from."
            )
        state["model"].update({prefix + name: value for name, value in weights.items()})
        _fill_averages(state.get("extra_state"), prefix, weights)
    return state


def _fill_averages(extra: Any, prefix: str, weights: Mapping[str, Tensor]) -> None:
    """Put copies of frozen weights into the averages that lack them: those of full precision are in float32."""
    for average in set(AVERAGES) & set(extra if isinstance(extra, dict) else ()):
        full = average == AVERAGES[1]
        for name, value in weights.items():
            extra[average].setdefault(prefix + name, value.float() if full and value.is_floating_point() else value)


def _checked(path: Path, references: Any) -> dict[str, dict[str, str]]:
    """Return references in the form of :func:`externalize`, to files beside the checkpoint; refuse any other."""
    entries = references.items() if isinstance(references, dict) else [] if references is None else [("", None)]
    for prefix, reference in entries:
        if (
            not isinstance(prefix, str)
            or not isinstance(reference, dict)
            or not all(isinstance(reference.get(key), str) for key in ("file", "sha256"))
            or not _NAME.fullmatch(reference["file"])
        ):
            raise InputError(f"{path} is damaged: what it says of its frozen language model ({KEY}) cannot be read.")
    return dict(entries)
