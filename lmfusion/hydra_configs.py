"""What config files need under fairseq-hydra-train: sizes by an architecture's name, and mistakes in one line.

Hydra composes the files before fairseq imports ``common.user_dir``, so nothing here can be done by registering.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable, NoReturn

import fairseq.dataclass.utils as dataclass_utils
import hydra.core.utils as hydra_utils
from fairseq.models import ARCH_CONFIG_REGISTRY
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from lmfusion.errors import UserError
from lmfusion.fairseq_patches import one_line

try:
    from hydra.experimental.callback import Callback
except ImportError:  # Hydra 1.0, which fairseq 0.12.2 asks for
    Callback = object


class CheckConfig(Callback):
    """Named by lmfusion's config files; refuses a configuration with values still to be given, or with unknown ones."""

    def on_job_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Called by Hydra with the whole configuration, whose parts for fairseq are those of ``FairseqConfig``."""
        ours = OmegaConf.masked_copy(config, [key for key in config if key != "hydra"])
        missing = sorted(_missing(OmegaConf.to_container(ours)))
        if missing:
            given = " ".join(f"{key}=…" for key in missing)
            _leave(f"lmfusion: error: the configuration leaves these values to you: add {given}")
        for group, section in ours.items_ex(resolve=False):
            known = getattr(OmegaConf.get_type(section), "__dataclass_fields__", None)  # model, task … come untyped
            unknown = sorted(set(section) - set(known)) if known else []
            if unknown:
                name = f"{group}.{unknown[0]}"
                _leave(f"lmfusion: error: {name} is no setting of fairseq, and would be ignored: leave it out.")


def _missing(values: Any, name: str = "") -> Iterator[str]:
    """Names of what is ``???``; what refers to it by ``${…}`` is not meant."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield from _missing(value, f"{name}.{key}" if name else str(key))
    elif values == "???":
        yield name


def install() -> None:
    """Make fairseq and Hydra do so; safe to call again."""
    OmegaConf.register_new_resolver("lmfusion_user_dir", lambda: str(Path(__file__).resolve().parent), replace=True)
    _fill_in_architectures()
    _end_jobs_plainly()


def _fill_in_architectures() -> None:
    """``model._name: src_elmo_tiny`` means what ``--arch src_elmo_tiny`` does.

    fairseq fills in the model's own defaults first, and an architecture finds nothing left to set: another model than
    the one named would be trained without a word.
    """
    original: Callable[..., Any] = dataclass_utils.merge_with_parent
    if getattr(original, "knows_architectures", False):
        return

    def merge_with_parent(dc: Any, cfg: DictConfig, *args: Any, **kwargs: Any) -> Any:
        """fairseq's, with an architecture's values under what the configuration says."""
        kind = dc if isinstance(dc, type) else type(dc)
        name = str(cfg.get("_name"))
        if kind.__module__.startswith("lmfusion.") and name in ARCH_CONFIG_REGISTRY:
            values = Namespace(**{str(key): value for key, value in OmegaConf.to_container(cfg).items()})
            ARCH_CONFIG_REGISTRY[name](values)
            with open_dict(cfg):
                cfg.update({key: value for key, value in vars(values).items() if key not in cfg})
        try:
            return original(dc, cfg, *args, **kwargs)
        except OmegaConfBaseException as error:
            setting = f"{cfg._key()}.{error.full_key} ({name})"
            raise UserError(f"{setting}: {str(error).splitlines()[0]}. Correct it, or leave it out.") from error

    merge_with_parent.knows_architectures = True  # type: ignore[attr-defined]
    dataclass_utils.merge_with_parent = merge_with_parent


def _end_jobs_plainly() -> None:
    """A user's mistake ends fairseq-hydra-train in one line, as it ends fairseq-train."""
    property_of_hydra = getattr(hydra_utils.JobReturn, "return_value", None)
    original: Any = getattr(property_of_hydra, "fget", None)
    if original is None or hasattr(original, "ends_plainly"):  # None: Hydra 1.0
        return

    def return_value(job: hydra_utils.JobReturn) -> Any:
        """Hydra's, which raises the job's error."""
        error = job._return_value
        if isinstance(error, Exception) and (line := one_line.describe(error)) is not None:
            _leave(line)
        return original(job)

    return_value.ends_plainly = True  # type: ignore[attr-defined]
    hydra_utils.JobReturn.return_value = property(return_value, hydra_utils.JobReturn.return_value.fset)


def _leave(line: str) -> NoReturn:
    sys.stdout.flush()
    print(line, file=sys.stderr)
    sys.exit(1)
