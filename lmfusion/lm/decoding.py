"""Remember how much of a prefix a language model has seen, for families that keep nothing else between steps."""

from __future__ import annotations

import torch
from torch import Tensor

from lmfusion.lm.interface import IncrementalState


def unseen_tokens(tokens: Tensor, incremental_state: IncrementalState | None, owner: str) -> Tensor:
    """Return the tokens that were not there at the step before, and remember that they have been seen.

    Args:
        tokens: B x T, the whole prefix of every row.
        incremental_state: fairseq's decoding state, in which the number of tokens is kept; None: no decoding.
        owner: name under which it is kept there, one for each language model.

    Returns:
        B x T_new; all of them without a decoding state, or with an empty one.
    """
    if incremental_state is None:
        return tokens
    known = incremental_state.get(f"{owner}.seen", {}).get("length")
    # The same for every row, so that there is nothing to reorder with the beam.
    incremental_state[f"{owner}.seen"] = {"length": torch.tensor(tokens.size(1))}
    return tokens if known is None else tokens[:, int(known) :]
