"""``lstm_lmfusion``: fairseq's LSTM encoder and decoder with a pretrained LM on either side or both."""

from __future__ import annotations

from argparse import Namespace
from types import SimpleNamespace
from typing import Any

from fairseq import utils
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoderDecoderModel, register_model
from fairseq.models.lstm import Embedding, LSTMDecoder, LSTMEncoder
from torch import Tensor

from lmfusion.consumers.additive_attention import AdditiveAttention
from lmfusion.consumers.lstm_config import ADDITIVE, NO_ATTENTION, LSTMFusionConfig, check_flags
from lmfusion.fusion.build import build_fusion
from lmfusion.fusion.combinations import check_shared
from lmfusion.fusion.config import STACKS, integration
from lmfusion.fusion.denoiser import keep_symbols
from lmfusion.fusion.holder import HoldsLMs, check_translation_task, fill_defaults, truncate_to_model, use_stored_lm
from lmfusion.fusion.interface import Fusion
from lmfusion.fusion.reordering import reorder_states
from lmfusion.fusion.source import SourceEmbedding
from lmfusion.fusion.target import TargetEmbedding
from lmfusion.lm.precision import training_autocast
from lmfusion.operations import lstm_features

LM_STATE = "language_model"
"""Key in a decoding state of the language model's own one: fairseq's decoder takes any other entry for its own."""


class LSTMFusionEncoder(LSTMEncoder):
    """An encoder of fairseq's LSTM with embeddings or a :class:`SourceEmbedding`, for rows in any order and padding."""

    @property
    def fusion(self) -> Fusion | None:
        """Return the integration, if there is one."""
        return self.embed_tokens.fusion if isinstance(self.embed_tokens, SourceEmbedding) else None

    def forward(self, src_tokens: Tensor, src_lengths: Tensor, enforce_sorted: bool = False) -> tuple[Tensor, ...]:
        """Encode sources as fairseq does.

        Args:
            src_tokens: B x S, padding on either side.
            src_lengths: B, tokens of each row.
            enforce_sorted: whether rows must be sorted by length.

        Returns:
            States, S x B x C; last hidden and cell states, N x B x C each; padding, S x B (S is the longest row's); and
            padding of the sources as they are, S' x B.
        """
        rows = utils.convert_padding_direction(src_tokens, self.padding_idx, left_to_right=True)
        found = super().forward(rows[:, : int(src_lengths.max())], src_lengths, enforce_sorted)
        return (*found, src_tokens.eq(self.padding_idx).t())

    def reorder_encoder_out(self, encoder_out: tuple[Tensor, ...], new_order: Tensor) -> tuple[Tensor, ...]:
        """Return what the encoder returned with row ``new_order[b]`` as row b."""
        return tuple(each.index_select(1, new_order) for each in encoder_out)

    def max_positions(self) -> int:
        """Return the length of the longest source in tokens, final </s> included."""
        longest: int = super().max_positions()
        return longest if self.fusion is None else min(longest, self.fusion.lm.max_positions())


