"""Build the model of a planned training as fairseq-train would, on PyTorch's meta device or without random numbers."""

from __future__ import annotations

import argparse
import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq import options, tasks
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_MODEL_REGISTRY, BaseFairseqModel, FairseqEncoderDecoderModel, FairseqLanguageModel

from lmfusion.errors import InputError
from lmfusion.lm.interface import PretrainedLM
from lmfusion.lm.loading import describe, load_lm
from lmfusion.lm.transformer.base import TrainableLM
from lmfusion.planning.counting import Uninitialized
from lmfusion.planning.text import SOURCE, TARGET, Text
from lmfusion.planning.words import flag_value, languages_of, refuse

_SIDES = (SOURCE, TARGET)
_PLANNED = (FairseqLanguageModel, FairseqEncoderDecoderModel)
_TARGETS = ("self", "future", "past")
_LM_FLAG = {side: f"--{side}-lm" for side in _SIDES}


@dataclass(frozen=True)
class Request:
    """The flags of ``fairseq-train``, as it would read them.

    Attributes:
        cfg: fairseq's configuration.
        arch: name of the architecture.
        sequence_to_sequence: False for a language model.
    """

    cfg: Any
    arch: str
    sequence_to_sequence: bool

    @property
    def task(self) -> Any:
        """Return the task, which reads the dictionaries."""
        with _quiet():
            return tasks.setup_task(self.cfg.task)

    def build(self, *, meta: bool) -> BaseFairseqModel:
        """Build the model.

        Args:
            meta: without any memory, for counting parameters; else with weights that are never filled.
        """
        task = self.task
        with _quiet(), torch.device("meta") if meta else Uninitialized():
            model: BaseFairseqModel = task.build_model(self.cfg.model)
            if not meta and any(getattr(self.cfg.model, f"{side}_lm_config", None) for side in _SIDES):
                model.load_state_dict(model.state_dict())  # one built from a description waits for its weights
        return model


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out what fairseq and lmfusion log of dictionaries and language models, and hydra's advice to fairseq."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def architecture(words: Sequence[str]) -> type[Any]:
    """Return the model class that ``--arch`` names among flags of fairseq-train.

    Raises:
        InputError: if there is none, or one that cannot be planned.
    """
    name = flag_value(words, "--arch", "-a")
    if name is None:
        raise InputError("no architecture: give the flags of fairseq-train after --, --arch among them.")
    if name not in ARCH_MODEL_REGISTRY:
        raise InputError(f"--arch {name}: there is no such architecture; fairseq-train --help lists them.")
    kind: type[Any] = ARCH_MODEL_REGISTRY[name]
    if not issubclass(kind, _PLANNED):
        raise InputError(f"--arch {name} cannot be planned: it is neither a language model nor an encoder-decoder.")
    return kind


def file_symbols(words: Sequence[str]) -> dict[str, list[str]]:
    """Return the symbols of the language models that flags give as files, by side."""
    found = {side: flag_value(words, flag) for side, flag in _LM_FLAG.items()}
    return {side: load_lm(path).symbols for side, path in found.items() if path and not _is_architecture(path)}


def _is_architecture(lm: str) -> bool:
    """Return True if a language model is given as an architecture; a file of that name comes first."""
    return lm in ARCH_MODEL_REGISTRY and not Path(lm).exists()


def read_flags(words: Sequence[str], text: Text, gpus: int) -> Request:
    """Read flags as fairseq-train does, where ``--src-lm`` and ``--tgt-lm`` may name architectures, too.

    Args:
        words: its flags, without the data.
        text: where the dictionaries are.
        gpus: number of processes.

    Raises:
        InputError: if flags are unknown, contradict each other, or belong to a task that cannot be planned.
    """
    kind = architecture(words)
    pairs = issubclass(kind, FairseqEncoderDecoderModel)
    if pairs and text.languages is None:
        raise InputError(f"{text.folder} holds text of one language, and this architecture translates: give pairs.")
    if not pairs and text.languages not in (None, _SIDES):
        raise InputError(
            f"{text.folder} holds sentence pairs, and a language model reads one language: give text of one."
        )
    given = ["--optimizer", "adam", "--distributed-world-size", str(gpus)]
    source, target = text.languages or _SIDES
    languages = ["-s", source, "-t", target] if pairs else []
    given += ["--task", "translation", *languages] if pairs else ["--task", "language_modeling"]
    # Texts that are made up have no other languages; of one alone fairseq-train, too, takes both from the data.
    fixed = languages if text.languages == _SIDES or languages_of(words) is None else []
    if not pairs and not any(f"--{name}-target" in words for name in _TARGETS):
        given += _target_flags(kind)
    with _quiet():
        parser = options.get_training_parser()
        parser.error = refuse
        try:
            args = options.parse_args_and_arch(parser, [text.folder, *given, *words, *fixed])
        except SystemExit as error:  # a second parser inside fairseq, which has said why
            raise InputError("fairseq-train does not take these flags; what it said is above.") from error
        for side in _SIDES:
            _describe_lm(args, side, text)
        cfg = convert_namespace_to_omegaconf(args)
    return Request(cfg, args.arch, pairs)


def _describe_lm(args: argparse.Namespace, side: str, text: Text) -> None:
    """Put the description of a side's language model in the place of its weights."""
    name = getattr(args, f"{side}_lm", None)
    if not name:
        return
    language = args.source_lang if side == SOURCE else args.target_lang
    dictionary = tasks.get_task("translation").load_dictionary(f"{text.folder.split(':')[0]}/dict.{language}.txt")
    lm = _untrained(_LM_FLAG[side], name, dictionary) if _is_architecture(name) else load_lm(name)
    # Of a language model with other symbols than its side's dictionary all of its own are kept.
    described = describe(lm, dictionary.symbols)
    description = {"lm": described, "fingerprint": "not trained yet", "title": lm.title, "states": lm.state_names}
    setattr(args, f"{side}_lm_config", json.dumps(description))


def _target_flags(kind: type[Any]) -> list[str]:
    """Return the flags without which a language model cannot be pretrained; fairseq's own need none."""
    return list(kind.target_flags) if issubclass(kind, TrainableLM) else []


def _untrained(flag: str, arch: str, dictionary: Dictionary) -> PretrainedLM:
    """Build a language model of an architecture on the meta device, on the dictionary of a side."""
    kind = ARCH_MODEL_REGISTRY[arch]
    lm: Any = None
    if issubclass(kind, FairseqLanguageModel):
        parser = options.get_training_parser()
        given = ["--task", "language_modeling", "--optimizer", "adam", *_target_flags(kind), "--arch", arch]
        cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, ["", *given]))
        targets = [name for name in _TARGETS if cfg.task[f"{name}_target"]] or ["future"]
        task = tasks.get_task("language_modeling")(cfg.task, dictionary, dictionary, targets=targets)
        with torch.device("meta"):
            lm = task.build_model(cfg.model).decoder
    if not isinstance(lm, PretrainedLM):
        raise InputError(f"{flag} {arch} is no language model that goes into others: bi_transformer_lm_big is one.")
    return lm
