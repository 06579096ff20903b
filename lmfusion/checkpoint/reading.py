"""The only place that reads a checkpoint file from disk.

Everything is read with ``weights_only=True``: nothing in a file can run.
"""

from __future__ import annotations

import pickle
import re
import struct
from argparse import Namespace
from pathlib import Path
from typing import Any, cast

import torch

from lmfusion.checkpoint import frozen_file
from lmfusion.checkpoint.contents import check_contents
from lmfusion.checkpoint.files import damage, is_zip, other_kind
from lmfusion.checkpoint.pickled import accepted, forbidden_name
from lmfusion.errors import InputError

# Exceptions of torch's reader at a file that was cut or is something else.
DAMAGE = (
    *(RuntimeError, EOFError, OSError, ValueError, LookupError, AttributeError, AssertionError, TypeError),
    struct.error,
)


def safe_types(*more: Any) -> torch.serialization.safe_globals:
    """Return a context in which torch accepts the types in fairseq's checkpoints besides tensors and plain values.

    Args:
        more: further types to accept. None of these may run code when it is unpickled.
    """
    known = torch.serialization.get_safe_globals()
    return torch.serialization.safe_globals([entry for entry in [*accepted(), *more] if entry not in known])


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint safely, together with a frozen language model that it keeps in a separate file.

    Args:
        path: of the checkpoint.

    Returns:
        The checkpoint as fairseq writes it: ``model`` (weights by name), ``cfg`` or ``args``, and more.

    Raises:
        InputError: if there is no such file, or it is truncated, damaged, not a checkpoint, or holds
            anything but weights and plain values.
    """
    path = Path(path)
    return frozen_file.inline(read_file(path), path, read=read_file)


def read_file(path: Path, *, mmap: bool = False) -> dict[str, Any]:
    """Read one checkpoint file safely, but no file that it refers to.

    Args:
        path: of the file.
        mmap: leave weights on the disk until they are looked at, where the format allows it.

    Raises:
        InputError: under the conditions of :func:`read_checkpoint`.
    """
    try:
        if not path.is_file():
            what = "is a folder, not a checkpoint file" if path.is_dir() else "does not exist"
            raise InputError(f"{path} {what}: give the path of a checkpoint (…/checkpoint_best.pt).")
        if (kind := other_kind(path)) is not None:
            raise InputError(f"{path} is not a checkpoint: {kind}. Give the path of one (…/checkpoint_best.pt).")
        if (found := damage(path)) is not None:
            raise InputError(_damaged(path, found))
        if (name := forbidden_name(path)) is not None:
            raise InputError(_asks(path, name))
        mmap = mmap and is_zip(path)  # the old format cannot be mapped
        with safe_types():
            state = torch.load(str(path), map_location="cpu", weights_only=True, mmap=mmap)
    except pickle.UnpicklingError as error:
        raise InputError(_refusal(path, error)) from error
    except InputError:
        raise
    except PermissionError as error:
        raise InputError(f"{path} may not be read ({error.strerror}): ask its owner for the right to.") from error
    except DAMAGE as error:
        raise InputError(_damaged(path, first_line(error))) from error
    check_contents(path, state)
    return cast(dict[str, Any], state)


def _damaged(path: Path, reason: str) -> str:
    return (
        f"{path} cannot be read as a checkpoint: it is truncated or damaged ({reason}). Copy or train it again; an "
        f"earlier checkpoint of the same folder may be whole."
    )


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, behind the error's type where that line is one word or none."""
    line = str(error).strip().split("\n")[0][:200]
    return line if " " in line else f"{type(error).__name__} {line}".strip()


def _refusal(path: Path, error: BaseException) -> str:
    """Describe why a file was not unpickled, without torch's own words, which advise to switch the protection off."""
    asked = re.search(r"(?:GLOBAL|global) [`'\"]?([A-Za-z_][\w.]*)|[Tt]rying to load unsupported \w+ (\S+)", str(error))
    if asked:
        return _asks(path, asked[1] or asked[2])
    return f"{path} is not a checkpoint, or is damaged: nothing was loaded. Give the path of a whole checkpoint file."


def _asks(path: Path, name: str) -> str:
    return (
        f"{path} was not loaded: it asks to run {name[:100]}, which is not among the plain values and weights a "
        f"checkpoint consists of. Nothing of it was executed. If you trust its author, have them save weights and "
        f"configuration only."
    )


def stored_model_config(state: dict[str, Any]) -> dict[str, Any]:
    """Return a checkpoint's model configuration, in whichever form fairseq stored it; empty if it has none."""
    model = (state.get("cfg") or {}).get("model")
    if isinstance(model, Namespace):  # of models without a dataclass
        model = vars(model)
    return model if isinstance(model, dict) else {}


def model_config(path: Path, state: dict[str, Any]) -> dict[str, Any]:
    """Return a checkpoint's model configuration as a dictionary, in whichever form fairseq stored it.

    Args:
        path: of the checkpoint, for messages.
        state: its content.

    Raises:
        InputError: if it has none.
    """
    if model := stored_model_config(state):
        return model
    hint = "It has the format of the paper's 2019 code: bring it over with `lmfusion convert`."
    raise InputError(
        f"{path} has no model configuration in it, so it cannot be rebuilt. "
        + (hint if state.get("args") is not None else "Train or export it with lmfusion.")
    )
