"""The family ``bert``: a bidirectional post-norm encoder, trained on masked words and on pairs of spans.

Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding". A row is
``<s> a </s>`` or ``<s> a </s> b </s>``, where ``<s>`` has the part of ``[CLS]`` and ``</s>`` that of ``[SEP]``.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqDecoder, register_model, register_model_architecture
from torch import Tensor, nn

from lmfusion.errors import InputError
from lmfusion.lm.huggingface_vocabulary import TokenizerVocabulary
from lmfusion.lm.interface import LAYERS, TOP, IncrementalState, LMStates, register_lm
from lmfusion.lm.pooling import first_state
from lmfusion.lm.transformer.base import TrainableLM
from lmfusion.lm.transformer.config import BertLMConfig, plain_config, set_defaults
from lmfusion.lm.transformer.encoder import EncoderEmbedding, MaskedHead, PostNormBlock, linear
from lmfusion.lm.transformer.fairseq_lm import FairseqLM
from lmfusion.lm.transformer.layout import layout_of
from lmfusion.lm.vocabulary import BOS

MASK = "<mask>"
NEXT, RANDOM = 0, 1
"""Classes of the second span of a pair, in the order of BERT's head."""


class BertVocabulary(TokenizerVocabulary):
    """Symbols of a BERT, and the tokenizer of a converted one, whose size its weights tell."""

    @property
    def takes_codec(self) -> bool:  # type: ignore[override]
        """Return True unless a tokenizer came with the model."""
        return not self.tokenizer_file.numel()

    def make_room(self, weights: Mapping[str, Tensor], prefix: str) -> None:
        """Make room for the tokenizer in a checkpoint."""
        stored = weights.get(prefix + "tokenizer_file")
        if stored is not None and stored.shape != self.tokenizer_file.shape and stored.dim() == 1:
            self.tokenizer_file = torch.zeros_like(stored, dtype=torch.uint8, device=self.codes.device)
            self._tokenizer = None

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        self.make_room(state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


@register_lm("bert")
class BertLM(FairseqLM, FairseqDecoder):
    """BERT: embeddings with segments, N post-norm blocks, a pooler, and heads for masked words and for pairs.

    The segment of a token is the number of ``</s>`` in front of it, at most 1; so it needs no input of its own.

    Args:
        config: plain values of :class:`BertLMConfig`.
        dictionary: of the text; ``<mask>`` is its last symbol.

    Raises:
        InputError: if sizes contradict each other.
    """

    Config = BertLMConfig
    title = "BERT"
    architecture = "bert_lm"
    sees_future = True
    incremental = False

    def __init__(self, config: dict[str, Any], dictionary: Dictionary) -> None:
        FairseqDecoder.__init__(self, dictionary)
        channels, heads = config["decoder_embed_dim"], config["decoder_attention_heads"]
        self._adopt_sizes(config, dictionary)
        if heads < 1 or channels % heads:
            raise InputError(f"--decoder-attention-heads {heads} do not divide the {channels} channels: give others.")
        rates = {name: config[name] for name in ("dropout", "attention_dropout")}
        self.embed = EncoderEmbedding(
            len(dictionary),
            channels,
            self.padding_idx,
            separator=self.vocabulary.closing,
            positions=self.row_limit,
            dropout=config["dropout"],
        )
        self.layers = nn.ModuleList(
            PostNormBlock(channels, config["decoder_ffn_embed_dim"], heads, **rates) for _ in range(self.num_layers)
        )
        self.pooler: nn.Linear | None = linear(channels, channels)
        self.masked_head: MaskedHead | None = MaskedHead(channels, len(dictionary))
        self.pair_head: nn.Linear | None = linear(channels, 2)
        self.state_dim = channels
        self.state_names = ["embedding", *(f"layer {number}" for number in range(1, self.num_layers + 1))]

    @classmethod
    def make_vocabulary(cls, config: dict[str, Any], symbols: list[str]) -> BertVocabulary:
        """Return the vocabulary with the frame ``<s> … </s>``."""
        return BertVocabulary(symbols, opening=(BOS,))

    @property
    def vocabulary(self) -> BertVocabulary:
        """Return the model's symbols, and the tokenizer of a converted one."""
        assert isinstance(self.symbol_table, BertVocabulary)
        return self.symbol_table

    @property
    def row_limit(self) -> int:
        """Return the number of positions, P."""
        limit: int = self.config["max_target_positions"]
        return limit

    def max_positions(self) -> int:
        """Return the longest sentence in tokens as fairseq counts them: it has no ``<s>``."""
        return self.row_limit - 1

    def states(
        self, tokens: Tensor, incremental_state: IncrementalState | None = None, *, want: AbstractSet[str]
    ) -> LMStates:
        """Compute the normalized embeddings and N layers, each B x T x C; the top is the last one."""
        layout = layout_of(tokens, self.padding_idx)
        self.check_rows(layout)
        x = layout.pack(self.embed(layout.align(tokens)))
        states = [x]
        for block in self.layers:
            states.append(block(states[-1], layout))
        wanted = states if LAYERS in want else states[-1:]
        layers = [layout.restore(layout.unpack(state)) for state in wanted]
        found = LMStates(top=layers[-1] if TOP in want else None)
        if LAYERS in want:
            found.layers, found.names = layers, self.state_names
        return found

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor | None = None, masked: Tensor | None = None, **_: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        """Compute the logits of both heads.

        Args:
            src_tokens: B x T, ``<s> a </s> b </s>`` with padding on either side.
            src_lengths: unused; fairseq passes it.
            masked: B x T, True where a word is to be predicted; None: everywhere.

        Returns:
            Logits of M x V at the M masked positions, row by row, or B x T x V; and ``{"pair": B x 2}``, the logits of
            :data:`NEXT` and :data:`RANDOM`.
        """
        top = self.top_state(src_tokens)
        assert self.pair_head is not None
        pairs = self.pair_head(self.pool(top, src_tokens.eq(self.padding_idx)))
        return self.logits(top if masked is None else top[masked]), {"pair": pairs}

    def logits(self, top: Tensor) -> Tensor:
        """Turn top states into logits of the word in their place: ... x C -> ... x V.

        Raises:
            InputError: if the heads have been dropped.
        """
        if self.masked_head is None:
            raise InputError("the heads of this BERT were dropped: load it again by load_lm.")
        logits: Tensor = self.masked_head(top, self.embed.tokens.weight)
        return logits

    def pool(self, states: Tensor, padding: Tensor) -> Tensor:
        """Pool by BERT's pooler: ``tanh(W x + b)`` of the state of ``<s>``; B x T x C -> B x C.

        Raises:
            InputError: if the pooler has been dropped.
        """
        if self.pooler is None:
            raise InputError("the pooler of this BERT was dropped: load it again by load_lm.")
        return torch.tanh(self.pooler(first_state(states, padding)))

    def modules_from_below(self) -> list[list[nn.Module]]:
        """Return the embeddings, then each block: N + 1 lists."""
        return [[self.embed], *([block] for block in self.layers)]

    def drop_softmax(self) -> None:
        """Drop both heads; states and pooler do not change."""
        self.masked_head = self.pair_head = None

    def drop_pooler(self) -> None:
        """Drop the pooler; states do not change."""
        self.pooler = None


@register_model("bert_lm", dataclass=BertLMConfig)
class BertLanguageModel(TrainableLM):
    """The fairseq model ``bert_lm`` around a :class:`BertLM` (``--task bert_pretraining``)."""

    decoder: BertLM
    takes_head = False

    @classmethod
    def build_model(cls, cfg: BertLMConfig, task: Any) -> BertLanguageModel:
        """Build an untrained model.

        Raises:
            InputError: if the task masks no words.
        """
        if not getattr(task, "masks_words", False):
            raise InputError("bert_lm is trained by --task bert_pretraining --criterion bert_pretraining: give these.")
        return cls(BertLM(plain_config(cfg, BertLMConfig), task.target_dictionary)).follow(cfg)


@register_model_architecture("bert_lm", "bert_lm_large")
def bert_lm_large(args: Namespace) -> None:
    """Set the published large size: 335,141,888 parameters at 30,522 symbols, without heads."""
    set_defaults(
        args,
        decoder_layers=24,
        decoder_embed_dim=1024,
        decoder_ffn_embed_dim=4096,
        decoder_attention_heads=16,
    )
