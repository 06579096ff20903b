"""fairseq-hydra-train: named architectures in config files, and one line for a user's mistake."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any, Callable

from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_NAME_REGISTRY, MODEL_DATACLASS_REGISTRY
from omegaconf import DictConfig, OmegaConf, open_dict

from lmfusion.fairseq_patches import one_line


def fill_in_architectures(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``model._name: src_elmo_tiny`` in a config file mean what ``--arch src_elmo_tiny`` does.

    fairseq fills in the model's own defaults first, so that an architecture finds nothing left to set. Here the
    architecture's values are put under those of the configuration, for models of lmfusion.
    """

    def merge_with_parent(dc: Any, cfg: DictConfig, *args: Any, **kwargs: Any) -> Any:
        kind = dc if isinstance(dc, type) else type(dc)
        name = str(cfg.get("_name"))
        model = MODEL_DATACLASS_REGISTRY.get(ARCH_MODEL_NAME_REGISTRY.get(name))
        # A BPE may have the name of an architecture.
        is_model = kind is (model if isinstance(model, type) else type(model))
        if is_model and kind.__module__.startswith("lmfusion.") and name in ARCH_CONFIG_REGISTRY:
            values = Namespace(**{str(key): value for key, value in OmegaConf.to_container(cfg).items()})
            ARCH_CONFIG_REGISTRY[name](values)
            with open_dict(cfg):
                cfg.update({key: value for key, value in vars(values).items() if key not in cfg})
        return original(dc, cfg, *args, **kwargs)

    return merge_with_parent


def end_jobs_plainly(original: Any) -> Any:
    """Make a mistake of the user's end fairseq-hydra-train in one line, as the excepthook does for other commands."""
    if not isinstance(original, property):  # Hydra 1.0
        return original

    def return_value(job: Any) -> Any:
        error = job._return_value
        if isinstance(error, Exception) and one_line.describe(error) is not None:
            sys.excepthook(type(error), error, error.__traceback__)
            sys.exit(1)
        return original.__get__(job)

    return property(return_value, original.fset)
