"""Flags and layers of recurrent language models."""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum
from torch import Tensor, nn

from lmfusion.lm.transformer.config import SharedLMConfig
from lmfusion.operations import dropout

CELLS: dict[str, type[nn.RNNBase]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
CellChoice = ChoiceEnum(list(CELLS))


@dataclass
class RecurrentLMConfig(SharedLMConfig):
    """Flags of ``uni_recurrent_lm`` and ``bi_recurrent_lm``."""

    cell: CellChoice = field(default="lstm", metadata={"help": "kind of recurrent cell"})  # type: ignore[valid-type]
    identity_start: bool = field(
        default=False,
        metadata={
            "help": "rnn: ReLU instead of tanh, and recurrent weights that start as the identity (IRNN), against "
            "gradients that vanish; --clip-norm is against those that explode"
        },
    )


class Direction(nn.ModuleList):
    """N recurrent layers over one another, each with C cells.

    Args:
        config: plain values of :class:`RecurrentLMConfig`.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        channels, kind = config["decoder_embed_dim"], CELLS[str(config["cell"])]
        special: dict[str, Any] = {"nonlinearity": "relu"} if config["identity_start"] else {}
        layers = [kind(channels, channels, batch_first=True, **special) for _ in range(config["decoder_layers"])]
        super().__init__(layers)
        self.dropout = config["dropout"]
        for layer in layers if config["identity_start"] else ():
            weights = dict(layer.named_parameters())
            nn.init.eye_(weights["weight_hh_l0"])
            nn.init.zeros_(weights["bias_hh_l0"])
            nn.init.zeros_(weights["bias_ih_l0"])

    def forward(self, x: Tensor, memory: Optional[Sequence[Any]] = None) -> tuple[list[Tensor], list[Any]]:
        """Compute the states of all layers.

        Args:
            x: B x T x C, left-aligned.
            memory: what the call for the positions before these returned.

        Returns:
            N states of B x T x C, and what each cell remembers: tensors of 1 x B x C, or pairs of them.
        """
        states, kept = [], []
        for number, layer in enumerate(self):
            x, end = layer(dropout(x, self.dropout, self.training) if number else x, memory[number] if memory else None)
            states.append(x)
            kept.append(end)
        return states, kept
