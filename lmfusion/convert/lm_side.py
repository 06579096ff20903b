"""The side of a released sequence-to-sequence model that stands on a language model (``elmo:`` or ``bilm:``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairseq.data import Dictionary
from torch import Tensor

from lmfusion.convert.arguments import Arguments
from lmfusion.convert.language_model import CLOZE, family_of, lm_config
from lmfusion.convert.lm_files import LMFiles
from lmfusion.convert.mapping import Row, Shape, WeightMapping, map_lm, map_names, names_without_weights
from lmfusion.convert.output_spec import mixed_states, top_state
from lmfusion.convert.variant import LMOutputSpec
from lmfusion.errors import InputError
from lmfusion.fusion.config import ELMO, FINETUNE, SIDE_NAMES, STACKS
from lmfusion.lm.old_checkpoints import modern_side
from lmfusion.lm.symbols import dictionary_hash

Config = dict[str, Any]
# The dropouts of a language model that is fine-tuned: ours, and the released code's.
_DROPOUTS = {
    "dropout": "bilm_model_dropout",
    "attention_dropout": "bilm_attention_dropout",
    "activation_dropout": "bilm_relu_dropout",
}


@dataclass(frozen=True)
class LMSide:
    """Hold what is known of a side's language model in the released format.

    Attributes:
        side: ``"src"`` or ``"tgt"``.
        base: prefix of the embedding's weights, e.g. ``encoder.embed_tokens.``
        inner: prefix of the language model's.
        fusion: ``"elmo"`` or ``"finetune"``.
        family: of the language model.
        config: our flags of it.
        output_spec: which of its states are used.
    """

    side: str
    base: str
    inner: str
    fusion: str
    family: str
    config: Config
    output_spec: LMOutputSpec

    def mappings(self, weights: Mapping[str, Tensor], shapes: Mapping[str, Shape]) -> list[WeightMapping]:
        """Return what becomes of its weights.

        Args:
            weights: in the released format.
            shapes: of our whole model's weights, by name.
        """
        ours = f"{STACKS[self.side]}.embed_tokens.representation."
        has_short_name = self.fusion != ELMO and f"{self.base}projection.weight" not in weights
        table = (
            Row(r"mix\.(weights|gamma|layer_norm\.\w+)", r"\1"),
            Row(r"projection\.weight", "proj.weight" if has_short_name else "projection.weight"),
        )
        return [
            *map_lm(self.config, shapes, f"{ours}lm.", self.inner),
            *map_names(table, shapes, ours, self.base),
        ]

    def ignored(self) -> list[str]:
        """Return names that are no weights, or of no use inside: a softmax."""
        return [*names_without_weights(self.inner), f"{self.inner}embed_out"]

    def values(self, args: Arguments, weights: Mapping[str, Tensor]) -> Config:
        """Return flags of our model for this side, without the description of the language model."""
        if self.fusion != ELMO:
            return {f"{self.side}_fusion": self.fusion}
        return {
            f"{self.side}_fusion": self.fusion,
            f"{self.side}_elmo_affine": args.switch("elmo_affine", f"{self.base}layer_norm.weight" in weights),
            f"{self.side}_elmo_dropout": args.dropout("elmo_dropout", 0.0),
        }

    def description(self, dictionary: Dictionary, fingerprint: str) -> str:
        """Return what our checkpoints keep of the language model, as JSON."""
        described = {
            "lm": {"family": self.family, **self.config},
            "dictionary_hash": dictionary_hash(dictionary.symbols),
            "fingerprint": fingerprint,
            "reading": self.output_spec.to_dict(),
        }
        return json.dumps(modern_side(described))


def lm_side(
    side: str, args: Arguments, lm_files: LMFiles, weights: Mapping[str, Tensor], config: Config
) -> LMSide | None:
    """Return a side's language model with our flags of it; None where the side stands on none.

    Args:
        side: ``"src"`` or ``"tgt"``.
        args: of the sequence-to-sequence model.
        lm_files: what is known of the language models.
        weights: of the checkpoint.
        config: our flags of the encoder and the decoder.

    Raises:
        InputError: if something needed is not known, or it is none that the released code can use there.
    """
    only_embedded = side == "src" and args.switch("embedding_only")
    base = f"{STACKS[side]}.{'embedder' if only_embedded else 'embed_tokens'}."
    path = str(args.get(f"{STACKS[side]}_embed_path", ""))
    inner = _find_lm(side, base, path, args, weights)
    if inner is None:
        return None
    family = _family(side, inner, args, weights)
    is_mixed = f"{base}weights" in weights and not path.startswith("bilm:")
    fusion = ELMO if is_mixed else FINETUNE
    limit = config[f"max_{SIDE_NAMES[side]}_positions"]
    inside = lm_config(lm_files.arguments(side, family, weights, inner), weights, inner, family, limit=limit)
    if not inside["decoder_learned_pos"]:  # sinusoids have no end: the released code minds the outer limit alone
        inside["max_target_positions"] = max(limit, inside["max_target_positions"])
    if fusion == ELMO:
        args.require_unless_complete("elmo_softmax")
        output_spec = LMOutputSpec(states=mixed_states(inside, weights, base, config[f"{STACKS[side]}_embed_dim"]))
    else:
        if side == "src":
            args.require_unless_complete("bilm_add_bos")
        inside.update({ours: args.dropout(theirs, inside[ours]) for ours, theirs in _DROPOUTS.items()})
        leading_eos = side == "tgt" or args.switch("bilm_add_bos")
        output_spec = LMOutputSpec(leading_eos=leading_eos, top=top_state(side, inside, args))
    return LMSide(side, base, inner, fusion, family, inside, output_spec)


def _find_lm(side: str, base: str, path: str, args: Arguments, weights: Mapping[str, Tensor]) -> str | None:
    """Return the prefix of the weights of a side's language model, if there is one below ``base``.

    Raises:
        InputError: if the flag (``path`` is its value) says so and there is none among the weights.
    """
    inside = {name[len(base) :].split(".")[0] for name in weights if name.startswith(base) and ".decoder." in name}
    if len(inside) > 1:
        raise InputError(f"{args.origin} has several language models below {base}: {', '.join(sorted(inside))}.")
    missing = None
    if not inside and path.startswith(("elmo:", "bilm:")):
        missing = f"has no language model's weights ({base}….decoder.…) in it"
    elif inside and path.startswith("elmo:") and f"{base}weights" not in weights:
        missing = f"{base}weights is missing"
    if missing is not None:
        raise InputError(f"{args.origin} was trained with --{STACKS[side]}-embed-path {path}, but {missing}.")
    return f"{base}{inside.pop()}.decoder." if inside else None


def _family(side: str, inner: str, args: Arguments, weights: Mapping[str, Tensor]) -> str:
    family = family_of(weights, inner)
    if family is None:
        raise InputError(f"{args.origin}: there are no blocks of a language model below {inner}.")
    if side == "src" and family != CLOZE:
        raise InputError(
            f"{args.origin} has a causal language model in its encoder, which neither the released code nor lmfusion "
            f"can use there."
        )
    return family
