"""A user's own family of language models and own integration: ``--user-dir docs/own_parts``; see docs/extending.md."""

import lmfusion

from . import mean_of_layers, random_vectors

# fairseq loads one --user-dir, and this one stands in the place of lmfusion's: so it registers lmfusion, too. That
# makes the flags of all integrations, those above included, and so comes last.
lmfusion.install()

__all__ = ["mean_of_layers", "random_vectors"]
