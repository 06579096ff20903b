"""Checkpoints of the paper's released code as ours: read, understood, carried over, loaded into our model, written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary
from torch import nn

from lmfusion.checkpoint.budget import building_from
from lmfusion.checkpoint.rewriting import write_checkpoint
from lmfusion.convert.arguments import ARCHITECTURES, SEQ2SEQ, Arguments
from lmfusion.convert.fairseq_config import checkpoint, training_config
from lmfusion.convert.folding import fold_projections
from lmfusion.convert.language_model import lm_config
from lmfusion.convert.lm_files import LMFile, LMFiles
from lmfusion.convert.mapping import apply_mapping, map_lm, names_without_weights, shapes_of
from lmfusion.convert.released import Released, check_size, read_released
from lmfusion.convert.seq2seq import convert_seq2seq
from lmfusion.errors import InputError
from lmfusion.fusion.config import SIDES
from lmfusion.lm.loading import build
from lmfusion.lm.transformer.base import TransformerLM
from lmfusion.text.dictionaries import read_dictionary


@dataclass(frozen=True)
class Inputs:
    """Hold what a user gives besides the checkpoint.

    Attributes:
        dictionary: dict.txt of a language model, or of both sides.
        dictionaries: by side (``"src"``, ``"tgt"``), where they differ.
        lm: files of the language models inside, for what the checkpoint does not know of them.
        lms: by side, where it is not clear which is which.
        args: flags of the training that the checkpoint does not know.
        lm_args: the same of the language models inside, by side.
        drop_meters: read past the released code's running averages.
    """

    dictionary: str | None = None
    dictionaries: Mapping[str, str] = field(default_factory=dict)
    lm: Sequence[str] = ()
    lms: Mapping[str, str] = field(default_factory=dict)
    args: Mapping[str, Any] = field(default_factory=dict)
    lm_args: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    drop_meters: bool = False


@dataclass(frozen=True)
class Converted:
    """Hold a converted model, in eval mode, and the checkpoint fairseq would have saved of it."""

    model: nn.Module
    checkpoint: dict[str, Any]

    def write(self, out: str | Path) -> None:
        """Write the checkpoint whole or not at all.

        Raises:
            InputError: if it cannot be written.
        """
        write_checkpoint(self.checkpoint, out)


def convert(path: str | Path, inputs: Inputs) -> Converted:
    """Convert a checkpoint of the released code; nothing is written.

    Args:
        path: of the checkpoint.
        inputs: everything else.

    Raises:
        InputError: if a file cannot be read, something needed is not known, or the weights are not those of the model
            that is described (all differences are listed by name).
    """
    released = read_released(path, drop_meters=inputs.drop_meters)
    args = released.args.updated(inputs.args)
    args.require("arch")
    arch = str(args.get("arch"))
    if arch not in ARCHITECTURES:
        raise InputError(
            f"{path} has the architecture {arch}, which is not known: lmfusion converts {', '.join(ARCHITECTURES)}. If "
            f"it is one of these under another name, say so by --arg arch=NAME."
        )
    kind = ARCHITECTURES[arch]
    if kind != SEQ2SEQ:
        converted = _language_model(released, args, kind, inputs)
        args.check_asked(inputs.args)
        return converted
    dictionaries = {side: _dictionary(inputs, side) for side in SIDES}
    model, values, task = convert_seq2seq(released, args, dictionaries, _lm_files(released, inputs))
    args.check_asked(inputs.args)
    config = training_config(SEQ2SEQ, values, "translation", task)
    return Converted(model, checkpoint(config, model.state_dict(), released.updates))


def _language_model(released: Released, args: Arguments, family: str, inputs: Inputs) -> Converted:
    useless = {
        "--src-dict/--tgt-dict": inputs.dictionaries,
        "--lm": inputs.lm,
        "--src-lm/--tgt-lm": inputs.lms,
        "--src-lm-arg/--tgt-lm-arg": any(inputs.lm_args.values()),
    }
    for name in (name for name, given in useless.items() if given):
        raise InputError(
            f"{name} would be ignored: {released.path} is a language model. Give its dictionary by --dict."
        )
    path, dictionary = _dictionary(inputs, "lm")
    prefix = "decoder."
    config = lm_config(args, released.weights, prefix, family, limit=1024)
    check_size(dictionary, path, released.weights, f"{prefix}embed_tokens.weight")
    weights, shared = fold_projections(released.weights, prefix, shared=config["share_decoder_input_output_embed"])
    config["share_decoder_input_output_embed"] = shared
    with building_from([released.path]):
        lm = build({"family": family, **config}, dictionary.symbols)
    assert isinstance(lm, TransformerLM)
    mappings = map_lm(config, shapes_of(lm), "", prefix)
    ignored = names_without_weights(prefix)
    converted = apply_mapping(mappings, weights, ignored=ignored, origin=str(released.path))
    lm.load_state_dict({**converted, "symbol_table.codes": lm.symbol_table.codes})
    targets = config.pop("targets", [])
    task = {
        "data": str(Path(path).resolve().parent),
        "sample_break_mode": args.get("sample_break_mode", "eos"),
        **{name: config[name] for name in ("tokens_per_sample", "max_target_positions")},
        **{f"{target}_target": target in targets for target in ("self", "future", "past")},
    }
    saved = {f"decoder.{name}": value for name, value in lm.state_dict().items()}
    values = training_config(family, config, "language_modeling", task)
    return Converted(lm.eval(), checkpoint(values, saved, released.updates))


def _dictionary(inputs: Inputs, side: str) -> tuple[str, Dictionary]:
    path = inputs.dictionaries.get(side) or inputs.dictionary
    if path is None:
        flag = "--dict" if side == "lm" else f"--{side}-dict (or --dict for both sides)"
        raise InputError(f"the released format has no dictionary inside: give the one it was trained with by {flag}.")
    return path, read_dictionary(path)


def _lm_files(released: Released, inputs: Inputs) -> LMFiles:
    return LMFiles(
        str(released.path),
        [LMFile.read(path, drop_meters=inputs.drop_meters) for path in inputs.lm],
        {side: LMFile.read(path, drop_meters=inputs.drop_meters) for side, path in inputs.lms.items()},
        inputs.lm_args,
    )
