"""What lmfusion's config files need under fairseq-hydra-train, before fairseq imports ``common.user_dir``.

Hydra imports this module where a config file names it, as a callback and for ``${lmfusion_user_dir:}``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from omegaconf import DictConfig, OmegaConf

from lmfusion import plugin
from lmfusion.errors import UserError

try:
    from hydra.experimental.callback import Callback
except ImportError:  # Hydra 1.0, which fairseq 0.12.2 asks for
    Callback = object


OmegaConf.register_new_resolver("lmfusion_user_dir", lambda: str(Path(__file__).resolve().parent), replace=True)


class CheckConfig(Callback):
    """Named by lmfusion's config files; refuses a configuration with values still to be given, or with unknown ones."""

    def on_job_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Register everything, then check the configuration, whose parts for fairseq are those of ``FairseqConfig``."""
        plugin.install()  # fairseq fills in a model's defaults before it imports --user-dir
        ours = OmegaConf.masked_copy(config, [key for key in config if key != "hydra"])
        missing = sorted(_missing(OmegaConf.to_container(ours)))
        if missing:
            given = " ".join(f"{key}=…" for key in missing)
            _leave(UserError(f"the configuration leaves these values to you: add {given}"))
        for group, section in ours.items_ex(resolve=False):
            known = getattr(OmegaConf.get_type(section), "__dataclass_fields__", None)  # model, task … come untyped
            unknown = sorted(set(section) - set(known)) if known else []
            if unknown:
                _leave(UserError(f"{group}.{unknown[0]} is no setting of fairseq, and would be ignored: leave it out."))


def _missing(values: Any, name: str = "") -> Iterator[str]:
    """Names of what is ``???``; what refers to it by ``${…}`` is not meant."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from _missing(value, f"{name}.{key}" if name else str(key))
    elif values == "???":
        yield name


def _leave(error: UserError) -> NoReturn:
    sys.stdout.flush()
    print(f"lmfusion: error: {error}", file=sys.stderr)
    sys.exit(1)
