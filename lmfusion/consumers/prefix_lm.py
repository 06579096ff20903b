"""``prefix_lm``: one causal tower that translates; source and target are one row of it (Dong et al. 2019, UniLM).

A row is the source with its </s>, then the target. The source is read in both directions, the target from left to
right, and only the target has a loss. For fairseq's training and search it is an encoder, which returns keys and
values of the source, and a decoder, which goes on from them; both are the same layers.
"""

from __future__ import annotations

import json
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder, register_model
from torch import Tensor

from lmfusion.consumers.prefix_lm_config import PrefixLMConfig, check_dictionaries, check_flags, dropouts, sizes
from lmfusion.errors import InputError
from lmfusion.fusion.holder import (
    PREFIX,
    check_same_lms,
    check_translation_task,
    fill_defaults,
    remember,
    use_stored_lm,
)
from lmfusion.lm.causal import CausalLM
from lmfusion.lm.freezing import state_fingerprint
from lmfusion.lm.interface import Head, IncrementalState
from lmfusion.lm.loading import build, describe, load_lm
from lmfusion.lm.precision import training_autocast
from lmfusion.lm.symbols import check_symbols
from lmfusion.lm.transformer.base import check_beam
from lmfusion.lm.transformer.layout import RowLayout
from lmfusion.lm.transformer.prefix import Prefix, behind_prefix, cached_length, read_prefix

EncoderOut = dict[str, list[Tensor]]


class PrefixEncoder(FairseqEncoder):
    """The source's part of the row.

    Args:
        lm: whose layers it uses; they are the decoder's in checkpoints.
        max_positions: of a source, its </s> included.
    """

    def __init__(self, lm: CausalLM, max_positions: int) -> None:
        super().__init__(lm.dictionary)
        self._lm = [lm]  # in a list: no module of this one, or a checkpoint would have all weights twice
        self._max_positions = max_positions

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **_: Any) -> EncoderOut:
        """Read sources.

        Args:
            src_tokens: B x S, padding on either side.
            src_lengths: unused; fairseq passes it.

        Returns:
            "keys" and "values" of each block (B x H x S x D), "visible" (B x S, True at words), "sentences" (B, their
            numbers).
        """
        (lm,) = self._lm
        layout = RowLayout(src_tokens.eq(lm.padding_idx))
        prefix = read_prefix(lm.layers, lm.embed(layout.align(src_tokens)), layout)
        sentences = torch.arange(len(src_tokens), device=src_tokens.device)
        return {**vars(prefix), "visible": [prefix.visible], "sentences": [sentences]}

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        """Reorder with the beam: row b becomes former row ``new_order[b]``."""
        (before,) = encoder_out["sentences"]
        after = before.index_select(0, new_order)
        # Hypotheses of a sentence that change places have the same source: nothing to copy, but on a GPU the answer
        # would have to be waited for.
        if after.device.type == "cpu" and torch.equal(after, before):
            return encoder_out
        return {name: [part.index_select(0, new_order) for part in parts] for name, parts in encoder_out.items()}

    def max_positions(self) -> int:
        """Return the length of the longest source in tokens, </s> included."""
        return self._max_positions


class PrefixDecoder(FairseqIncrementalDecoder):
    """The target's part of the row, and the weights.

    Args:
        lm: the tower with embeddings and softmax.
        max_positions: of a target, </s> included.
    """

    def __init__(self, lm: CausalLM, max_positions: int) -> None:
        super().__init__(lm.dictionary)
        self.lm = lm
        self._max_positions = max_positions

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut,
        incremental_state: IncrementalState | None = None,
        head: Head = F.linear,
        **_: Any,
    ) -> tuple[Any, dict[str, Any]]:
        """Compute the logits of the next token at every position of the target.

        Args:
            prev_output_tokens: B x T, ``</s> t1 ... tn``; without padding if there is a decoding state.
            encoder_out: what the encoder returned.
            incremental_state: fairseq's decoding state, which keeps keys and values of the target.
            head: function that makes logits, or something else, of states (B x T x C) and output embeddings (V x C).

        Returns:
            B x T x V (only new T with a decoding state), or what the head makes; and a dictionary without attention.
        """
        prefix = Prefix(encoder_out["keys"], encoder_out["values"], encoder_out["visible"][0])
        if incremental_state is None:
            layout = RowLayout(prev_output_tokens.eq(self.lm.padding_idx))
            x = self.lm.embed(layout.align(prev_output_tokens), prefix=prefix.visible)
            top = layout.restore(behind_prefix(self.lm.layers, x, prefix, layout=layout))
        else:
            seen = cached_length(self.lm.layers, incremental_state)
            x = self.lm.embed(prev_output_tokens[:, seen:], offset=seen, prefix=prefix.visible)
            top = behind_prefix(self.lm.layers, x, prefix, incremental_state)
        return self.lm.output_layer(top, head), {"attn": None}

    def max_positions(self) -> int:
        """Return the length of the longest target in tokens, </s> included."""
        return self._max_positions


