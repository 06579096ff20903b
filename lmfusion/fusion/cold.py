"""The integrations ``cold`` and ``deep``: a target LM behind a gate, before the decoder's output projection.

Cold fusion takes the LM's logits (Sriram et al. 2018, arXiv 1708.06426, section 3), deep fusion its top state (Gulcehre
et al. 2015, arXiv 1503.03535, section 4.2). Both are trained with the rest of the model; the LM is frozen.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmfusion.fusion.interface import Fusion, Side, register_fusion
from lmfusion.lm.interface import TOP, IncrementalState, LMStates, PretrainedLM
from lmfusion.operations import Linear

DEEP_GATE_BIAS = -1.0
"""The gate of deep fusion is nearly closed at first (Gulcehre et al. 2015, section 4.2)."""

LOGITS_STD = 0.5
"""Deviation of W1 at first: trained LMs' logits have one of about 3, so that h begins near 1."""


@dataclass
class GatedConfig:
    """Flags of the integrations ``cold`` and ``deep``: there are none."""


class _Gated(Fusion):
    """A fusion of the frozen LM's top state with the decoder's features; the decoder keeps its own embeddings."""

    Config = GatedConfig
    sides = ("tgt",)
    replaces_embeddings = False

    def __init__(self, lm: PretrainedLM, side: Side, config: GatedConfig) -> None:
        lm.check_top_state()
        super().__init__(lm.freeze(), side, config)

    def read(self, tokens: Tensor, incremental_state: IncrementalState | None = None) -> LMStates:
        """Return the frozen language model's top state; see :meth:`Fusion.read`."""
        with torch.no_grad():
            return self.lm.states(tokens, incremental_state, want={TOP})


@register_fusion("cold")
class ColdFusion(_Gated):
    """Cold fusion: ``relu(W3 [x; g h])`` with ``h = relu(W1 (l - mean l) / sqrt(V))``, ``g = sigmoid(W2 [x; h])``.

    x are the decoder's features, l the LM's logits of the same next token; all layers have biases (Sriram et al. 2018,
    equations 4a to 4e). The output projection follows. The constant in the logits, which says nothing, is taken off as
    their mean, not their maximum, and they are divided by sqrt(V): an update of Adam's moves h by the sum of V logits,
    which letters bear better than thousands of subwords (docs/rivals.md has figures).
    """

    title = "its logits, gated, beside the decoder's features; trained with them"
    needs_softmax = True

    def __init__(self, lm: PretrainedLM, side: Side, config: GatedConfig) -> None:
        super().__init__(lm, side, config)
        self.logits_layer = _linear(len(lm.symbols), side.width)
        nn.init.normal_(self.logits_layer.weight, std=LOGITS_STD)
        self.gate = _linear(2 * side.width, side.width)
        self.output_layer = _linear(2 * side.width, side.width)

    @classmethod
    def refusal(cls, family: type[PretrainedLM]) -> str | None:
        """Refuse families that predict nothing; see :meth:`Fusion.refusal`."""
        return "predicts no words" if family.logits is PretrainedLM.logits else None

    def features(self, x: Tensor, states: LMStates) -> Tensor:
        """Fuse the decoder's features with the LM's logits: B x T x C -> B x T x C."""
        assert states.top is not None
        with torch.no_grad():
            logits = self.lm.logits(states.top[:, -x.size(1) :])
            logits = (logits - logits.mean(-1, keepdim=True)) / logits.size(-1) ** 0.5
        h = F.relu(self.logits_layer(logits))
        gate = torch.sigmoid(self.gate(torch.cat([x, h], dim=-1)))
        return F.relu(self.output_layer(torch.cat([x, gate * h], dim=-1)))


@register_fusion("deep")
class DeepFusion(_Gated):
    """Deep fusion: ``W [x; g h]`` with one gate a position, ``g = sigmoid(v h + b)``.

    x are the decoder's features, h the LM's top state (Gulcehre et al. 2015, section 4.2). There a finished translation
    model is trained further, as here with ``--finetune-from-model``; without it all is trained from the start.
    """

    title = "its top state, gated, beside the decoder's features; trained with them"

    def __init__(self, lm: PretrainedLM, side: Side, config: GatedConfig) -> None:
        super().__init__(lm, side, config)
        self.gate = _linear(lm.embed_dim, 1)
        nn.init.constant_(self.gate.bias, DEEP_GATE_BIAS)
        self.output_layer = _linear(side.width + lm.embed_dim, side.width)

    def features(self, x: Tensor, states: LMStates) -> Tensor:
        """Fuse the decoder's features with the LM's top states: B x T x C -> B x T x C."""
        assert states.top is not None
        h = states.top[:, -x.size(1) :]
        gate = torch.sigmoid(self.gate(h))
        fused: Tensor = self.output_layer(torch.cat([x, gate * h], dim=-1))
        return fused

    @torch.no_grad()
    def join(self) -> None:
        """Let trained features through as they are, so that the LM's state only adds to them; see :meth:`Fusion.join`.

        The paper's output layer is the translation model's, with more inputs.
        """
        width = self.output_layer.out_features
        self.output_layer.weight[:, :width] = torch.eye(width)


def _linear(in_features: int, out_features: int) -> nn.Linear:
    """Return a layer whose weight is Xavier-uniform and whose bias is 0 at first."""
    layer = Linear(in_features, out_features)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
