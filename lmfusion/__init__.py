"""lmfusion: pretrained language models in sequence-to-sequence models, as a plugin of fairseq.

Importing the package loads neither torch nor fairseq and changes nothing. fairseq registers its models by
``--user-dir``; a program of one's own does so by :func:`install`, or by using :func:`load_lm` or :func:`load_model`.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmfusion.errors import InputError, LMFusionError, UserError

if TYPE_CHECKING:
    from lmfusion import scoring
    from lmfusion.inference.hub import load_model
    from lmfusion.lm.interface import PretrainedLM
    from lmfusion.lm.loading import load_lm

USER_DIR = str(Path(__file__).resolve().parent)
"""For ``--user-dir`` of every fairseq command."""

__version__ = "0.1.0"
__all__ = [
    "USER_DIR",
    "InputError",
    "LMFusionError",
    "PretrainedLM",
    "UserError",
    "__version__",
    "install",
    "load_lm",
    "load_model",
    "scoring",
]

_LAZY = {
    "PretrainedLM": "lmfusion.lm.interface",
    "load_lm": "lmfusion.lm.loading",
    "load_model": "lmfusion.inference.hub",
}
"""Public names that load torch and fairseq, and where they are."""


def install() -> None:
    """Register lmfusion's models, criterions and tokenizers with fairseq and patch it; a second call does nothing."""
    from lmfusion import plugin

    plugin.install()


class _PackagePath(list[str]):
    """The package's ``__path__``: answers fairseq's question whether a ``--user-dir`` is this package, imported before.

    fairseq then registers nothing more (it imports ``models/`` at the first import only), and of any other folder of
    the same name it says no more than that the name is taken.
    """

    def __contains__(self, folder: object) -> bool:
        if not any(Path(str(folder)).resolve() == Path(own).resolve() for own in self):
            install()  # so that the error below ends the command in one line
            raise InputError(
                f"--user-dir {folder} is another copy of lmfusion than the one that is loaded, {USER_DIR}: give that "
                f"folder (lmfusion user-dir prints it), or start the command in the environment of the other copy."
            )
        install()
        return True


__path__ = _PackagePath(__path__)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        install()
        return getattr(importlib.import_module(_LAZY[name]), name)
    if name == "scoring":
        return importlib.import_module("lmfusion.scoring")
    raise AttributeError(f"module 'lmfusion' has no attribute {name!r}")
