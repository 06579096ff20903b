"""A user's own family of language models and own integration: ``--user-dir docs/own_parts``."""

import lmfusion

from . import mean_of_layers, random_vectors

lmfusion.install()

__all__ = ["mean_of_layers", "random_vectors"]
