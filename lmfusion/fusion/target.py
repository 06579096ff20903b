"""The target side: what an integration gives as the decoder's word embeddings, or beside them (SPEC section 2)."""

from __future__ import annotations

from typing import Any

from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor, nn

from lmfusion.fusion.interface import DECODER, Fusion
from lmfusion.fusion.places import wrap_attention
from lmfusion.fusion.source import CARRIED
from lmfusion.lm.interface import IncrementalState, PretrainedLM


class TargetReader(nn.Module):
    """A prefix of the target, read by a language model.

    While decoding, fairseq's decoder looks up the last token alone. What a language model says of it depends on the
    whole prefix, so :class:`LMFusionDecoder` hands over prefix and decoding state first.

    Args:
        fusion: the integration.
        dictionary: of the target.

    """

    def __init__(self, fusion: Fusion, dictionary: Dictionary) -> None:
        super().__init__()
        self.representation = fusion  # under this name in checkpoints
        self.padding_idx = dictionary.pad()
        self.num_embeddings = len(dictionary)
        # Kept from the embeddings to the features only where somebody reads them there: they are large.
        self._changes_features = type(fusion).features is not Fusion.features
        self._states: Any = None
        self._prefix: tuple[Tensor, IncrementalState] | None = None

    @property
    def fusion(self) -> Fusion:
        """The integration."""
        fusion = self.representation
        assert isinstance(fusion, Fusion)
        return fusion

    @property
    def lm(self) -> PretrainedLM:
        """The language model inside."""
        return self.fusion.lm

    def announce(self, prefix: Tensor, incremental_state: IncrementalState | None) -> None:
        """Expect a look-up of the last token of this prefix (B x T), or of all of it without a decoding state."""
        self._prefix = None if incremental_state is None else (prefix, incremental_state)

    def read(self, tokens: Tensor) -> tuple[Any, bool]:
        """Read B x T tokens, or after :meth:`announce` what is new of the prefix; say whether it was the latter."""
        vocabulary, is_step = self.lm.vocabulary, self._prefix is not None
        if self._prefix is None:
            states = self.fusion.read(vocabulary.ids(tokens))
        else:
            (prefix, incremental_state), self._prefix = self._prefix, None
            states = self.fusion.read(vocabulary.ids(prefix), incremental_state)
        self._states = states if self._changes_features else None
        return states, is_step

    def features(self, x: Tensor) -> Tensor:
        """Let the integration change the features, B x T x C."""
        states, self._states = self._states, None
        return self.fusion.features(x, states) if self._changes_features else x


class TargetEmbedding(TargetReader):
    """An integration that looks like an embedding to fairseq's decoder."""

    def __init__(self, fusion: Fusion, dictionary: Dictionary, width: int) -> None:
        super().__init__(fusion, dictionary)
        self.embedding_dim = width

    def forward(self, tokens: Tensor) -> Tensor:
        """Embed: B x T -> B x T x C; after :meth:`announce` B x 1 -> B x 1 x C."""
        states, is_step = self.read(tokens)
        x = self.fusion.embed(states)
        return x[:, -1:] if is_step else x


class LMFusionDecoder(TransformerDecoderBase):
    """fairseq's decoder with a target language model, a source language model that it reads, or both.

    Args:
        cfg: fairseq's configuration of the model, with our flags.
        dictionary: of the target.
        embed_tokens: a :class:`TargetEmbedding`, or embeddings of its own.
        reader: where the embeddings are its own: what reads the target language model beside them, if there is one.
    """

    def __init__(
        self,
        cfg: Any,
        dictionary: Dictionary,
        embed_tokens: nn.Module,
        reader: TargetReader | None = None,
    ) -> None:
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn=cfg.no_cross_attention)
        self.reader = reader
        self._source: list[Fusion] = []  # a list, so that its weights are the encoder's alone
        if cfg.tgt_embed_scale is not None:
            self.embed_scale = cfg.tgt_embed_scale
        if self.fusion is not None:
            wrap_attention(self.fusion, self, DECODER)

    def read_source(self, fusion: Fusion) -> None:
        """Let the source side's integration put attention of its own into the layers, and give it what it reads."""
        self._source = [fusion]
        wrap_attention(fusion, self, DECODER)

    @property
    def fusion(self) -> Fusion | None:
        """The target side's integration, if there is one."""
        return None if self._read_by is None else self._read_by.fusion

    @property
    def _read_by(self) -> TargetReader | None:
        """What reads the target language model, if there is one."""
        return self.embed_tokens if isinstance(self.embed_tokens, TargetReader) else self.reader

    def extract_features_scriptable(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Any,
        incremental_state: IncrementalState | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Compute features as fairseq's; the language model keeps its keys and values in ``incremental_state``."""
        reader = self._read_by
        for source in self._source:
            source.receive(encoder_out[CARRIED], encoder_out["encoder_padding_mask"][0])
        if reader is not None:
            reader.announce(prev_output_tokens, incremental_state)
        if self.reader is not None:
            self.reader.read(prev_output_tokens)
        x, extra = super().extract_features_scriptable(
            prev_output_tokens, encoder_out, incremental_state, *args, **kwargs
        )
        return (x if reader is None else reader.features(x)), extra

    def reorder_incremental_state_scripting(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        """Let decoding states follow the beam.

        fairseq asks every module at every step whether it can be reordered, which is expensive: a module looks through
        its parameters, buffers and children before it says no. Asking its class is quick.
        """
        for module in self.modules():
            if hasattr(type(module), "reorder_incremental_state"):
                module.reorder_incremental_state(incremental_state, new_order)

    def max_positions(self) -> int:
        """Return the longest target in tokens, </s> included."""
        reader = self._read_by
        longest: int = super().max_positions()
        return longest if reader is None else min(longest, reader.lm.max_positions())
