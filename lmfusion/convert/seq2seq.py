"""Sequence-to-sequence models of the released format as ``transformer_lmfusion`` (SPEC section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from lmfusion.convert.folding import fold_scale
from lmfusion.convert.language_model import count_layers, refuse_unsupported
from lmfusion.convert.lm_side import LMSide
from lmfusion.convert.plan import Move, copy_of, move
from lmfusion.convert.released import Arguments
from lmfusion.errors import UserError
from lmfusion.fusion.config import ELMO, NONE, OWN

Config = dict[str, Any]
PARTS = {"src": "encoder", "tgt": "decoder"}


def stack_config(args: Arguments, weights: Mapping[str, Tensor]) -> Config:
    """Flags of encoder and decoder, ours by name, from the training command where known, else from the weights.

    Raises:
        UserError: if a flag is needed that is in neither, or there is no counterpart of one.
    """
    refuse_unsupported(args)
    args.require(*(f"{part}_attention_heads" for part in PARTS.values()))
    only_embedding = bool(args.get("embedding_only", False))
    config: Config = {
        "max_source_positions": int(args.get("max_source_positions", 1024)),
        "max_target_positions": int(args.get("max_target_positions", 1024)),
        "dropout": float(args.get("dropout", 0.1)),
        "attention_dropout": float(args.get("attention_dropout", 0.0)),
        "activation_dropout": float(args.get("relu_dropout", 0.0)),
    }
    for part in PARTS.values():
        config[f"{part}_embed_dim"] = args.get(f"{part}_embed_dim") or _size(weights, part, 1)
        config[f"{part}_ffn_embed_dim"] = args.get(f"{part}_ffn_embed_dim") or _size(weights, part, 0)
        config[f"{part}_layers"] = args.get(f"{part}_layers") or count_layers(weights, f"{part}.layers.")
        config[f"{part}_attention_heads"] = args.get(f"{part}_attention_heads")
        config[f"{part}_normalize_before"] = bool(args.option(f"{part}_normalize_before", False))
        config[f"{part}_learned_pos"] = positions(args, part) and bool(args.option(f"{part}_learned_pos", False))
    config["decoder_input_dim"] = config["decoder_output_dim"] = config["decoder_embed_dim"]
    if only_embedding:
        config.update(encoder_layers=0, encoder_normalize_before=False, encoder_learned_pos=False)
    return config


def positions(args: Arguments, part: str) -> bool:
    """Whether the encoder or the decoder has position embeddings of its own."""
    if part == "encoder" and args.get("embedding_only", False):
        return False
    return not args.option(f"no_{part[:3]}_token_positional_embeddings", False)


def position_values(args: Arguments, sides: Mapping[str, LMSide | None]) -> Config:
    """Our flags of positions, where they are not what they would be anyway."""
    values: Config = {}
    for side, part in PARTS.items():
        lm = sides[side]
        usual = not (side == "src" and lm is not None and lm.fusion == ELMO)
        if positions(args, part) != usual:
            values[f"{side}_positions"] = OWN if positions(args, part) else NONE
    return values


def _size(weights: Mapping[str, Tensor], part: str, dim: int) -> int:
    name = f"{part}.layers.0.fc1.weight"
    if name not in weights or weights[name].dim() != 2:
        raise UserError(f"{name} is missing among the weights, so the {part}'s size cannot be told from them.")
    return weights[name].size(dim)


class Embeddings:
    """Input and output embeddings of the sides without a language model: which are tied, and where they go.

    What ties them in the released format may come apart in ours, where a factor of their own or a projection has to be
    multiplied into one of them.

    Args:
        args: of the training command.
        sides: the language models.
    """

    def __init__(self, args: Arguments, sides: Mapping[str, LMSide | None]) -> None:
        self.plain = {side: lm is None for side, lm in sides.items()}
        self.share_all = bool(args.option("share_all_embeddings", False))
        self.share_decoder = self.share_all or bool(args.option("share_decoder_input_output_embed", False))
        self.scales: dict[str, float | None] = {
            "src": 1.0 if args.get("embedding_only", False) else args.get("encoder_embed_scale"),
            "tgt": args.get("decoder_embed_scale"),
        }
        self.source_name = f"encoder.{'embedder' if args.get('embedding_only', False) else 'embed_tokens'}.weight"
        # Tied weights that one place scales and another does not cannot stay tied.
        self.folds = {side: self.plain[side] and scale is not None for side, scale in self.scales.items()}

    def values(self) -> Config:
        """Our flags."""
        values: Config = {
            f"{side}_embed_scale": float(scale)
            for side, scale in self.scales.items()
            if scale is not None and not self.plain[side]
        }
        values["share_all_embeddings"] = self.share_all and not any(self.folds.values())
        values["share_decoder_input_output_embed"] = self.share_decoder and not self.folds["tgt"]
        return values

    def moves(self, sizes: Config, vocabulary: Mapping[str, int]) -> list[Move]:
        """Where they go."""
        moves = []
        target, output = "decoder.embed_tokens.weight", "decoder.output_projection.weight"
        source_shape = vocabulary["src"], sizes["encoder_embed_dim"]
        target_shape = vocabulary["tgt"], sizes["decoder_embed_dim"]

        def give_source(value: Tensor) -> dict[str, Tensor]:
            return {"encoder.embed_tokens.weight": self._folded("src", value)}

        def give_target(value: Tensor) -> dict[str, Tensor]:
            return {target: self._folded("tgt", value), **({output: value} if self.share_decoder else {})}

        if self.share_all:
            moves.append(
                Move(self.source_name, source_shape, lambda value: {**give_source(value), **give_target(value)})
            )
            moves.append(copy_of(target, self.source_name, *target_shape))
            return moves
        if self.plain["src"]:
            moves.append(Move(self.source_name, source_shape, give_source))
        if self.plain["tgt"]:
            moves.append(Move(target, target_shape, give_target))
        if not self.share_decoder:
            moves.append(move("decoder.embed_out", output, *target_shape))
        return moves

    def _folded(self, side: str, value: Tensor) -> Tensor:
        scale = self.scales[side]
        return fold_scale(value, scale) if self.folds[side] and scale is not None else value
