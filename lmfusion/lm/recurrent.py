"""The families ``recurrent`` and ``elmo``: an RNN, GRU or LSTM from left to right, and two that run towards each other.

``elmo`` is the biLM of Peters et al. 2018, "Deep contextualized word representations", over words instead of letters,
with LSTMs that have neither projections nor a residual connection between the layers: independent directions, one
embedding, one softmax; not ``bidirectional=True``, whose second layer reads both. Theirs has two layers
(``--decoder-layers 2``, as in ``lmfusion/config/lm/elmo.yaml``).
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from fairseq.models import FairseqDecoder, FairseqIncrementalDecoder, register_model
from torch import Tensor, nn

from lmfusion.errors import InputError
from lmfusion.lm.interface import LAYERS, TOP, Head, IncrementalState, LMStates, register_lm
from lmfusion.lm.recurrent_layers import CELLS, Direction, RecurrentLMConfig
from lmfusion.lm.several_targets import SeveralTargets
from lmfusion.lm.transformer.base import TrainableLM, check_lm_task
from lmfusion.lm.transformer.config import plain_config
from lmfusion.lm.transformer.fairseq_lm import FairseqLM
from lmfusion.lm.transformer.layout import layout_of
from lmfusion.operations import dropout


class _AnyRecurrent(FairseqLM):
    """The common parts of one direction and of two."""

    Config = RecurrentLMConfig

    def _build_recurrent(self, config: dict[str, Any], dictionary: Dictionary) -> None:
        config = {**config, "cell": str(config["cell"])}
        if config["cell"] not in CELLS:
            raise InputError(f"--cell {config['cell']}: give one of {', '.join(CELLS)}.")
        if config["identity_start"] and config["cell"] != "rnn":
            raise InputError(f"--identity-start belongs to --cell rnn: a {config['cell']} has gates instead.")
        self._build_ends(config, dictionary, learned_positions=False, no_positions=True)
        self.state_names = ["embedding", *(f"layer {number}" for number in range(1, self.num_layers + 1))]

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.config["dropout"], self.training)


@register_lm("recurrent")
class RecurrentLM(_AnyRecurrent, FairseqIncrementalDecoder):
    """A recurrent language model from left to right: the next word from the last layer's state.

    Args:
        config: plain values of :class:`RecurrentLMConfig`.
        dictionary: of the text.

    Raises:
        InputError: if flags contradict each other.
    """

    title = "recurrent language model"
    architecture = "uni_recurrent_lm"
    pooling = "last"
    sees_future = False
    incremental = True
    get_incremental_state: Any  # fairseq's, by a decorator
    set_incremental_state: Any

    def __init__(self, config: dict[str, Any], dictionary: Dictionary) -> None:
        FairseqIncrementalDecoder.__init__(self, dictionary)
        self._build_recurrent(config, dictionary)
        self.layers = Direction(self.config)
        self.state_dim = self.embed_dim

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Any = None,
        incremental_state: IncrementalState | None = None,
        src_lengths: Tensor | None = None,
        head: Head = F.linear,
        **_: Any,
    ) -> tuple[Any, dict[str, Any]]:
        """Compute the logits of the next token at every position.

        Args:
            prev_output_tokens: B x T, ``</s> w1 ... wn`` with padding on either side.
            encoder_out: always None; fairseq's generator passes it.
            incremental_state: fairseq's decoding state; see :meth:`states`.
            src_lengths: unused; fairseq passes it.
            head: function that makes logits, or something else, of states (B x T x C) and output embeddings (V x C).

        Returns:
            B x T x V (only new T with a decoding state), or what the head makes; and a dictionary without attention.
        """
        top = self._drop(self.top_state(prev_output_tokens, incremental_state))
        return self.output_layer(top, head), {"attn": None}

    def states(
        self, tokens: Tensor, incremental_state: IncrementalState | None = None, *, want: AbstractSet[str]
    ) -> LMStates:
        """Compute embeddings and N layers, each B x T x C; the top is the last one.

        With ``incremental_state`` rows must have no padding, as in fairseq's beam search; only states of tokens behind
        those seen are computed and returned.
        """
        if incremental_state is None:
            layout = layout_of(tokens, self.padding_idx)
            self.check_rows(layout)
            x = self.embed(layout.align(tokens))
            layers = [layout.restore(state) for state in (x, *self.layers(x)[0])]
        else:
            layers = self._continue(tokens, incremental_state)
        found = LMStates(top=layers[-1] if TOP in want else None)
        if LAYERS in want:
            found.layers, found.names = layers, self.state_names
        return found

    def _continue(self, tokens: Tensor, incremental_state: IncrementalState) -> list[Tensor]:
        self.check_length(tokens.size(1))
        kept: Any = self.get_incremental_state(incremental_state, "memory") or {"seen": 0, "memory": None}
        x = self.embed(tokens[:, kept["seen"] :])
        states, memory = self.layers(x, kept["memory"])
        self.set_incremental_state(incremental_state, "memory", {"seen": tokens.size(1), "memory": memory})
        return [x, *states]

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        """Reorder what the cells remember with the beam: row b becomes former row ``new_order[b]``."""
        kept: Any = self.get_incremental_state(incremental_state, "memory")
        if kept is not None:
            memory = [_reordered(end, new_order) for end in kept["memory"]]
            self.set_incremental_state(incremental_state, "memory", {**kept, "memory": memory})

    def modules_from_below(self) -> list[list[nn.Module]]:
        """Return the embeddings, then each layer: N + 1 lists."""
        return [[self.embed], *([layer] for layer in self.layers)]


def _reordered(end: Any, new_order: Tensor) -> Any:
    """Reorder 1 x B x C, or the pair (h, c) of an LSTM."""
    return tuple(_reordered(each, new_order) for each in end) if isinstance(end, tuple) else end[:, new_order]


@register_lm("elmo")
class ElmoLM(_AnyRecurrent, FairseqDecoder):
    """Two independent recurrent language models, left to right and right to left, with joined states (Peters 2018).

    Args:
        config: plain values of :class:`RecurrentLMConfig`.
        dictionary: of the text.

    Raises:
        InputError: if flags contradict each other.
    """

    title = "pair of recurrent language models"
    architecture = "bi_recurrent_lm"
    sees_future = True
    incremental = False
    targets: ClassVar[list[str]] = ["future", "past"]

    def __init__(self, config: dict[str, Any], dictionary: Dictionary) -> None:
        FairseqDecoder.__init__(self, dictionary)
        self._build_recurrent(config, dictionary)
        self.forward_layers, self.backward_layers = Direction(self.config), Direction(self.config)
        self.embed_dim = self.state_dim = 2 * config["decoder_embed_dim"]

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor | None = None, head: Head = F.linear, **_: Any
    ) -> tuple[Any, dict[str, Any]]:
        """Compute the logits of the next and of the previous token at every position.

        Args:
            src_tokens: B x T, ``</s> w1 ... wn`` with padding on either side.
            src_lengths: unused; fairseq passes it.
            head: function that makes logits, or something else, of states (B x 2 x T x C) and output embeddings.

        Returns:
            B x 2 x T x V, or what the head makes; and an empty dictionary.
        """
        top = self._drop(self.top_state(src_tokens))
        return self.output_layer(torch.stack(top.chunk(2, dim=-1), dim=1), head), {}

    def states(
        self, tokens: Tensor, incremental_state: IncrementalState | None = None, *, want: AbstractSet[str]
    ) -> LMStates:
        """Compute ``[embedding; embedding]`` and N times ``[forward; backward]``, B x T x 2C; the top is the last."""
        layout = layout_of(tokens, self.padding_idx)
        self.check_rows(layout)
        x = self.embed(layout.align(tokens))
        forward, backward = self.forward_layers(x)[0], self.backward_layers(layout.reverse(x))[0]
        pairs = [(x, x), *((ahead, layout.reverse(back)) for ahead, back in zip(forward, backward))]
        layers = [layout.restore(torch.cat(pair, dim=-1)) for pair in (pairs if LAYERS in want else pairs[-1:])]
        found = LMStates(top=layers[-1] if TOP in want else None)
        if LAYERS in want:
            found.layers, found.names = layers, self.state_names
        return found

    def logits(self, top: Tensor) -> Tensor:
        """Refuse: a pair predicts two words at a position, from its ``forward``.

        Raises:
            InputError: always.
        """
        raise InputError(f"a {self.title} predicts two words at every position, and no single one.")

    def modules_from_below(self) -> list[list[nn.Module]]:
        """Return the embeddings, then each layer of both directions: N + 1 lists."""
        return [[self.embed], *(list(layers) for layers in zip(self.forward_layers, self.backward_layers))]


@register_model("uni_recurrent_lm", dataclass=RecurrentLMConfig)
class UniRecurrentLanguageModel(TrainableLM):
    """The fairseq model ``uni_recurrent_lm`` around a :class:`RecurrentLM` (``--sample-break-mode eos``)."""

    family: ClassVar[Any] = RecurrentLM
    targets: ClassVar[list[str]] = ["future"]

    @classmethod
    def build_model(cls, cfg: RecurrentLMConfig, task: Any) -> UniRecurrentLanguageModel:
        """Build an untrained model for fairseq's ``language_modeling`` task.

        Raises:
            InputError: if the task asks for other targets than the model predicts, or translates.
        """
        check_lm_task(task)
        targets = list(getattr(task, "targets", ["future"]))
        if targets != cls.targets:
            given = " ".join(f"--{target}-target" for target in targets)
            needs = " ".join(cls.target_flags) or "no target flag"
            raise InputError(
                f"{cls.family.architecture} cannot be trained with {given}: give {needs}, also for a trained model."
            )
        return cls(cls.family(plain_config(cfg, RecurrentLMConfig), task.target_dictionary)).follow(cfg)

    @property
    def supported_targets(self) -> set[str]:
        """Return fairseq's names of the targets that the model can predict."""
        return set(self.targets)


@register_model("bi_recurrent_lm", dataclass=RecurrentLMConfig)
class BiRecurrentLanguageModel(SeveralTargets, UniRecurrentLanguageModel):
    """The fairseq model ``bi_recurrent_lm`` around an :class:`ElmoLM` (``--future-target --past-target``)."""

    family = ElmoLM
    targets: ClassVar[list[str]] = ElmoLM.targets
    target_flags = ("--future-target", "--past-target")
