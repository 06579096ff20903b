"""Named architectures in config files."""

from __future__ import annotations

from argparse import Namespace
from typing import Any, Callable

from fairseq.models import ARCH_CONFIG_REGISTRY
from omegaconf import DictConfig, OmegaConf, open_dict


def fill_in_architectures(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``model._name: src_elmo_tiny`` in a config file mean what ``--arch src_elmo_tiny`` does.

    fairseq fills in the model's own defaults first, so that an architecture finds nothing left to set. Here the
    architecture's values are put under those of the configuration, for models of lmfusion.
    """

    def merge_with_parent(dc: Any, cfg: DictConfig, *args: Any, **kwargs: Any) -> Any:
        kind = dc if isinstance(dc, type) else type(dc)
        name = str(cfg.get("_name"))
        if kind.__module__.startswith("lmfusion.") and name in ARCH_CONFIG_REGISTRY:
            values = Namespace(**{str(key): value for key, value in OmegaConf.to_container(cfg).items()})
            ARCH_CONFIG_REGISTRY[name](values)
            with open_dict(cfg):
                cfg.update({key: value for key, value in vars(values).items() if key not in cfg})
        return original(dc, cfg, *args, **kwargs)

    return merge_with_parent
