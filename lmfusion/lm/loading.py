"""From a file to a pretrained language model."""

from __future__ import annotations

import logging
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary

from lmfusion.checkpoint.budget import building_from
from lmfusion.checkpoint.config_types import check_fields, fields_of
from lmfusion.checkpoint.contents import check_sizes
from lmfusion.checkpoint.reading import DAMAGE, first_line, model_config, read_checkpoint
from lmfusion.errors import UserError
from lmfusion.lm.causal import CausalLM
from lmfusion.lm.cloze import ClozeLM
from lmfusion.lm.interface import PretrainedLM
from lmfusion.lm.strict_loading import PREFIX, load_strictly
from lmfusion.lm.transformer.base import TransformerLM, dictionary_of
from lmfusion.lm.transformer.config import CausalLMConfig, ClozeLMConfig, LMConfig, plain_config
from lmfusion.lm.vocabulary import decode_symbols

logger = logging.getLogger(__name__)

FAMILIES: dict[str, tuple[type[TransformerLM], type[LMConfig]]] = {
    "bi_transformer_lm": (ClozeLM, ClozeLMConfig),
    "uni_transformer_lm": (CausalLM, CausalLMConfig),
}
_SYMBOLS = PREFIX + "symbol_table.codes"


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
    check_fields(path, model, fields_of(FAMILIES[description["family"]][1]))
    check_sizes(path, state)
    weights: dict[str, torch.Tensor] = state["model"]
    if _SYMBOLS not in weights:
        raise UserError(f"{path} has no dictionary in it ({_SYMBOLS} is missing): export it again.")
    with _said_of(path), building_from([path]):
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
    except (*DAMAGE, ArithmeticError) as error:
        raise UserError(f"{path} describes no language model ({first_line(error)}): train it again.") from error


def _targets(state: dict[str, Any]) -> list[str]:
    """What a cloze LM was trained to predict, from the task's flags."""
    task = state["cfg"].get("task") or {}
    task = vars(task) if isinstance(task, Namespace) else task
    return [name for name in ("self", "future", "past") if task.get(f"{name}_target")] or ["self"]
