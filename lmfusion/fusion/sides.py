"""What the readers of both sides have in common: the integration inside, and what fairseq asks of embeddings."""

from __future__ import annotations

from fairseq.data import Dictionary
from torch import nn

from lmfusion.fusion.interface import Fusion
from lmfusion.lm.interface import PretrainedLM


class Reader(nn.Module):
    """A module that runs a side's language model on fairseq's batches, through the side's integration.

    Args:
        fusion: the integration.
        dictionary: of the side.
    """

    def __init__(self, fusion: Fusion, dictionary: Dictionary) -> None:
        super().__init__()
        self.representation = fusion  # under this name in checkpoints
        self.padding_idx = dictionary.pad()
        self.num_embeddings = len(dictionary)

    @property
    def fusion(self) -> Fusion:
        """Return the integration."""
        fusion = self.representation
        assert isinstance(fusion, Fusion)
        return fusion

    @property
    def lm(self) -> PretrainedLM:
        """Return the language model inside the integration."""
        return self.fusion.lm
