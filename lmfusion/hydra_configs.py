"""The callback and the resolver that lmfusion's config files need before fairseq imports ``common.user_dir``.

Hydra imports this module where a config file names it, as a callback and for ``${lmfusion_user_dir:}``.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from omegaconf import DictConfig, OmegaConf

from lmfusion import plugin
from lmfusion.errors import InputError

try:
    from hydra.experimental.callback import Callback
except ImportError:  # Hydra 1.0, which fairseq 0.12.2 asks for
    Callback = object


_OWN_FOLDER = str(Path(__file__).resolve().parent)
OmegaConf.register_new_resolver("lmfusion_user_dir", lambda: _OWN_FOLDER, replace=True)


class CheckConfig(Callback):
    """A Hydra callback of lmfusion's config files that refuses missing values and unknown settings."""

    def on_job_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Register lmfusion with fairseq, then check the configuration; exit with status 1 if that fails.

        Args:
            config: the composed configuration; its sections other than ``hydra`` are fairseq's.
            **kwargs: unused; Hydra passes them.
        """
        plugin.install()  # fairseq fills in a model's defaults before it imports --user-dir
        ours = OmegaConf.masked_copy(config, [key for key in config if key != "hydra"])
        missing = sorted(_missing(OmegaConf.to_container(ours)))
        if missing:
            given = " ".join(f"{key}=…" for key in missing)
            _leave(InputError(f"the configuration leaves these values to you: add {given}"))
        for group, section in ours.items_ex(resolve=False):
            known = getattr(OmegaConf.get_type(section), "__dataclass_fields__", None)  # model, task … come untyped
            unknown = sorted(set(section) - set(known)) if known else []
            if unknown:
                _leave(InputError(f"{group}.{unknown[0]} is no setting of fairseq and would be ignored: leave it out."))
        if OmegaConf.select(ours, "common.user_dir") == _OWN_FOLDER:  # another may register what is not known yet
            _check_model(str(OmegaConf.select(ours, "model._name")))


def _check_model(name: str) -> None:
    """Refuse a name of no model or architecture, at which fairseq fails in the middle of an error of its own."""
    from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_DATACLASS_REGISTRY

    known = {*ARCH_MODEL_NAME_REGISTRY, *MODEL_DATACLASS_REGISTRY}
    if name not in known:
        like = difflib.get_close_matches(name, sorted(known), n=3)
        meant = f": did you mean {' or '.join(like)}?" if like else ": give the name of one, as --arch takes it."
        _leave(InputError(f"model._name={name} is no model or architecture{meant}"))


def _missing(values: Any, name: str = "") -> Iterator[str]:
    """Yield the names of values that are ``???``, but not of those that refer to one by ``${…}``."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from _missing(value, f"{name}.{key}" if name else str(key))
    elif values == "???":
        yield name


def _leave(error: InputError) -> NoReturn:
    sys.stdout.flush()
    print(f"lmfusion: error: {error}", file=sys.stderr)
    sys.exit(1)
