"""A sequence-to-sequence model of the released format as ``transformer_lmfusion`` (SPEC section 2)."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fairseq.data import Dictionary
from torch import Tensor

from lmfusion.checkpoint.budget import building_from
from lmfusion.convert.arguments import Arguments
from lmfusion.convert.embeddings import TARGET, Embeddings
from lmfusion.convert.folding import Weights, fold_plain_shares, fold_projections
from lmfusion.convert.language_model import check_heads, refuse_unsupported
from lmfusion.convert.lm_files import LMFiles
from lmfusion.convert.lm_side import LMSide, lm_side
from lmfusion.convert.mapping import apply_mapping, map_names, names_without_weights, shapes_of, stack_table
from lmfusion.convert.released import Released, check_size, count_layers, rows
from lmfusion.errors import InputError
from lmfusion.fusion.config import ELMO, NONE, OWN, STACKS
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.lm.freezing import state_fingerprint

Config = dict[str, Any]
Dictionaries = Mapping[str, tuple[str, Dictionary]]


def convert_seq2seq(
    released: Released, args: Arguments, dictionaries: Dictionaries, lm_files: LMFiles
) -> tuple[TransformerLMFusion, Config, Config]:
    """Convert a sequence-to-sequence model.

    Args:
        released: the checkpoint.
        args: of its training command, with what the user said.
        dictionaries: path and dictionary of each side.
        lm_files: what is known of the language models inside.

    Returns:
        the model, in eval mode; its flags; flags of fairseq's ``translation`` task.

    Raises:
        InputError: if something needed is not known or the weights are not those of the model described.
    """
    weights = released.weights
    config = stack_config(args, weights)
    sides = {side: lm_side(side, args, lm_files, weights, config) for side in STACKS}
    lms = {side: lm for side, lm in sides.items() if lm is not None}
    lm_files.check_used(lms)
    args, weights = _fold(args, weights, lms)
    embeddings = Embeddings.of(args, lms)
    _check_dictionaries(dictionaries, weights, lms, embeddings)
    values = {**config, **embeddings.values(), **_position_values(args, lms)}
    for side, lm in lms.items():
        values.update(lm.values(args, weights))
        values[f"{side}_lm_config"] = lm.description(dictionaries[side][1], fingerprint="")
    task = SimpleNamespace(source_dictionary=dictionaries["src"][1], target_dictionary=dictionaries["tgt"][1])
    with building_from([released.path]):
        model = TransformerLMFusion.build_model(Namespace(**values), task)
    _load(model, weights, config, lms, embeddings, args.origin)
    for side, lm in lms.items():
        fingerprint = state_fingerprint(getattr(model, STACKS[side]).embed_tokens.lm)
        values[f"{side}_lm_config"] = lm.description(dictionaries[side][1], fingerprint)
    return model, values, _task_values(args, config, dictionaries)


def stack_config(args: Arguments, weights: Mapping[str, Tensor]) -> Config:
    """Return our flags of encoder and decoder, from the training command where known, else from the weights.

    Raises:
        InputError: if a flag is needed that is in neither, or there is no counterpart of one.
    """
    refuse_unsupported(args)
    unseen = ("{0}_attention_heads", "{0}_normalize_before", "{0}_learned_pos", "no_{0:.3}_token_positional_embeddings")
    args.require_unless_complete(*(name.format(part) for part in STACKS.values() for name in unseen))
    config: Config = {
        "max_source_positions": args.integer("max_source_positions", 1024),
        "max_target_positions": args.integer("max_target_positions", 1024),
        "dropout": args.dropout("dropout", 0.1),
        "attention_dropout": args.dropout("attention_dropout", 0.0),
        "activation_dropout": args.dropout("relu_dropout", 0.0),
    }
    for part in STACKS.values():
        size, inner = (rows(weights, f"{part}.layers.0.{name}.bias") for name in ("fc2", "fc1"))
        layers = count_layers(weights, f"{part}.layers.")
        config[f"{part}_embed_dim"] = args.integer(f"{part}_embed_dim", size)
        config[f"{part}_ffn_embed_dim"] = args.integer(f"{part}_ffn_embed_dim", inner)
        config[f"{part}_layers"] = args.integer(f"{part}_layers", layers, least=0, most=len(weights) + 1)
        config[f"{part}_attention_heads"] = args.integer(f"{part}_attention_heads")
        config[f"{part}_normalize_before"] = args.switch(f"{part}_normalize_before")
        config[f"{part}_learned_pos"] = _has_positions(args, part) and args.switch(f"{part}_learned_pos")
        check_heads(config, part, args)
    config["decoder_input_dim"] = config["decoder_output_dim"] = config["decoder_embed_dim"]
    if args.switch("embedding_only"):
        config.update(encoder_layers=0, encoder_normalize_before=False, encoder_learned_pos=False)
    return config


def _has_positions(args: Arguments, part: str) -> bool:
    """Return whether the encoder or the decoder has position embeddings of its own."""
    if part == "encoder" and args.switch("embedding_only"):
        return False
    return not args.switch(f"no_{part[:3]}_token_positional_embeddings")


def _position_values(args: Arguments, lms: Mapping[str, LMSide]) -> Config:
    """Return our flags of positions, where they are not what they would be anyway."""
    values: Config = {}
    for side, part in STACKS.items():
        usual = not (side == "src" and side in lms and lms[side].fusion == ELMO)
        if (has_positions := _has_positions(args, part)) != usual:
            values[f"{side}_positions"] = OWN if has_positions else NONE
    return values


def _fold(args: Arguments, weights: Weights, lms: Mapping[str, LMSide]) -> tuple[Arguments, Weights]:
    """Multiply what has no counterpart of ours into weights that have one; return flags that fit them, and them."""
    for lm in lms.values():
        weights, _ = fold_projections(weights, lm.inner, shared=False)
        # The flag came and went with versions of the released code; without it there was a softmax.
        if lm.fusion == ELMO and not args.switch("elmo_softmax", True):
            weights = fold_plain_shares(weights, lm.base)
    tied = args.switch("share_decoder_input_output_embed") or args.switch("share_all_embeddings")
    folded, still_tied = fold_projections(weights, "decoder.", shared=tied)
    if folded is not weights:
        args = args.updated({"share_decoder_input_output_embed": still_tied, "share_all_embeddings": False})
    return args, folded


def _check_dictionaries(
    dictionaries: Dictionaries, weights: Weights, lms: Mapping[str, LMSide], embeddings: Embeddings
) -> None:
    plain = {"src": embeddings.source_name, "tgt": TARGET}
    for side, (path, dictionary) in dictionaries.items():
        name = f"{lms[side].inner}embed_tokens.weight" if side in lms else plain[side]
        check_size(dictionary, path, weights, name)
    (src_path, source), (tgt_path, target) = dictionaries["src"], dictionaries["tgt"]
    if embeddings.share_all and source.symbols != target.symbols:
        raise InputError(
            f"encoder and decoder share one embedding (share_all_embeddings), but {src_path} and {tgt_path} differ: "
            f"give the joint dictionary by --dict."
        )


def _load(
    model: TransformerLMFusion,
    weights: Weights,
    config: Config,
    lms: Mapping[str, LMSide],
    embeddings: Embeddings,
    origin: str,
) -> None:
    """Give our model the weights and put it into eval mode."""
    unnormalized = [part for part in STACKS.values() if not _has_final_norm(part, config, weights)]
    absent = tuple(f"{part}.layer_norm." for part in unnormalized)
    shapes = {name: shape for name, shape in shapes_of(model).items() if not name.startswith(absent)}
    mappings = [*embeddings.mappings(shapes), *(found for lm in lms.values() for found in lm.mappings(weights, shapes))]
    mappings += [found for part in STACKS.values() for found in map_names(stack_table(part, weights), shapes)]
    ignored = [name for part in STACKS.values() for name in names_without_weights(f"{part}.")]
    ignored += [name for lm in lms.values() for name in lm.ignored()]
    converted = embeddings.fold(apply_mapping(mappings, weights, ignored=ignored, origin=origin))
    assert set(converted) == set(shapes), sorted(set(converted) ^ set(shapes))
    state = {name: value for name, value in model.state_dict().items() if not name.startswith(absent)}
    for part in unnormalized:  # fairseq's sign of a stack that is not normalized at its end, pre-norm or not
        state[f"{part}.version"].fill_(1)
    model.load_state_dict({**state, **converted})
    model.eval()


def _has_final_norm(part: str, config: Config, weights: Mapping[str, Tensor]) -> bool:
    """Return whether a layer norm follows the last block: with pre-norm, but not in the first version of fairseq."""
    version = weights.get(f"{part}.version")
    if version is not None and version.numel():
        is_first = float(version.flatten()[0]) < 2
    else:
        is_first = f"{part}.layer_norm.weight" not in weights
    return bool(config[f"{part}_normalize_before"]) and not is_first


def _task_values(args: Arguments, config: Config, dictionaries: Dictionaries) -> Config:
    return {
        "data": str(Path(dictionaries["src"][0]).resolve().parent),
        "source_lang": args.text("source_lang"),
        "target_lang": args.text("target_lang"),
        "left_pad_source": str(args.get("left_pad_source", True)) == "True",  # written as a word
        "left_pad_target": str(args.get("left_pad_target", False)) == "True",
        "max_source_positions": config["max_source_positions"],
        "max_target_positions": config["max_target_positions"],
    }
