"""The side of a released sequence-to-sequence model that stands on a language model (``elmo:`` or ``bilm:``)."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairseq.data import Dictionary
from torch import Tensor

from lmfusion.convert.architectures import CLOZE
from lmfusion.convert.arguments import Arguments
from lmfusion.convert.language_model import family_of, lm_config
from lmfusion.convert.lm_files import LMFiles
from lmfusion.convert.lm_weights import lm_ignored, lm_moves
from lmfusion.convert.plan import Move, layer_norm, linear, move
from lmfusion.convert.state_lists import state_list
from lmfusion.convert.variant import FORWARD, HIDES_SELF, SEES_SELF, Reading
from lmfusion.errors import InputError
from lmfusion.fusion.config import ELMO, FINETUNE
from lmfusion.lm.old_checkpoints import modern_side
from lmfusion.lm.vocabulary import dictionary_hash

logger = logging.getLogger(__name__)

Config = dict[str, Any]
# The dropouts of a language model that is fine-tuned: ours, and the released code's.
_DROPOUTS = {
    "dropout": "bilm_model_dropout",
    "attention_dropout": "bilm_attention_dropout",
    "activation_dropout": "bilm_relu_dropout",
}


@dataclass(frozen=True)
class LMSide:
    """A side's language model in the released format.

    Attributes:
        side: ``"src"`` or ``"tgt"``.
        base: prefix of the embedding's weights, e.g. ``encoder.embed_tokens.``
        inner: prefix of the language model's.
        fusion: ``"elmo"`` or ``"finetune"``.
        family: of the language model.
        config: our flags of it.
        reading: how it is read.
        output_dim: channels of the encoder or decoder.
    """

    side: str
    base: str
    inner: str
    fusion: str
    family: str
    config: Config
    reading: Reading
    output_dim: int

    @property
    def target(self) -> str:
        """Prefix of our representation's weights."""
        return {"src": "encoder", "tgt": "decoder"}[self.side] + ".embed_tokens.representation."

    def moves(self, args: Arguments, weights: Mapping[str, Tensor], vocabulary: int) -> list[Move]:
        """Where its weights go."""
        moves = lm_moves(self.config, vocabulary, self.inner, f"{self.target}lm.", softmax=False)
        size = self.config["decoder_embed_dim"]
        if self.fusion == ELMO:
            size = mixed_size(self.config, self.reading)
            count = weights[f"{self.base}weights"].numel()
            moves.append(move(f"{self.base}weights", f"{self.target}mix.weights", count))
            moves.append(move(f"{self.base}gamma", f"{self.target}mix.gamma", 1))
            if is_affine(args, weights, self.base):
                moves += layer_norm(f"{self.base}layer_norm", f"{self.target}mix.layer_norm", size)
        if size != self.output_dim:
            short = self.fusion != ELMO and f"{self.base}projection.weight" not in weights
            moves += linear(
                f"{self.base}{'proj' if short else 'projection'}",
                f"{self.target}projection",
                self.output_dim,
                size,
                bias=False,
            )
        return moves

    def ignored(self) -> list[str]:
        """Names that are no weights, or of no use inside: a softmax."""
        return [*lm_ignored(self.inner), f"{self.inner}embed_out"]

    def values(self, args: Arguments, weights: Mapping[str, Tensor]) -> Config:
        """Flags of our model for this side, without the description of the language model."""
        values: Config = {f"{self.side}_fusion": self.fusion}
        if self.fusion == ELMO:
            values[f"{self.side}_elmo_affine"] = is_affine(args, weights, self.base)
            values[f"{self.side}_elmo_dropout"] = args.number("elmo_dropout", 0.0)
        return values

    def description(self, dictionary: Dictionary, fingerprint: str) -> str:
        """What our checkpoints keep of the language model."""
        described = {
            "lm": {"family": self.family, **self.config},
            "dictionary_hash": dictionary_hash(dictionary.symbols),
            "fingerprint": fingerprint,
            "reading": self.reading.to_dict(),
        }
        return json.dumps(modern_side(described))


def is_affine(args: Arguments, weights: Mapping[str, Tensor], base: str) -> bool:
    """Whether the mix's layer norm learned a scale and a shift."""
    return args.switch("elmo_affine", f"{base}layer_norm.weight" in weights)


def mixed_size(config: Config, reading: Reading) -> int:
    """Channels C' of the states an ELMo mix is made of."""
    paired = reading.states.paired if reading.states is not None else "targets" in config
    return int(config["decoder_embed_dim"]) * (2 if paired else 1)


