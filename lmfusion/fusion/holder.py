"""What every model with language models inside does when it is built, starts to train and loads its weights."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from fairseq.checkpoint_utils import prune_state_dict
from fairseq.tasks.language_modeling import LanguageModelingTask
from omegaconf import OmegaConf, open_dict
from torch import nn

from lmfusion.checkpoint.reading import read_checkpoint, stored_model_config
from lmfusion.checkpoint.starting_point import starts_from
from lmfusion.errors import InputError
from lmfusion.fusion.config import SIDES
from lmfusion.fusion.denoiser import fit_denoiser
from lmfusion.fusion.interface import Fusion
from lmfusion.fusion.second_stage import SecondStage, find_second_stage
from lmfusion.lm.description import check_described, read_side
from lmfusion.lm.transformer.base import check_beam

logger = logging.getLogger(__name__)

PREFIX = "prefix"
"""In the place of a side in the names of flags: both sides are one language model, ``--prefix-lm``."""
_PLACES = (*SIDES, PREFIX)


class HoldsLMs(nn.Module):
    """The part of a fairseq encoder-decoder model that takes care of the language models inside.

    A checkpoint is complete in itself: it holds the LMs' weights and their configuration, so that their own files are
    needed only when training starts.
    """

    encoder: Any
    decoder: Any
    # True while an LM inside was built from a checkpoint's config and has no weights yet.
    needs_weights = False
    # Until its weights are loaded, of a model that starts from one without a language model.
    second_stage: SecondStage | None = None

    def fusions(self) -> Iterator[tuple[Fusion, nn.Module]]:
        """Yield the integration of each side that has one, with the side's stack."""
        for stack in (self.encoder, self.decoder):
            if getattr(stack, "fusion", None) is not None:
                yield stack.fusion, stack

    def begin(self, cfg: Any, built: Any, described: bool) -> None:
        """Prepare for training from pretrained weights, and keep the LMs' descriptions for checkpoints.

        Args:
            cfg: the model's configuration as fairseq gives it.
            built: the configuration from which the sides were built; the LMs' descriptions are in it.
            described: whether the LMs were built from descriptions, and get their weights from a checkpoint.

        Raises:
            InputError: if training cannot begin so.
        """
        self.needs_weights = described
        if not described:
            for fusion, stack in self.fusions():
                fusion.begin(getattr(cfg, "_get_parent", lambda: None)())
                fusion.load_into(stack)
        check_same_lms(cfg, built, [side for side in SIDES if not getattr(cfg, f"{side}_lm_config")])
        self.second_stage = find_second_stage(cfg)
        for side in SIDES:
            remember(cfg, f"{side}_lm_config", getattr(built, f"{side}_lm_config"))

    def check_weights(self) -> None:
        """Refuse to compute with a language model that never got its weights.

        Raises:
            InputError: if there is one.
        """
        if self.needs_weights:
            raise InputError(
                "the language model inside this model has no weights: its description "
                "(--src-lm-config/--tgt-lm-config) belongs to checkpoints. To train, give --src-lm/--tgt-lm instead."
            )

    def prepare_for_inference_(self, cfg: Any) -> None:
        """Prepare for decoding, as fairseq does.

        Raises:
            InputError: if --beam is below 1.
        """
        check_beam(cfg.generation.beam)
        super().prepare_for_inference_(cfg)  # type: ignore[misc]

    def load_state_dict(self, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        """Load weights as fairseq does, and note whether the LMs inside have got theirs.

        Those of a denoiser fit as well, and those of a model without a language model where training starts from one.
        """
        weights = fit_denoiser(state_dict, self)
        if self.second_stage is not None:
            stage, self.second_stage = self.second_stage, None
            weights = stage.complete(weights, self)
        result = super().load_state_dict(_pruned(weights, kwargs.get("model_cfg")), *args, **kwargs)
        missing = result.missing_keys if result is not None else []
        self.needs_weights = self.needs_weights and any(".representation.lm." in name for name in missing)
        return result


def _pruned(weights: Mapping[str, Any], cfg: Any) -> Mapping[str, Any]:
    """Prune a stack's layers by --encoder- or --decoder-layers-to-keep, if it is given.

    Layers of a language model stay. fairseq would prune them, too, and all layers of the stack that is not named.
    """
    stacks = tuple(f"{stack}." for stack in ("encoder", "decoder") if getattr(cfg, f"{stack}_layers_to_keep", None))
    if not stacks:
        return weights
    theirs = {name for name in weights if name.startswith(stacks) and ".representation.lm." not in name}
    others = {name: tensor for name, tensor in weights.items() if name not in theirs}
    return {**others, **prune_state_dict({name: weights[name] for name in weights if name in theirs}, cfg)}


def check_translation_task(task: Any) -> None:
    """Refuse a task whose sentences have no source.

    Raises:
        InputError: naming what the model is for.
    """
    if isinstance(task, LanguageModelingTask):
        raise InputError(
            "this is a translation model, which scores no plain text: give the checkpoint of a language model, or "
            "--task translation."
        )


def fill_defaults(cfg: Any, flags: Any) -> None:
    """Set the flags that are newer than a checkpoint's configuration to their defaults.

    Args:
        cfg: the model's configuration, changed in place.
        flags: the dataclass of the model's flags.
    """
    with open_dict(cfg) if OmegaConf.is_config(cfg) else nullcontext():
        for name, spec in flags.__dataclass_fields__.items():
            if not name.startswith("_") and not hasattr(cfg, name):
                setattr(cfg, name, spec.default)


def truncate_to_model(task: Any, model: Any) -> None:
    """Make ``--truncate-source`` cut to the model's longest source; fairseq cuts to --max-source-positions alone.

    fairseq reads its data sets later. The task's configuration is a copy: a checkpoint keeps the value given.
    """
    settings: Any = getattr(task, "cfg", None)
    limit = model.encoder.max_positions()
    if getattr(settings, "truncate_source", False) and limit < settings.max_source_positions:
        logger.info(f"--truncate-source: sources are cut to the {limit} tokens that the model takes")
        settings.max_source_positions = limit


def use_stored_lm(cfg: Any) -> bool:
    """Take an LM's description from the run's checkpoint where a run resumes and the LM's file is gone.

    Returns:
        Whether ``cfg`` describes an LM, whose weights a checkpoint brings.
    """
    given = [side for side in _served(cfg) if not getattr(cfg, f"{side}_lm_config")]
    missing = [side for side in given if not Path(getattr(cfg, f"{side}_lm")).exists()]
    path = checkpoint_to_start_from(cfg) if missing else None
    if path is not None:
        state = read_checkpoint(path)
        check_described(path, state)
        stored = stored_model_config(state)
        for side in missing:
            setattr(cfg, f"{side}_lm_config", stored.get(f"{side}_lm_config"))
    return any(getattr(cfg, f"{side}_lm_config", None) for side in _PLACES)


def _served(cfg: Any) -> list[str]:
    """Return the sides for which a language model's file is named; a model need not have both sides."""
    return [side for side in _PLACES if getattr(cfg, f"{side}_lm", None)]


def remember(cfg: Any, name: str, value: str | None) -> None:
    """Set a value in ``cfg`` and in the configuration that fairseq saves, of which ``cfg`` may be a copy."""
    setattr(cfg, name, value)
    parent = getattr(cfg, "_get_parent", lambda: None)()
    if parent is not None and "model" in parent:
        parent["model"][name] = value


def check_same_lms(cfg: Any, built: Any, read: Sequence[str]) -> None:
    """Refuse an LM other than the one in the checkpoint that a run starts from: it would be ignored.

    Args:
        cfg: the model's configuration as fairseq gives it.
        built: the configuration from which the model was built, with the LMs' descriptions.
        read: sides whose language model was read from its own file, and not described by the checkpoint.

    Raises:
        InputError: naming both.
    """
    sides = [side for side in _served(cfg) if side in read]
    path = checkpoint_to_start_from(cfg) if sides else None
    if path is None:
        return
    stored = stored_model_config(read_checkpoint(path))
    for side in sides:
        before, now = stored.get(f"{side}_lm_config"), getattr(built, f"{side}_lm_config")
        if before and now and _fingerprint(side, before) != _fingerprint(side, now):
            raise InputError(
                f"{path} was trained with another language model than {getattr(cfg, f'{side}_lm')}, which would be "
                f"ignored: give the one it was trained with as --{side}-lm, or restart in another --save-dir."
            )


def _fingerprint(side: str, stored: Any) -> Any:
    return read_side(f"{side}_lm_config", stored).get("fingerprint")


def checkpoint_to_start_from(cfg: Any) -> Path | None:
    """Return the path of the checkpoint that fairseq-train is about to load, if any."""
    parent = getattr(cfg, "_get_parent", lambda: None)()
    options = parent.get("checkpoint") if parent is not None else None
    return None if options is None else starts_from(options)