class LSTMFusionDecoder(LSTMDecoder):
    """A decoder of fairseq's LSTM whose embeddings may be a :class:`TargetEmbedding`."""

    @property
    def fusion(self) -> Fusion | None:
        """Return the integration, if there is one."""
        return self.embed_tokens.fusion if isinstance(self.embed_tokens, TargetEmbedding) else None

    def extract_features(
        self, prev_output_tokens: Tensor, encoder_out: Any = None, incremental_state: dict[str, Any] | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Compute features as fairseq does.

        Args:
            prev_output_tokens: B x T.
            encoder_out: what the encoder returned.
            incremental_state: fairseq's decoding state; the language model's is an entry of it.

        Returns:
            B x T x C (only the last T with a decoding state that is not empty), and attention to the sources as they
            are, B x T x S', or None.
        """
        if isinstance(self.attention, AdditiveAttention):
            self.attention.read(encoder_out[0])
        reader = self.embed_tokens if isinstance(self.embed_tokens, TargetEmbedding) else None
        if reader is None:
            return self._features(prev_output_tokens, encoder_out, incremental_state)
        lm_state = None if incremental_state is None else incremental_state.pop(LM_STATE, {})
        reader.announce(prev_output_tokens, lm_state)
        x, attention = self._features(prev_output_tokens, encoder_out, incremental_state)
        if incremental_state is not None:
            incremental_state[LM_STATE] = lm_state
        return reader.features(x), attention

    def _features(self, tokens: Tensor, encoder_out: Any, state: Any) -> tuple[Tensor, Tensor | None]:
        x, attention = lstm_features(self, tokens, encoder_out, state)
        if isinstance(self.attention, AdditiveAttention):
            self.attention.forget()
        return x, None if attention is None else _to_places(attention, encoder_out[4].t())

    def reorder_incremental_state_scripting(self, incremental_state: dict[str, Any], new_order: Tensor) -> None:
        """Reorder decoding states with the beam: row b becomes former row ``new_order[b]``."""
        lm_state = incremental_state.pop(LM_STATE, None)
        self.reorder_incremental_state(incremental_state, new_order)
        if lm_state is not None:
            reader = self.embed_tokens
            before = reader.watch.before(reader, reader, lm_state, new_order)
            reorder_states(reader, lm_state, new_order)
            reader.watch.after(before, lm_state)
            incremental_state[LM_STATE] = lm_state

    def max_positions(self) -> int:
        """Return the length of the longest target in tokens, </s> included."""
        longest: int = super().max_positions()
        return longest if self.fusion is None else min(longest, self.fusion.lm.max_positions())


@register_model("lstm_lmfusion", dataclass=LSTMFusionConfig)
class LSTMFusion(HoldsLMs, FairseqEncoderDecoderModel):
    """A recurrent sequence-to-sequence model whose encoder and decoder may each use a pretrained language model.

    Without language models and with the attention ``general`` it is fairseq's ``lstm``.
    """

    cpu_bf16 = False
    """Whether the matrix products of training steps on a CPU are in bfloat16."""

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> LSTMFusion:
        """Build the model for fairseq's ``translation`` task, from flags or from a checkpoint's configuration.

        Raises:
            InputError: if flags contradict each other or a language model cannot be used.
        """
        check_translation_task(task)
        fill_defaults(cfg, LSTMFusionConfig)
        check_flags(cfg)
        check_shared(cfg, task)
        described = use_stored_lm(cfg)
        names = (name for name in LSTMFusionConfig.__dataclass_fields__ if not name.startswith("_"))
        built = Namespace(**{name: getattr(cfg, name) for name in names})
        for stack in STACKS.values():  # as in fairseq's configuration of a transformer
            setattr(built, stack, SimpleNamespace(embed_dim=getattr(cfg, f"{stack}_embed_dim"), attention_heads=1))
        encoder = _build_encoder(built, task.source_dictionary)
        decoder = _build_decoder(built, task.target_dictionary, encoder)
        model = cls(encoder, decoder)
        model.cpu_bf16 = bool(cfg.cpu_bf16)
        keep_symbols(model, task)
        truncate_to_model(task, model)
        model.begin(cfg, built, described)
        return model

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute logits as fairseq's ``lstm`` does.

        Raises:
            InputError: if an LM inside never got its weights.
        """
        self.check_weights()
        with training_autocast(self, self.cpu_bf16):
            return super().forward(*args, **kwargs)


def _to_places(attention: Tensor, padding: Tensor) -> Tensor:
    """Put attention to left-aligned words where the words stand: B x T x S and padding, B x S', -> B x T x S'."""
    places = (~padding).cumsum(1).sub(1).clamp(min=0)
    spread = attention.gather(2, places.unsqueeze(1).expand(-1, attention.size(1), -1))
    return spread.masked_fill(padding.unsqueeze(1), 0.0)


def _sizes(cfg: Namespace, stack: str) -> dict[str, Any]:
    """Return what fairseq's encoder and decoder have in common, with its defaults for what is not given."""
    width, hidden = (getattr(cfg, f"{stack}_{name}") for name in ("embed_dim", "hidden_size"))
    given = {where: getattr(cfg, f"{stack}_dropout_{where}") for where in ("in", "out")}
    return {
        "embed_dim": width,
        "hidden_size": hidden or width,
        "num_layers": getattr(cfg, f"{stack}_layers"),
        **{f"dropout_{where}": cfg.dropout if value is None else value for where, value in given.items()},
    }


def _build_encoder(cfg: Namespace, dictionary: Dictionary) -> LSTMFusionEncoder:
    if integration(cfg, "src") is None:
        embeddings = Embedding(len(dictionary), cfg.encoder_embed_dim, dictionary.pad())
    else:
        fusion, side = build_fusion(cfg, "src", dictionary)
        fusion.lm.drop_pooler()  # of no use here, and a weight without a gradient stops several processes
        embeddings = SourceEmbedding(fusion, dictionary, side.width)
    return LSTMFusionEncoder(
        dictionary,
        **_sizes(cfg, "encoder"),
        bidirectional=cfg.encoder_bidirectional,
        pretrained_embed=embeddings,
        max_source_positions=cfg.max_source_positions,
    )


def _build_decoder(cfg: Namespace, dictionary: Dictionary, encoder: LSTMFusionEncoder) -> LSTMFusionDecoder:
    embeddings, kind = encoder.embed_tokens if cfg.share_all_embeddings else None, str(cfg.decoder_attention)
    if integration(cfg, "tgt") is not None:
        fusion, side = build_fusion(cfg, "tgt", dictionary)
        embeddings = TargetEmbedding(fusion, dictionary, side.width)
    decoder = LSTMFusionDecoder(
        dictionary,
        **_sizes(cfg, "decoder"),
        out_embed_dim=cfg.decoder_out_embed_dim,
        attention=kind != NO_ATTENTION,
        encoder_output_units=encoder.output_units,
        pretrained_embed=embeddings,
        share_input_output_embed=cfg.share_all_embeddings or cfg.share_decoder_input_output_embed,
        max_target_positions=cfg.max_target_positions,
    )
    if kind == ADDITIVE:
        decoder.attention = AdditiveAttention(decoder.hidden_size, encoder.output_units, decoder.hidden_size)
    return decoder