@register_model("prefix_lm", dataclass=PrefixLMConfig)
class PrefixLM(FairseqEncoderDecoderModel):
    """A causal language model that continues a source by its translation, from scratch or from a pretrained one."""

    takes_head = True  # lmfusion/training/criterions.py

    def __init__(self, lm: CausalLM, cfg: Any) -> None:
        encoder, decoder = PrefixEncoder(lm, cfg.max_source_positions), PrefixDecoder(lm, cfg.max_target_positions)
        super().__init__(encoder, decoder)
        self.cpu_bf16 = bool(cfg.cpu_bf16)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> PrefixLM:
        """Build the model for fairseq's ``translation`` task, from flags or from a checkpoint's configuration.

        Raises:
            InputError: if flags contradict each other, the sides have two dictionaries, or the language model that it
                is to start from cannot be used.
        """
        check_translation_task(task)
        fill_defaults(cfg, PrefixLMConfig)
        check_flags(cfg)
        symbols = check_dictionaries(task)
        described = use_stored_lm(cfg)
        if described:
            lm = _described(cfg, symbols)
        elif cfg.prefix_lm:
            lm = _started(cfg, symbols)
            check_same_lms(cfg, cfg, [PREFIX])
        else:
            lm = CausalLM(sizes(cfg), task.target_dictionary)
        remember(cfg, "prefix_lm_config", cfg.prefix_lm_config)
        return cls(lm, cfg)

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor | None, prev_output_tokens: Tensor, **kwargs: Any
    ) -> tuple[Any, dict[str, Any]]:
        """Compute logits; arguments are those of the encoder's and the decoder's ``forward``."""
        with training_autocast(self, self.cpu_bf16):
            return self.decoder(prev_output_tokens, self.encoder(src_tokens, src_lengths), **kwargs)

    def prepare_for_inference_(self, cfg: Any) -> None:
        """Prepare for decoding, as fairseq does.

        Raises:
            InputError: if --beam is below 1, or an alignment is asked for.
        """
        check_beam(cfg.generation.beam)
        if cfg.generation.print_alignment:
            raise InputError(
                "--print-alignment shows attention to a source, and prefix_lm has none apart: leave it out."
            )
        super().prepare_for_inference_(cfg)


def _described(cfg: Any, symbols: list[str]) -> CausalLM:
    """Build the untrained language model that ``cfg.prefix_lm_config`` describes, with the flags' dropouts."""
    lm = build(json.loads(cfg.prefix_lm_config)["lm"], symbols, **dropouts(cfg))
    assert isinstance(lm, CausalLM)
    return lm


def _started(cfg: Any, symbols: list[str]) -> CausalLM:
    """Load the language model of ``--prefix-lm``, with the flags' dropouts, and describe it in ``cfg``."""
    pretrained = load_lm(cfg.prefix_lm)
    if not isinstance(pretrained, CausalLM):
        raise InputError(f"--prefix-lm {cfg.prefix_lm} is a {pretrained.title}: give a causal LM (uni_transformer_lm).")
    if pretrained.config["decoder_learned_pos"]:
        raise InputError(
            f"--prefix-lm {cfg.prefix_lm} has learned positions, {pretrained.max_positions()} of them, and source and "
            f"target in one row are longer: pretrain it without --decoder-learned-pos."
        )
    check_symbols(pretrained.symbols, symbols, what="the dictionary of both sides")
    about = {"title": pretrained.title, "dictionary_hash": pretrained.dictionary_hash}
    about["fingerprint"] = state_fingerprint(pretrained)
    cfg.prefix_lm_config = json.dumps({"lm": describe(pretrained), **about})
    lm = _described(cfg, symbols)
    lm.load_state_dict(pretrained.state_dict())
    return lm
