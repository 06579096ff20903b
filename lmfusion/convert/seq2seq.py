"""Sequence-to-sequence models of the released format as ``transformer_lmfusion`` (SPEC section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from lmfusion.convert.arguments import Arguments
from lmfusion.convert.folding import fold_scale
from lmfusion.convert.language_model import check_heads, count_layers, refuse_unsupported, rows
from lmfusion.convert.lm_side import LMSide
from lmfusion.convert.plan import Move, copy_of, move
from lmfusion.fusion.config import ELMO, NONE, OWN

Config = dict[str, Any]
PARTS = {"src": "encoder", "tgt": "decoder"}
# Flags that the weights do not tell, where nothing is known of the training command.
UNSEEN = {
    part: (
        *(f"{part}_attention_heads", f"{part}_normalize_before", f"{part}_learned_pos"),
        f"no_{part[:3]}_token_positional_embeddings",
    )
    for part in PARTS.values()
}


def stack_config(args: Arguments, weights: Mapping[str, Tensor]) -> Config:
    """Flags of encoder and decoder, ours by name, from the training command where known, else from the weights.

    Raises:
        InputError: if a flag is needed that is in neither, or there is no counterpart of one.
    """
    refuse_unsupported(args)
    args.require_unless_complete(*(name for names in UNSEEN.values() for name in names))
    config: Config = {
        "max_source_positions": args.integer("max_source_positions", 1024),
        "max_target_positions": args.integer("max_target_positions", 1024),
        "dropout": args.number("dropout", 0.1),
        "attention_dropout": args.number("attention_dropout", 0.0),
        "activation_dropout": args.number("relu_dropout", 0.0),
    }
    for part in PARTS.values():
        block = f"{part}.layers.0."
        size = rows(weights, f"{block}fc2.bias")
        config[f"{part}_embed_dim"] = args.integer(f"{part}_embed_dim", size)
        config[f"{part}_ffn_embed_dim"] = args.integer(f"{part}_ffn_embed_dim", rows(weights, f"{block}fc1.bias"))
        layers = count_layers(weights, f"{part}.layers.")
        config[f"{part}_layers"] = args.integer(f"{part}_layers", layers, least=0, most=len(weights) + 1)
        config[f"{part}_attention_heads"] = args.integer(f"{part}_attention_heads")
        config[f"{part}_normalize_before"] = args.switch(f"{part}_normalize_before")
        config[f"{part}_learned_pos"] = positions(args, part) and args.switch(f"{part}_learned_pos")
        check_heads(config, part, args)
    config["decoder_input_dim"] = config["decoder_output_dim"] = config["decoder_embed_dim"]
    if args.switch("embedding_only"):
        config.update(encoder_layers=0, encoder_normalize_before=False, encoder_learned_pos=False)
    return config


def positions(args: Arguments, part: str) -> bool:
    """Whether the encoder or the decoder has position embeddings of its own."""
    if part == "encoder" and args.switch("embedding_only"):
        return False
    return not args.switch(f"no_{part[:3]}_token_positional_embeddings")


def position_values(args: Arguments, sides: Mapping[str, LMSide | None]) -> Config:
    """Our flags of positions, where they are not what they would be anyway."""
    values: Config = {}
    for side, part in PARTS.items():
        lm = sides[side]
        usual = not (side == "src" and lm is not None and lm.fusion == ELMO)
        if positions(args, part) != usual:
            values[f"{side}_positions"] = OWN if positions(args, part) else NONE
    return values


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
        self.share_all = args.switch("share_all_embeddings")
        self.share_decoder = self.share_all or args.switch("share_decoder_input_output_embed")
        alone = args.switch("embedding_only")
        self.scales: dict[str, float | None] = {
            "src": 1.0 if alone else _scale(args, "encoder"),
            "tgt": _scale(args, "decoder"),
        }
        self.source_name = f"encoder.{'embedder' if alone else 'embed_tokens'}.weight"
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


def _scale(args: Arguments, part: str) -> float | None:
    """Factor on the embeddings; None where it is sqrt(C), as always."""
    name = f"{part}_embed_scale"
    if name not in args.values:  # None, where it is said, is the default
        args.require_unless_complete(name)
    return None if args.get(name) is None else args.number(name, 0.0)
