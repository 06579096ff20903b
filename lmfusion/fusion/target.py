"""The target side: a decoder whose word embeddings an integration replaces or adds to (SPEC section 2)."""

from __future__ import annotations

from typing import Any

from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor, nn

from lmfusion.fusion.interface import DECODER, Fusion
from lmfusion.fusion.places import wrap_attention
from lmfusion.fusion.reordering import BeamWatch, reorder_states
from lmfusion.fusion.sides import Reader
from lmfusion.fusion.source import CARRIED
from lmfusion.lm.interface import IncrementalState


class TargetReader(Reader):
    """A module that runs the target's language model on a batch, or on a growing prefix.

    While decoding, fairseq's decoder looks up the last token alone. Its state in a language model depends on the whole
    prefix, so :class:`LMFusionDecoder` hands over prefix and decoding state first.

    Args:
        fusion: the integration.
        dictionary: of the target.
    """

    def __init__(self, fusion: Fusion, dictionary: Dictionary) -> None:
        super().__init__(fusion, dictionary)
        # Kept from the embeddings to the features only where somebody reads them there: they are large.
        self._changes_features = type(fusion).features is not Fusion.features
        self._states: Any = None
        self._prefix: tuple[Tensor, IncrementalState] | None = None
        self.watch = BeamWatch(fusion, fusion.lm)

    def announce(self, prefix: Tensor, incremental_state: IncrementalState | None) -> None:
        """Announce the next look-up.

        Args:
            prefix: B x T tokens, of which the last one is looked up next.
            incremental_state: fairseq's decoding state; None: the look-up will be of whole rows.
        """
        self._prefix = None if incremental_state is None else (prefix, incremental_state)

    def read(self, tokens: Tensor) -> tuple[Any, bool]:
        """Run the language model on whole rows, or on the new part of an announced prefix.

        Args:
            tokens: B x T, not used after :meth:`announce` with a decoding state.

        Returns:
            The integration's states, and True if they are those of a prefix's new part.
        """
        vocabulary, is_step = self.lm.vocabulary, self._prefix is not None
        if self._prefix is None:
            states = self.fusion.read(vocabulary.ids(tokens))
        else:
            (prefix, incremental_state), self._prefix = self._prefix, None
            self.watch.rows = len(prefix)
            states = self.fusion.read(vocabulary.ids(prefix), incremental_state)
        self._states = states if self._changes_features else None
        return states, is_step

    def features(self, x: Tensor) -> Tensor:
        """Return the decoder's features, B x T x C, as changed by the integration."""
        states, self._states = self._states, None
        return self.fusion.features(x, states) if self._changes_features else x


class TargetEmbedding(TargetReader):
    """An integration in the form of an embedding for fairseq's decoder.

    Args:
        fusion: the integration.
        dictionary: of the target.
        width: C of the embeddings.
    """

    def __init__(self, fusion: Fusion, dictionary: Dictionary, width: int) -> None:
        super().__init__(fusion, dictionary)
        self.embedding_dim = width

    def forward(self, tokens: Tensor) -> Tensor:
        """Embed tokens: B x T -> B x T x C; after :meth:`announce` the last T of a prefix."""
        states, is_step = self.read(tokens)
        x = self.fusion.embed(states)
        return x[:, -tokens.size(1) :] if is_step else x


class LMFusionDecoder(TransformerDecoderBase):
    """A transformer decoder with a target language model, a source language model that it reads, or both.

    Args:
        cfg: fairseq's configuration of the model, with our flags.
        dictionary: of the target.
        embed_tokens: a :class:`TargetEmbedding`, or embeddings of its own.
        reader: runs the target language model, if there is one, where the decoder has embeddings of its own.
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
        """Connect the source side's integration: it may replace attention modules, and receives its tensors."""
        self._source = [fusion]
        wrap_attention(fusion, self, DECODER)

    @property
    def fusion(self) -> Fusion | None:
        """Return the target side's integration, if there is one."""
        return None if self._read_by is None else self._read_by.fusion

    @property
    def _read_by(self) -> TargetReader | None:
        """Return the module that runs the target language model, if there is one."""
        return self.embed_tokens if isinstance(self.embed_tokens, TargetReader) else self.reader

    def extract_features_scriptable(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Any,
        incremental_state: IncrementalState | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Compute features as fairseq does; the language model keeps its keys and values in ``incremental_state``."""
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
        """Reorder decoding states with the beam: row b becomes former row ``new_order[b]``."""
        reader = self._read_by
        if reader is None:
            reorder_states(self, incremental_state, new_order)
            return
        before = reader.watch.before(self, reader, incremental_state, new_order)
        reorder_states(self, incremental_state, new_order)
        reader.watch.after(before, incremental_state)

    def max_positions(self) -> int:
        """Return the length of the longest target in tokens, </s> included."""
        reader = self._read_by
        longest: int = super().max_positions()
        return longest if reader is None else min(longest, reader.lm.max_positions())