def find_lm(side: str, args: Arguments, weights: Mapping[str, Tensor]) -> tuple[str, str, str] | None:
    """Whether and how a side stands on a language model.

    Returns:
        prefix of the embedding, prefix of the language model's weights in it, and the strategy; None if it does not.

    Raises:
        InputError: if its flags say so and there is no language model among the weights.
    """
    part = {"src": "encoder", "tgt": "decoder"}[side]
    base = f"{part}.embedder." if side == "src" and args.switch("embedding_only") else f"{part}.embed_tokens."
    inside = {name[len(base) :].split(".")[0] for name in weights if name.startswith(base) and ".decoder." in name}
    path = str(args.get(f"{part}_embed_path", ""))
    if not inside:
        if path.startswith(("elmo:", "bilm:")):
            raise InputError(
                f"{args.origin} was trained with --{part}-embed-path {path}, but has no language model's weights "
                f"({base}….decoder.…) in it."
            )
        return None
    if len(inside) > 1:
        raise InputError(f"{args.origin} has several language models below {base}: {', '.join(sorted(inside))}.")
    has_mix = f"{base}weights" in weights
    is_elmo = path.startswith("elmo:") or (has_mix and not path.startswith("bilm:"))
    if is_elmo and not has_mix:
        raise InputError(f"{args.origin} was trained with --{part}-embed-path {path}, but {base}weights is missing.")
    return base, f"{base}{inside.pop()}.decoder.", ELMO if is_elmo else FINETUNE


def lm_side(
    side: str,
    found: tuple[str, str, str],
    args: Arguments,
    lm_files: LMFiles,
    weights: Mapping[str, Tensor],
    config: Config,
) -> LMSide:
    """A side's language model.

    Args:
        side: ``"src"`` or ``"tgt"``.
        found: by :func:`find_lm`.
        args: of the sequence-to-sequence model.
        lm_files: what is known of the language model.
        weights: of the checkpoint.
        config: our flags of the encoder and the decoder.

    Raises:
        InputError: if something needed is not known, or it is none that the released code can use there.
    """
    base, inner, fusion = found
    family = family_of(weights, inner)
    if family is None:
        raise InputError(f"{args.origin}: there are no blocks of a language model below {inner}.")
    if side == "src" and family != CLOZE:
        raise InputError(
            f"{args.origin} has a causal language model in its encoder, which neither the released code nor lmfusion "
            f"can use there."
        )
    limit = config["max_source_positions" if side == "src" else "max_target_positions"]
    inside = lm_config(lm_files.arguments(side, family, weights, inner), weights, inner, family, limit=limit)
    if not inside["decoder_learned_pos"]:  # sinusoids have no end: the released code minds the outer limit alone
        inside["max_target_positions"] = max(limit, inside["max_target_positions"])
    output_dim = config["encoder_embed_dim" if side == "src" else "decoder_embed_dim"]
    if fusion == ELMO:
        args.require_unless_complete("elmo_softmax")
        reading = Reading(states=state_list(inside, weights, base, output_dim))
    else:
        if side == "src":
            args.require_unless_complete("bilm_add_bos")
        inside.update({ours: args.number(theirs, inside[ours]) for ours, theirs in _DROPOUTS.items()})
        leading_eos = side == "tgt" or args.switch("bilm_add_bos")
        reading = Reading(leading_eos=leading_eos, top=_top(side, inside, args))
    return LMSide(side, base, inner, fusion, family, inside, reading, output_dim)


def _top(side: str, config: Config, args: Arguments) -> str:
    """What the released code takes as a language model's output."""
    if "targets" not in config:
        return SEES_SELF
    if "self" not in config["targets"]:
        return FORWARD
    # In the decoder it has no way to show a cloze LM the token itself.
    return HIDES_SELF if side == "tgt" or _hides_the_token(args) else SEES_SELF


def _hides_the_token(args: Arguments) -> bool:
    """Return whether the top of a cloze LM in the encoder hides the token itself, as in the LM's training.

    The released code does so for ``bilm_mask_last_state="full"`` alone, which its flag (True or False) cannot say.
    From 9 to 18 December 2018 True did; a file does not tell when it was written.

    Raises:
        InputError: if it is none of these three values.
    """
    if args.get("bilm_mask_last_state") == "full":
        return True
    if args.switch("bilm_mask_last_state"):
        logger.warning(
            f"{args.origin} has bilm_mask_last_state=True, which hides nothing since 18 December 2018. If it was "
            f"trained by the code of the nine days before, convert it with {args.flag} bilm_mask_last_state=full."
        )
    return False
