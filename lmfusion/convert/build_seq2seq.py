"""One released sequence-to-sequence model, put together as ours."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fairseq.data import Dictionary
from torch import Tensor

from lmfusion.convert.arguments import Arguments
from lmfusion.convert.dictionaries import check_size
from lmfusion.convert.folding import Weights, fold_plain_shares, fold_projections
from lmfusion.convert.language_model import Config
from lmfusion.convert.lm_files import LMFiles
from lmfusion.convert.lm_side import LMSide, find_lm, lm_side
from lmfusion.convert.plan import Move, carry_out
from lmfusion.convert.seq2seq import PARTS, Embeddings, position_values, positions, stack_config
from lmfusion.convert.transformer_weights import has_final_norm, stack_ignored, stack_moves
from lmfusion.errors import InputError
from lmfusion.fusion.config import ELMO, FusionConfig
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.lm.freezing import state_fingerprint

Sides = dict[str, "LMSide | None"]
Dictionaries = Mapping[str, tuple[str, Dictionary]]


def build_seq2seq(
    weights: Weights, args: Arguments, dictionaries: Dictionaries, lm_files: LMFiles
) -> tuple[TransformerLMFusion, Config, Config]:
    """Convert.

    Args:
        weights: in the released format.
        args: of the training command.
        dictionaries: path and dictionary of each side.
        lm_files: what is known of the language models inside.

    Returns:
        the model, in eval mode; its flags; flags of fairseq's ``translation`` task.

    Raises:
        InputError: if something needed is not known or the weights are not those of the model described.
    """
    config = stack_config(args, weights)
    sides: Sides = {}
    for side in PARTS:
        found = find_lm(side, args, weights)
        sides[side] = lm_side(side, found, args, lm_files, weights, config) if found else None
    lm_files.check_used({side: lm is not None for side, lm in sides.items()})
    args, weights = _folded(args, weights, sides)
    embeddings = Embeddings(args, sides)
    _check_dictionaries(dictionaries, weights, sides, embeddings)
    moves = list(_moves(args, weights, config, sides, embeddings, dictionaries))
    ignored = [name for part in PARTS.values() for name in stack_ignored(part)]
    ignored += [name for lm in sides.values() if lm is not None for name in lm.ignored()]
    carried = carry_out(moves, weights, ignored=ignored, what=args.origin)
    values = {**config, **embeddings.values(), **position_values(args, sides)}
    for lm in (lm for lm in sides.values() if lm is not None):
        values.update(lm.values(args, weights))
        values[f"{lm.side}_lm_config"] = lm.description(dictionaries[lm.side][1], fingerprint="")
    model = _loaded(
        values, dictionaries, carried, {part: has_final_norm(part, config, weights) for part in PARTS.values()}
    )
    _fingerprint(model, values, sides, dictionaries)
    return model, values, _task(args, config, dictionaries)


def _folded(args: Arguments, weights: Weights, sides: Sides) -> tuple[Arguments, Weights]:
    for lm in (lm for lm in sides.values() if lm is not None):
        weights, _ = fold_projections(weights, lm.inner, shared=False)
        # The flag came and went with versions of the released code; without it there was a softmax.
        if lm.fusion == ELMO and not args.switch("elmo_softmax", True):
            weights = fold_plain_shares(weights, lm.base)
    tied = args.switch("share_decoder_input_output_embed") or args.switch("share_all_embeddings")
    folded, still_tied = fold_projections(weights, "decoder.", shared=tied)
    if folded is not weights:
        args = args.updated({"share_decoder_input_output_embed": still_tied, "share_all_embeddings": False})
    return args, folded


def _check_dictionaries(dictionaries: Dictionaries, weights: Weights, sides: Sides, embeddings: Embeddings) -> None:
    plain = {"src": embeddings.source_name, "tgt": "decoder.embed_tokens.weight"}
    for side, (path, dictionary) in dictionaries.items():
        lm = sides[side]
        check_size(dictionary, path, weights, plain[side] if lm is None else f"{lm.inner}embed_tokens.weight")
    (src_path, source), (tgt_path, target) = dictionaries["src"], dictionaries["tgt"]
    if embeddings.share_all and source.symbols != target.symbols:
        raise InputError(
            f"encoder and decoder share one embedding (share_all_embeddings), but {src_path} and {tgt_path} differ: "
            f"give the joint dictionary by --dict."
        )


def _moves(
    args: Arguments,
    weights: Weights,
    config: Config,
    sides: Sides,
    embeddings: Embeddings,
    dictionaries: Dictionaries,
) -> Iterator[Move]:
    sizes = {side: len(dictionary) for side, (_, dictionary) in dictionaries.items()}
    yield from embeddings.moves(config, sizes)
    for side, part in PARTS.items():
        lm = sides[side]
        if lm is not None:
            yield from lm.moves(args, weights, sizes[side])
        yield from stack_moves(part, config, weights, positions=positions(args, part))


def _loaded(
    values: Config, dictionaries: Dictionaries, carried: Mapping[str, Tensor], final_norms: Mapping[str, bool]
) -> TransformerLMFusion:
    """Our model with these weights, in eval mode."""
    task = SimpleNamespace(source_dictionary=dictionaries["src"][1], target_dictionary=dictionaries["tgt"][1])
    model = TransformerLMFusion.build_model(model_flags(values), task)
    state = model.state_dict()
    state.update(carried)
    for part, has_norm in final_norms.items():
        if not has_norm:  # fairseq's sign of a stack that is not normalized at its end, pre-norm or not
            state[f"{part}.version"].fill_(1)
            for name in [name for name in state if name.startswith(f"{part}.layer_norm.")]:
                del state[name]
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)} & set(state)
    assert parameters == set(carried), sorted(parameters ^ set(carried))
    model.load_state_dict(state)
    model.eval()
    return model


def model_flags(values: Mapping[str, Any]) -> Namespace:
    """All flags of our model: these, and defaults."""
    specs = {name: spec for name, spec in FusionConfig.__dataclass_fields__.items() if not name.startswith("_")}
    return Namespace(**{**{name: spec.default for name, spec in specs.items()}, **values})


def _fingerprint(model: TransformerLMFusion, values: Config, sides: Sides, dictionaries: Dictionaries) -> None:
    """Say in the description of each language model which weights it has."""
    for side, lm in sides.items():
        if lm is not None:
            inside = getattr(model, PARTS[side]).embed_tokens.lm
            values[f"{side}_lm_config"] = lm.description(dictionaries[side][1], state_fingerprint(inside))


def _task(args: Arguments, config: Config, dictionaries: Dictionaries) -> Config:
    return {
        "data": str(Path(dictionaries["src"][0]).resolve().parent),
        "source_lang": args.get("source_lang"),
        "target_lang": args.get("target_lang"),
        "left_pad_source": str(args.get("left_pad_source", True)) == "True",  # written as a word
        "left_pad_target": str(args.get("left_pad_target", False)) == "True",
        "max_source_positions": config["max_source_positions"],
        "max_target_positions": config["max_target_positions"],
    }
