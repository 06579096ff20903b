"""What the pickle in a checkpoint may name.

``weights_only=True`` runs no code of a file, but calls what PyTorch allows with any number that the file has:
``bytearray(2**40)`` in 1 KB. Here less is allowed, and looked for before PyTorch reads the file.
"""

from __future__ import annotations

import io
import os
import pickletools
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch

from lmfusion.checkpoint.files import is_zip
from lmfusion.checkpoint.pickled_tuples import TupleSizes

_STORAGES = "Float Double Half BFloat16 Long Int Short Char Byte Bool".split()
NAMES = frozenset(
    [
        *("collections.OrderedDict", "builtins.set", "_codecs.encode", "torch.Size", "torch.device"),
        *(f"torch.{kind}Storage" for kind in _STORAGES),
        *(f"torch._utils._rebuild_{what}" for what in ("tensor", "tensor_v2", "parameter", "parameter_with_state")),
        *{str(value) for value in vars(torch).values() if isinstance(value, torch.dtype)},
    ]
)
"""What a checkpoint may name, beside :func:`accepted` and what the caller of torch allows."""
_PICKLES = 5
"""In a file of torch's old format: three about the format, the content, the names of its storages."""
_NUMBERS = ("int64", "int32", "float64", "float32", "bool")
_CODES = {np.dtype(name).str[1:] for name in _NUMBERS}


def _new_array(kind: Any, shape: Any, code: Any) -> np.ndarray[Any, Any]:
    """Return an array as numpy's pickles begin: empty; what the file holds of it comes later."""
    if kind is not _array or shape != (0,):
        raise ValueError(f"an array of {shape} without its numbers")
    return np.ndarray((0,), dtype="b")


def _new_type(code: Any, *_: Any) -> np.dtype[Any]:
    """Return a type of numbers."""
    if code not in _CODES:
        raise ValueError(f"numbers of the type {code!r:.40}")
    return np.dtype(code, copy=True)


def _number(kind: Any, data: Any) -> Any:
    """Return a number of numpy from its bytes."""
    if not isinstance(kind, np.dtype) or not isinstance(data, bytes) or len(data) != kind.itemsize:
        raise ValueError("a number without its bytes")
    return np.frombuffer(data, kind)[0]


def _array(*_: Any) -> None:
    """Stand for the class of arrays, which makes one of any size if it is called."""
    raise ValueError("an array without its numbers")


def accepted() -> list[Any]:
    """Return what torch is to accept besides weights and plain values, with its names in files.

    Namespaces are configurations of models that are registered without a dataclass, arrays the meters of --eval-bleu.
    """
    named = [(_array, "numpy.ndarray"), (_new_type, "numpy.dtype")]
    for module in ("numpy.core.multiarray", "numpy._core.multiarray"):  # of NumPy 1 and 2
        named += [(_new_array, f"{module}._reconstruct"), (_number, f"{module}.scalar")]
    # torch fills in these kinds alone, and no file can name them so: its names have a dot.
    kinds: list[type] = [np.ndarray, *(type(np.dtype(name)) for name in _NUMBERS)]
    filled = [(kind, kind.__name__) for kind in kinds]
    return [Namespace, *named, *filled]


def forbidden_name(path: Path) -> str | None:
    """Return the first name in a checkpoint's pickle that none has; None if there is no such.

    Args:
        path: of a file that torch can read.

    Raises:
        ValueError: if it is no pickle.
        OSError: if it cannot be read.
    """
    entries = [*accepted(), *torch.serialization.get_safe_globals()]
    known = NAMES | {entry[1] if isinstance(entry, tuple) else _full_name(entry) for entry in entries}
    return next((name for name in _names(path) if name not in known), None)


def _full_name(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _names(path: Path) -> Iterator[str]:
    if not is_zip(path):
        with _Stream(path.open("rb", buffering=0)) as stream:
            for _ in range(_PICKLES):
                if stream.peek(1):  # what is cut, is torch's to tell
                    yield from _names_in(stream)
        return
    yield from _names_in(io.BytesIO(_pickle_of_zip(path)))


def _pickle_of_zip(path: Path) -> bytes:
    """Return the pickle that torch reads, by torch's own reader: Python's may find other entries in the same file."""
    with path.open("rb") as stream:
        reader = torch._C.PyTorchFileReader(stream)
        size_of = getattr(reader, "get_record_size", None)  # of later versions than the first that is supported
        if size_of is not None and sum(map(size_of, reader.get_all_records())) > path.stat().st_size:
            raise ValueError("its entries are larger than it is")
        content: bytes = reader.get_record("data.pkl")
    return content


class _Stream(io.BufferedReader):
    """A file of which no more memory is asked for than it has bytes, whatever length a damaged entry claims."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read at most ``size`` bytes."""
        if size is not None and size > io.DEFAULT_BUFFER_SIZE:
            size = min(size, os.fstat(self.fileno()).st_size - self.tell())
        return super().read(size)


def _names_in(stream: IO[bytes]) -> Iterator[str]:
    sizes = TupleSizes()
    for operation, argument, _ in pickletools.genops(stream):
        sizes.follow(operation, argument)
        if operation.name == "GLOBAL":
            assert isinstance(argument, str)
            yield argument.replace(" ", ".").replace("__builtin__.", "builtins.", 1)
