"""The only place that reads a pretrained checkpoint from disk.

Everything is read with ``weights_only=True``: nothing in a file can run.
"""

from __future__ import annotations

import logging
import pickle
import re
import struct
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from fairseq.data import Dictionary

from lmfusion.errors import UserError
from lmfusion.lm import frozen_file
from lmfusion.lm.base import TransformerLM, dictionary_of
from lmfusion.lm.causal import CausalLM
from lmfusion.lm.checkpoint_contents import check_contents, check_sizes
from lmfusion.lm.checkpoint_files import damage, is_zip
from lmfusion.lm.cloze import ClozeLM
from lmfusion.lm.config import CausalLMConfig, ClozeLMConfig, LMConfig, plain_config
from lmfusion.lm.interface import PretrainedLM
from lmfusion.lm.strict_loading import PREFIX, load_strictly
from lmfusion.lm.symbols import decode_symbols

logger = logging.getLogger(__name__)

FAMILIES: dict[str, tuple[type[TransformerLM], type[LMConfig]]] = {
    "bi_transformer_lm": (ClozeLM, ClozeLMConfig),
    "uni_transformer_lm": (CausalLM, CausalLMConfig),
}
# What torch's reader trips over in a file that was cut or is something else.
_DAMAGE = (
    *(RuntimeError, EOFError, OSError, ValueError, LookupError, AttributeError, AssertionError, TypeError),
    struct.error,
)
_SYMBOLS = PREFIX + "symbol_table.codes"


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint file safely, with a frozen language model that it keeps in a file of its own.

    Raises:
        UserError: if there is no such file, or it is truncated, damaged, not a checkpoint, or holds
            anything but weights and plain values.
    """
    path = Path(path)
    return frozen_file.put_back(read_file(path), path, read=read_file)


def check_checkpoint(path: str | Path) -> None:
    """Refuse what :func:`read_checkpoint` refuses, without reading all weights into memory.

    Raises:
        UserError: as there.
    """
    path = Path(path)
    frozen_file.put_back(read_file(path, mmap=True), path, read=lambda file: read_file(file, mmap=True))


def read_file(path: Path, *, mmap: bool = False) -> dict[str, Any]:
    """Read one file safely, and nothing that it refers to.

    Args:
        path: of the file.
        mmap: leave weights on the disk until they are looked at, where the format allows it.

    Raises:
        UserError: as of :func:`read_checkpoint`.
    """
    if not path.is_file():
        what = "is a folder, not a checkpoint file" if path.is_dir() else "does not exist"
        raise UserError(f"{path} {what}: give the path of a checkpoint (…/checkpoint_best.pt).")
    try:
        if (found := damage(path)) is not None:
            raise UserError(_damaged(path, found))
        mmap = mmap and is_zip(path)  # the old format cannot be mapped
        state = torch.load(str(path), map_location="cpu", weights_only=True, mmap=mmap)
    except pickle.UnpicklingError as error:
        raise UserError(_refusal(path, error)) from error
    except UserError:
        raise
    except _DAMAGE as error:
        raise UserError(_damaged(path, _first_line(error))) from error
    check_contents(path, state)
    return cast(dict[str, Any], state)


def _damaged(path: Path, reason: str) -> str:
    return (
        f"{path} cannot be read as a checkpoint: it is truncated or damaged ({reason}). Copy or train it again; an "
        f"earlier checkpoint of the same folder may be whole."
    )


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:200]


def _refusal(path: Path, error: BaseException) -> str:
    """What to say of a file whose pickle asks for more than weights and plain values.

    torch's own words are left out: they advise to switch the protection off.
    """
    asked = re.search(r"(?:GLOBAL|global) [`'\"]?([A-Za-z_][\w.]*)|[Tt]rying to load unsupported \w+ (\S+)", str(error))
    if asked:
        return (
            f"{path} was not loaded: it asks to run {asked[1] or asked[2]}, which is not among the plain values and "
            f"weights a checkpoint consists of. Nothing of it was executed. If you trust its author, have them save "
            f"weights and configuration only."
        )
    return f"{path} is not a checkpoint, or is damaged: nothing was loaded. Give the path of a whole checkpoint file."


def model_config(path: Path, state: dict[str, Any]) -> dict[str, Any]:
    """The checkpoint's model config as a dictionary, whichever way fairseq stored it."""
    model = (state.get("cfg") or {}).get("model")
    if isinstance(model, Namespace):
        model = vars(model)
    if isinstance(model, dict):
        return model
    hint = "It has the format of the paper's 2019 code: bring it over with `lmfusion convert`."
    raise UserError(
        f"{path} has no model configuration in it, so it cannot be rebuilt. "
        + (hint if state.get("args") is not None else "Train or export it with lmfusion.")
    )


