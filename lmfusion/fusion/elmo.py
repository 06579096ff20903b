"""The integration ``elmo``: a learned mix of a frozen LM's layers (Edunov et al. 2019, section 2.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from lmfusion.errors import InputError
from lmfusion.fusion.interface import Fusion, Side, register_fusion
from lmfusion.fusion.scalar_mix import ScalarMix
from lmfusion.lm.interface import LAYERS, IncrementalState, LMStates, PretrainedLM
from lmfusion.operations import dropout
from lmfusion.state_cache.plan import announce
from lmfusion.state_cache.stored_states import StoredStates

REPRESENTATION_DROPOUT = "dropout of what replaces the word embeddings (default: 0)"


@dataclass
class ElmoConfig:
    """Flags of the integration ``elmo``."""

    elmo_dropout: float | None = field(
        default=None, metadata={"help": "elmo: dropout of the mixing weights (default: 0)"}
    )
    elmo_affine: bool = field(default=False, metadata={"help": "elmo: learned scale and shift in the mix's layer norm"})
    representation_dropout: float | None = field(default=None, metadata={"help": REPRESENTATION_DROPOUT})
    lm_layers: str | None = field(
        default=None,
        metadata={"help": "elmo: numbers of the LM's states to mix, 0 for its embeddings: 4,8,12 (default: all)"},
    )
    lm_dtype: str | None = field(
        default=None,
        metadata={"help": "elmo: float32, bfloat16 or float16: type of a Hugging Face LM's weights (default: float32)"},
    )
    lm_cache: str | None = field(
        default=None,
        metadata={
            "help": "elmo: folder for the source LM's states of training sentences, to be read back in later epochs "
            "and runs",
            "sides": ("src",),
        },
    )
    lm_cache_half: bool = field(
        default=False,
        metadata={"help": "store them in half precision: half the size, error below 0.05 percent", "sides": ("src",)},
    )


@register_fusion("elmo")
class ElmoFusion(Fusion):
    """ELMo augmentation: the embeddings are ``W mix(LM layers)``, and only the mix and W are trained.

    W (bias-free) exists only if the side's width is not C' (Edunov et al. 2019, section 2.1; SPEC section 2).
    """

    Config = ElmoConfig
    title = "mix of the frozen LM's layers"
    carries_positions = True

    def __init__(self, lm: PretrainedLM, side: Side, config: ElmoConfig) -> None:
        super().__init__(lm.freeze(), side, config)
        self.chosen = chosen_states(config.lm_layers, lm.num_states, f"--{side.prefix}-lm-layers")
        self.mix = ScalarMix(
            len(self.chosen), lm.state_dim, dropout=config.elmo_dropout or 0.0, affine=config.elmo_affine
        )
        self.projection = make_projection(lm.state_dim, side.width)
        self.dropout = config.representation_dropout or 0.0
        self.stored: StoredStates | None = None
        if config.lm_cache:
            self.stored = StoredStates(
                lm, config.lm_cache, side.fingerprint, chosen=self.chosen, half=config.lm_cache_half
            )

    @classmethod
    def lm_overrides(cls, config: ElmoConfig) -> Mapping[str, Any]:
        """Return the type of the language model's weights, if one is given; see :meth:`Fusion.lm_overrides`."""
        return {"dtype": config.lm_dtype}

    @classmethod
    def check(cls, config: ElmoConfig, flag: Callable[[str], str], run: Any) -> None:
        """Refuse ``lm_cache_half`` without ``lm_cache``, as it would be ignored; see :meth:`Fusion.check`.

        Raises:
            InputError: naming the flags.
        """
        if config.lm_cache_half and not config.lm_cache:
            raise InputError(f"{flag('lm_cache_half')} would be ignored: it says how {flag('lm_cache')} FOLDER stores.")

    def begin(self, run: Any) -> None:
        """Log how much disk space the stored states will take; see :meth:`Fusion.begin`.

        Raises:
            InputError: if there is less.
        """
        if self.stored is not None:
            announce(self.stored, run)

    def read(self, tokens: Tensor, incremental_state: IncrementalState | None = None) -> LMStates:
        """Return the states to be mixed, in training from the cache if there is one; see :meth:`Fusion.read`."""
        with torch.no_grad():
            if self.stored is not None and self.training:
                layers = self.stored(tokens)
            else:
                states = self.lm.states(tokens, incremental_state, want={LAYERS}).layers
                layers = [states[number] for number in self.chosen]
        if next(self.lm.parameters()).dtype != self.mix.weights.dtype:  # --src-lm-dtype
            layers = [layer.to(self.mix.weights.dtype) for layer in layers]
        return LMStates(layers, [self.lm.state_names[number] for number in self.chosen])

    def embed(self, states: LMStates) -> Tensor:
        """Mix the chosen layer states (B x T x C') and project the result: B x T x C."""
        x = self.mix(states.layers)
        if self.projection is not None:
            x = self.projection(x)
        return dropout(x, self.dropout, self.training)


def chosen_states(given: str | None, count: int, flag: str = "lm_layers") -> list[int]:
    """Return the numbers of the states to be mixed.

    Args:
        given: numbers with commas between, in ascending order; None: all.
        count: L, number of the language model's states.
        flag: for messages.

    Raises:
        InputError: if one is no number, stands twice or is too high.
    """
    words = [str(number) for number in range(count)] if given is None else [word.strip() for word in given.split(",")]
    numbers = [int(word) for word in words if word.isascii() and word.isdigit()]
    if len(numbers) < len(words) or numbers != sorted(set(numbers)) or numbers[-1] >= count:
        raise InputError(
            f"{flag} {given}: give numbers from 0 (embeddings) to {count - 1} in ascending order, as 4,8,12."
        )
    return numbers


def make_projection(input_dim: int, output_dim: int) -> nn.Linear | None:
    """Return a bias-free projection, Xavier-uniform at first, where two sizes differ, else None.

    Args:
        input_dim: channels of the language model's states.
        output_dim: channels of the side.
    """
    if input_dim == output_dim:
        return None
    projection = nn.Linear(input_dim, output_dim, bias=False)
    # The released code leaves ELMo's as torch makes it, 2.09 times as small in the quickstart's sizes. There, with
    # --src-embed-scale 1 and 1,750 updates (seed 1), validation perplexity is 86.1 with this one and 94.0 with that,
    # BLEU 4.93 and 4.29. After 450 updates at the default scale that one was 0.03 to 0.04 nats ahead (two seeds).
    nn.init.xavier_uniform_(projection.weight)
    return projection
