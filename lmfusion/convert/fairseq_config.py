"""The configuration that fairseq-train would have saved with a converted model."""

from __future__ import annotations

import copy
import warnings
from functools import lru_cache
from typing import Any

from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import OmegaConf

from lmfusion.errors import LMFusionError


def training_config(model: str, model_values: dict[str, Any], task: str, task_values: dict[str, Any]) -> dict[str, Any]:
    """Return all sections, as plain values: fairseq's defaults and these.

    Args:
        model: name of one of our models.
        model_values: its flags.
        task: name of fairseq's task.
        task_values: its flags.
    """
    config = copy.deepcopy(_defaults(model, task))
    for section, values in (("model", model_values), ("task", task_values)):
        unknown = set(values) - set(config[section])
        if unknown:
            raise LMFusionError(f"fairseq has no {section} flags {', '.join(sorted(unknown))}")
        config[section].update(values)
    return config


@lru_cache
def _defaults(model: str, task: str) -> dict[str, Any]:
    """Return what fairseq-train would save if no flags were given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Hydra's news of its own versions
        parser = options.get_training_parser(default_task=task)
        args = options.parse_args_and_arch(parser, input_args=[".", "--task", task, "--arch", model])
        config = OmegaConf.to_container(convert_namespace_to_omegaconf(args), resolve=True, enum_to_str=True)
    assert isinstance(config, dict)
    return {str(name): section for name, section in config.items()}


def checkpoint(config: dict[str, Any], weights: dict[str, Any], updates: int) -> dict[str, Any]:
    """Return what fairseq saves of a training, without an optimizer."""
    history = {
        "criterion_name": "CrossEntropyCriterion",
        "optimizer_name": "FairseqNAG",
        "lr_scheduler_state": {},
        "num_updates": updates,
    }
    return {
        "args": None,
        "cfg": config,
        "model": weights,
        "criterion": None,
        "optimizer_history": [history],
        "task_state": {},
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}, "val_loss": None},
        "last_optimizer_state": None,
    }
