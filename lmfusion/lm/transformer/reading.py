"""Read checkpoints of language models that fairseq-train wrote."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable

from fairseq.models import ARCH_MODEL_NAME_REGISTRY
from torch import Tensor

from lmfusion.checkpoint.budget import building_from
from lmfusion.checkpoint.config_types import check_fields, fields_of
from lmfusion.checkpoint.contents import check_sizes
from lmfusion.checkpoint.reading import DAMAGE, first_line, model_config, read_checkpoint, read_file
from lmfusion.errors import InputError
from lmfusion.lm.interface import PretrainedLM
from lmfusion.lm.symbols import decode_symbols
from lmfusion.lm.transformer.strict_loading import PREFIX, load_strictly
from lmfusion.text.codec import TextCodec
from lmfusion.text.kit import from_state

_SYMBOLS = PREFIX + "symbol_table.codes"


def lm_architecture(path: Path) -> str:
    """Return the name of the fairseq model in a checkpoint.

    Raises:
        InputError: if it cannot be read as a checkpoint.
    """
    about = path.stat()
    return _architecture(path, about.st_size, about.st_mtime_ns, about.st_ino)


@lru_cache(maxsize=16)
def _architecture(path: Path, *_: int) -> str:
    model = model_config(path, read_file(path, mmap=True))
    name = str(model.get("_name") or model.get("arch"))
    return ARCH_MODEL_NAME_REGISTRY.get(name, name)


def read_lm(
    path: Path, flags: Any, build: Callable[[dict[str, Any], dict[str, Any], list[str]], PretrainedLM]
) -> PretrainedLM:
    """Build a language model from its checkpoint alone.

    Args:
        path: of the checkpoint.
        flags: dataclass of the model's flags; the checkpoint's values must have the types of its fields.
        build: function of the model's flags, the task's flags and the symbols that returns an untrained model.

    Raises:
        InputError: if the checkpoint is damaged or unsafe, or its weights are not those of the model it describes (all
            differences are listed by name).
    """
    state = read_checkpoint(path)
    model = model_config(path, state)
    check_fields(path, model, fields_of(flags))
    check_sizes(path, state)
    weights: dict[str, Tensor] = state["model"]
    if _SYMBOLS not in weights:
        raise InputError(f"{path} has no dictionary in it ({_SYMBOLS} is missing): export it again.")
    with _as_input_error(path), building_from([path]):
        lm = build(model, _task(state), decode_symbols(weights[_SYMBOLS]))
    load_strictly(lm, weights, path)
    kit = from_state(path, state)
    lm.vocabulary.codec = TextCodec(kit) if kit else None
    return lm


def _task(state: dict[str, Any]) -> dict[str, Any]:
    task = state["cfg"].get("task") or {}
    return vars(task) if isinstance(task, Namespace) else task


@contextmanager
def _as_input_error(path: Path) -> Iterator[None]:
    """Turn errors in building a described model into one line about the file that describes it."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (*DAMAGE, ArithmeticError) as error:
        raise InputError(f"{path} describes no language model ({first_line(error)}): train it again.") from error
