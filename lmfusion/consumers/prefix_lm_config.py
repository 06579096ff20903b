"""Flags of ``prefix_lm``: those of a causal language model, and the one that it may start from."""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
from dataclasses import field, fields, make_dataclass
from typing import Any, Optional

from fairseq.dataclass import FairseqDataclass

from lmfusion.errors import InputError, check_dropout
from lmfusion.lm.symbols import first_difference
from lmfusion.lm.task_value import task_value
from lmfusion.lm.transformer.config import CausalLMConfig, complete_config

_DROPOUTS = ("dropout", "attention_dropout", "activation_dropout", "input_dropout")
_NOT_OURS = ("tokens_per_sample", "max_target_positions", "decoder_learned_pos")
_START_HELP = (
    "causal language model of the same dictionary to start from, with its sizes in place of the flags'; "
    "--dropout and the like stay the flags'"
)
_WRITTEN_HELP = "written by lmfusion into checkpoints; do not set"

PrefixLMConfig: Any = make_dataclass(
    "PrefixLMConfig",
    [
        *((spec.name, spec.type, spec) for spec in fields(CausalLMConfig) if spec.name not in ("_name", *_NOT_OURS)),
        ("prefix_lm", Optional[str], field(default=None, metadata={"help": _START_HELP})),
        ("prefix_lm_config", Optional[str], field(default=None, metadata={"help": _WRITTEN_HELP})),
        ("max_source_positions", Optional[int], task_value("max_source_positions", 1024)),
        ("max_target_positions", Optional[int], task_value("max_target_positions", 1024)),
    ],
    bases=(FairseqDataclass,),
)
"""Flags of ``prefix_lm``."""
PrefixLMConfig.__module__ = __name__


def sizes(cfg: Any) -> dict[str, Any]:
    """Return the plain values of an untrained causal language model with the flags' sizes."""
    own = {spec.name for spec in fields(CausalLMConfig)} - {"_name", *_NOT_OURS}
    row = cfg.max_source_positions + cfg.max_target_positions
    limits = {"tokens_per_sample": row, "max_target_positions": row}
    return complete_config({**{name: getattr(cfg, name) for name in own}, **limits}, CausalLMConfig)


def dropouts(cfg: Any) -> dict[str, float]:
    """Return the flags that hold for a pretrained model, too."""
    return {name: getattr(cfg, name) for name in _DROPOUTS}


def check_flags(cfg: Any) -> None:
    """Refuse dropouts that are no probabilities, and lengths without a symbol.

    Raises:
        InputError: naming the flag.
    """
    for side in ("source", "target"):
        limit = getattr(cfg, f"max_{side}_positions")
        if limit is not None and limit < 1:
            raise InputError(f"--max-{side}-positions {limit}: give 1 or more.")
    for name, value in dropouts(cfg).items():
        check_dropout(value, f"--{name.replace('_', '-')} {value:g}")


def check_dictionaries(task: Any) -> list[str]:
    """Return the symbols of both sides in index order.

    Args:
        task: fairseq's translation task.

    Raises:
        InputError: if the sides have two dictionaries.
    """
    source, target = (list(side.symbols) for side in (task.source_dictionary, task.target_dictionary))
    if first_difference(source, target) is not None:
        raise InputError(
            f"prefix_lm reads source and target by the same embeddings, and their dictionaries of {len(source)} and "
            f"{len(target)} symbols differ: prepare the data with one (fairseq-preprocess --joined-dictionary)."
        )
    return target
