"""The source side: an encoder whose word embeddings an integration replaces or adds to (SPEC section 2)."""

from __future__ import annotations

from typing import Any

from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor, nn

from lmfusion.fusion.interface import ENCODER, Fusion
from lmfusion.fusion.places import wrap_attention
from lmfusion.fusion.sides import Reader
from lmfusion.lm.transformer.layout import RowLayout, announce
from lmfusion.lm.vocabulary import Framed

CARRIED = "lm_states"
"""Key in an encoder's output of the tensors that the decoder's layers read from the source language model."""


class SourceReader(Reader):
    """A module that runs the source's language model on a batch of fairseq's.

    fairseq's source is ``w1 ... wn </s>``, padded on either side. The language model gets rows that are left-aligned,
    in its own ids, with the symbols around them that it was trained with.
    """

    def read(self, src_tokens: Tensor) -> tuple[Any, Framed, RowLayout]:
        """Run the language model on a batch.

        Args:
            src_tokens: B x S ids of the side's dictionary, padding on either side.

        Returns:
            The integration's states, the framed rows and their layout.
        """
        framed, layout = self.frame(src_tokens)
        return self.fusion.read(framed.tokens), framed, layout

    def frame(self, src_tokens: Tensor) -> tuple[Framed, RowLayout]:
        """Return the rows that the language model is given for B x S ids of a batch, and their layout."""
        layout = RowLayout(src_tokens.eq(self.padding_idx))
        vocabulary = self.lm.vocabulary
        framed = vocabulary.frame(vocabulary.ids(layout.align(src_tokens)))
        opening = framed.tokens.size(1) - src_tokens.size(1)
        if framed.keep in (slice(opening, None), slice(0, None)):
            announce(framed.tokens, layout.with_frame(opening))
        return framed, layout

    def as_embeddings(self, states: Tensor, framed: Framed, layout: RowLayout) -> Tensor:
        """Move states of framed rows to the positions of the source's tokens.

        Args:
            states: B x T x C of the framed rows.
            framed: the rows, from :meth:`read`.
            layout: of the rows, from :meth:`read`.

        Returns:
            B x S x C, zero at padding.
        """
        x = framed.crop(states).masked_fill(layout.padding.unsqueeze(-1), 0.0)
        return layout.restore(x)


class SourceEmbedding(SourceReader):
    """An integration in the form of an embedding for fairseq's encoder.

    Args:
        fusion: the integration.
        dictionary: of the source.
        width: C of the embeddings.
    """

    def __init__(self, fusion: Fusion, dictionary: Dictionary, width: int) -> None:
        super().__init__(fusion, dictionary)
        self.embedding_dim = width

    def forward(self, src_tokens: Tensor) -> Tensor:
        """Embed tokens: B x S, padding on either side -> B x S x C, zero at padding."""
        states, framed, layout = self.read(src_tokens)
        return self.as_embeddings(self.fusion.embed(states), framed, layout)


class LMFusionEncoder(TransformerEncoderBase):
    """A transformer encoder with a source language model, which limits the length of sources.

    Args:
        cfg: fairseq's configuration of the model, with our flags.
        dictionary: of the source.
        embed_tokens: a :class:`SourceEmbedding`, or embeddings of its own.
        reader: runs the language model where the encoder has embeddings of its own.
    """

    def __init__(
        self, cfg: Any, dictionary: Dictionary, embed_tokens: nn.Module, reader: SourceReader | None = None
    ) -> None:
        super().__init__(cfg, dictionary, embed_tokens)
        self.reader = reader
        if cfg.src_embed_scale is not None:
            self.embed_scale = cfg.src_embed_scale
        self.fusion.lm.drop_pooler()  # of no use here, and a weight without a gradient stops several processes
        wrap_attention(self.fusion, self, ENCODER)

    @property
    def fusion(self) -> Fusion:
        """Return the integration."""
        fusion = (self.reader or self.embed_tokens).fusion
        assert isinstance(fusion, Fusion)
        return fusion

    def forward(self, src_tokens: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Encode B x S tokens as fairseq does; the output also has the tensors that the decoder reads (``CARRIED``)."""
        if self.reader is None:
            return super().forward(src_tokens, *args, **kwargs)
        states, framed, layout = self.reader.read(src_tokens)
        carried = [self.reader.as_embeddings(tensor, framed, layout) for tensor in self.fusion.carry(states)]
        padding = src_tokens.eq(self.padding_idx)
        self.fusion.receive(carried, padding)
        return {**super().forward(src_tokens, *args, **kwargs), CARRIED: carried}

    def reorder_encoder_out(self, encoder_out: dict[str, Any], new_order: Tensor) -> Any:
        """Reorder the output with the beam: row b becomes former row ``new_order[b]``."""
        reordered = super().reorder_encoder_out(encoder_out, new_order)
        if CARRIED in encoder_out:
            reordered[CARRIED] = [tensor.index_select(0, new_order) for tensor in encoder_out[CARRIED]]
        return reordered

    def max_positions(self) -> int:
        """Return the length of the longest source in tokens, final </s> included."""
        return min(super().max_positions(), self.fusion.lm.max_positions())
