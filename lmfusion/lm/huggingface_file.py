"""A model of Hugging Face as one file: settings, weights, symbols, table and tokenizer, read with weights_only."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lmfusion.checkpoint.budget import building_from
from lmfusion.checkpoint.files import is_checkpoint
from lmfusion.checkpoint.reading import DAMAGE, first_line, model_config, read_checkpoint
from lmfusion.checkpoint.rewriting import write_checkpoint
from lmfusion.errors import InputError
from lmfusion.lm.description import check_description
from lmfusion.lm.interface import PretrainedLM
from lmfusion.lm.symbols import decode_symbols
from lmfusion.lm.transformer.reading import lm_architecture
from lmfusion.lm.transformer.strict_loading import PREFIX, load_strictly

_CODES = f"{PREFIX}symbol_table.codes"


def save(lm: PretrainedLM, path: str | Path) -> None:
    """Write a language model as one file, which :func:`lmfusion.load_lm` and ``--src-lm`` take like its folder.

    Args:
        lm: the language model.
        path: of the file.

    Raises:
        InputError: if it cannot be written.
    """
    model = {"_name": lm.family, "lm_config": json.dumps(lm.config)}
    weights = {f"{PREFIX}{name}": value for name, value in lm.state_dict().items()}
    write_checkpoint({"cfg": {"model": model}, "model": weights}, path)


def is_file_of(path: Path, family: str) -> bool:
    """Return True if ``path`` is a file that :func:`save` wrote of a model of this family."""
    return path.is_file() and is_checkpoint(path) and lm_architecture(path) == family


def read_file(path: Path, build: Callable[[dict[str, Any], list[str]], PretrainedLM]) -> PretrainedLM:
    """Read a language model from a file that :func:`save` wrote.

    Args:
        path: of the file.
        build: function of configuration and symbols that returns an untrained model.

    Raises:
        InputError: if the file is damaged or unsafe, or describes no model of Hugging Face.
    """
    state = read_checkpoint(path)
    try:
        model = model_config(path, state)
        config = json.loads(model["lm_config"])
        check_description("lm_config", {**config, "family": model["_name"]})
        with building_from([path]):
            lm = build(config, decode_symbols(state["model"][_CODES]))
        load_strictly(lm, state["model"], path)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (*DAMAGE, ArithmeticError) as error:
        raise InputError(f"{path} is damaged: it describes no model ({first_line(error)}). Write it again.") from error
    return lm