def _family(path: Path, model: dict[str, Any]) -> str:
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY

    name = str(model.get("_name") or model.get("arch"))
    family = ARCH_MODEL_NAME_REGISTRY.get(name, name)
    if family in FAMILIES:
        return family
    kind = "a sequence-to-sequence model" if "encoder_layers" in model else "another kind of model"
    raise UserError(
        f"{path} holds {name}, {kind}, where a pretrained language model belongs: give a "
        f"checkpoint of {' or '.join(FAMILIES)}."
    )


def describe(lm: PretrainedLM) -> dict[str, Any]:
    """Plain values from which :func:`build` makes an untrained copy of ``lm``."""
    family = "uni_transformer_lm" if lm.is_causal else "bi_transformer_lm"
    return {"family": family, **lm.config}


def build(description: dict[str, Any], dictionary: Dictionary, **overrides: Any) -> PretrainedLM:
    """An untrained language model.

    Args:
        description: from :func:`describe`; values that older files lack take their defaults.
        dictionary: of its text.
        overrides: values to replace, e.g. ``dropout=0.3``.

    Raises:
        UserError: if the family is unknown.
    """
    if description.get("family") not in FAMILIES:
        raise UserError(
            f"unknown language model family {description.get('family')!r}; "
            f"known are {', '.join(FAMILIES)}."
        )
    model_class, config_class = FAMILIES[description["family"]]
    defaults = {
        name: spec.default for name, spec in config_class.__dataclass_fields__.items()
    }
    given = {key: value for key, value in overrides.items() if value is not None}
    config = plain_config(Namespace(**{**defaults, **description, **given}), config_class)
    if "targets" in description:
        config["targets"] = list(description["targets"])
    return model_class(config, dictionary)


def load_lm(path: str | Path, **overrides: Any) -> PretrainedLM:
    """Load a pretrained language model: frozen, in eval mode and float32, from this file alone.

    Args:
        path: a checkpoint of ``bi_transformer_lm`` or ``uni_transformer_lm``.
        overrides: config values to replace, e.g. ``dropout=0.3`` for fine-tuning.

    Raises:
        UserError: if the file is missing, damaged, unsafe, not a language model, or its weights
            are not those of the model it describes (all differences are listed by name).
    """
    path = Path(path)
    state = read_checkpoint(path)
    model = model_config(path, state)
    description = {**model, "family": _family(path, model)}
    if description["family"] == "bi_transformer_lm":
        with _said_of(path):
            description["targets"] = _targets(state)
    check_sizes(path, state)
    weights: dict[str, torch.Tensor] = state["model"]
    if _SYMBOLS not in weights:
        raise UserError(f"{path} has no dictionary in it ({_SYMBOLS} is missing): export it again.")
    with _said_of(path):
        dictionary = dictionary_of(decode_symbols(weights[_SYMBOLS]))
        lm = build(description, dictionary, **overrides)
    load_strictly(lm, weights, path)
    tensors = sum(1 for _ in lm.parameters())
    count = sum(parameter.numel() for parameter in lm.parameters())
    logger.info(f"loaded {tensors} tensors with {count:,} parameters from {path}")
    return lm.freeze()


@contextmanager
def _said_of(path: Path) -> Iterator[None]:
    """What goes wrong when a described model is built, as one line about the file that describes it."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    except (*_DAMAGE, ArithmeticError) as error:
        raise UserError(f"{path} describes no language model ({_first_line(error)}): train it again.") from error


def _targets(state: dict[str, Any]) -> list[str]:
    """What a cloze LM was trained to predict, from the task's flags."""
    task = state["cfg"].get("task") or {}
    task = vars(task) if isinstance(task, Namespace) else task
    return [name for name in ("self", "future", "past") if task.get(f"{name}_target")] or ["self"]
