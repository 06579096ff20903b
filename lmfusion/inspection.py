"""Describe a checkpoint: its kind, its size, the language models inside and how their layers are mixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, MODEL_REGISTRY, FairseqEncoderDecoderModel
from torch import Tensor

from lmfusion.checkpoint.contents import model_settings
from lmfusion.checkpoint.reading import DAMAGE, first_line, read_checkpoint
from lmfusion.convert.variant import names_not_kept
from lmfusion.described import heads, prior, start, stored_lm
from lmfusion.errors import InputError, naming
from lmfusion.fusion.config import ELMO, SIDE_NAMES, STACKS
from lmfusion.fusion.denoiser import CODES
from lmfusion.fusion.elmo import chosen_states
from lmfusion.fusion.holder import PREFIX
from lmfusion.lm.description import check_described
from lmfusion.lm.huggingface_config import ADAPTER
from lmfusion.lm.interface import PretrainedLM
from lmfusion.lm.loading import FAMILIES
from lmfusion.lm.old_checkpoints import RELEASED
from lmfusion.text.kit import LICENCE, from_state, written

# fairseq's markers of a module's version, and the device marker of its sinusoidal positions: no weights.
_NO_PARAMETERS = (".version", "._float_tensor")


@dataclass(frozen=True)
class LanguageModel:
    """A language model inside a sequence-to-sequence model, as a checkpoint describes it."""

    side: str
    kind: str
    fusion: str
    """Name of the integration: "elmo" (frozen, its layers mixed), "finetune" (trained, its top layer) or another."""
    tensors: int
    parameters: int
    trained: int
    """Number of parameters that training changes, sooner or later."""
    frozen: bool
    """True if training changes none of them."""
    frozen_layers: int
    """Number of lower layers frozen, together with the embeddings, in a fine-tuned model; 0: none, nor embeddings."""
    lr_scale: float
    """Factor on the learning rate of the trained parameters."""
    frozen_updates: int
    """Number of first updates that leave the language model unchanged."""
    dictionary_hash: str | None
    fingerprint: str | None


@dataclass(frozen=True)
class Mix:
    """The weights of one side's layer mix: gamma, and softmax(lambda) by the names of the layer states."""

    side: str
    gamma: float
    shares: dict[str, float]


@dataclass(frozen=True)
class Inspection:
    """A description of a checkpoint, as :func:`inspect_checkpoint` returns it."""

    path: str
    kind: str
    architecture: str
    updates: int | None
    total: int
    trainable: int
    frozen: int
    language_models: list[LanguageModel]
    mixes: list[Mix]
    starts: list[dict[str, Any]]
    """Language models that a side started from and that are not inside: side, kind, fingerprint."""
    prior: dict[str, Any] | None
    """Flags of ``--criterion lm_prior`` that it was trained with; None: with another criterion."""
    text: dict[str, Any] | None
    """What it holds to read and write plain text, see :meth:`lmfusion.text.kit.TextKit.facts`; None: nothing."""
    licence: str | None
    """First line of its licence; None: it is no packed model."""

    def to_dict(self) -> dict[str, Any]:
        """Return the description as plain values, ready for JSON."""
        return asdict(self)


def inspect_checkpoint(path: str | Path) -> Inspection:
    """Describe a checkpoint of any fairseq model without building the model.

    Args:
        path: of the checkpoint file.

    Raises:
        InputError: if the file is missing, damaged, unsafe or not a checkpoint, or its configuration cannot be read.
    """
    state = read_checkpoint(path)
    check_described(Path(path), state)
    try:
        with naming(path):
            return _described(path, state)
    except InputError:
        raise
    except (*DAMAGE, ArithmeticError) as error:
        raise InputError(
            f"{path} is damaged or not what it says: its configuration cannot be read ({first_line(error)}). Copy or "
            f"train it again."
        ) from error


def _described(path: str | Path, state: Mapping[str, Any]) -> Inspection:
    config = model_settings(state)
    weights: dict[str, Tensor] = state["model"]
    lms = [lm for side in SIDE_NAMES if (lm := _language_model(side, config, weights)) is not None]
    inside = {side for side in SIDE_NAMES for lm in lms if lm.side == SIDE_NAMES[side]}
    # Two language models share nothing, even where they are equal.
    total = count_parameters(_outside(weights)) + sum(lm.parameters for lm in lms)
    frozen = sum(lm.parameters - lm.trained for lm in lms)
    kit, licence = from_state(path, state), written(path, state, LICENCE)
    return Inspection(
        path=str(path),
        kind=_kind(config, weights),
        architecture=str(config.get("_name") or config.get("arch") or "unknown"),
        updates=(state.get("optimizer_history") or [{}])[-1].get("num_updates"),
        total=total,
        trainable=total - frozen,
        frozen=frozen,
        language_models=lms,
        mixes=[mix for side in SIDE_NAMES if (mix := _mix(side, config, weights)) is not None],
        starts=[
            start(side, config)
            for side in (*SIDE_NAMES, PREFIX)
            if config.get(f"{side}_lm_config") and side not in inside
        ],
        prior=prior(state),
        text=kit.facts() if kit else None,
        licence=licence.split("\n")[0] if LICENCE in state else None,
    )


def count_parameters(weights: Mapping[str, Tensor]) -> int:
    """Count the parameters in a state dict; a matrix under two names (tied embeddings) counts once.

    Args:
        weights: tensors by name; integers and fairseq's version markers are not counted.
    """
    counted: dict[tuple[int, ...], list[Tensor]] = {}
    total = 0
    for tensor in _parameters(weights).values():
        same_shape = counted.setdefault(tuple(tensor.shape), [])
        # By value, for a rewritten checkpoint has lost the sharing. Fresh biases and norms are equal by chance.
        if tensor.dim() > 1 and any(torch.equal(tensor, other) for other in same_shape):
            continue
        same_shape.append(tensor)
        total += tensor.numel()
    return total


def _parameters(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {
        name: tensor
        for name, tensor in weights.items()
        if tensor.is_floating_point() and not name.endswith(_NO_PARAMETERS)
    }


def state_names(stored: Mapping[str, Any], count: int) -> list[str]:
    """Return the names of a language model's layer states in the order in which they are mixed.

    Args:
        stored: the description of a side's language model in a checkpoint's configuration, in the terms of today.
        count: L, number of layer states.
    """
    if stored.get("states"):
        return list(stored["states"])
    return names_not_kept(stored.get("lm") or {}, count)


def _kind(config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> str:
    name = str(config.get("_name") or config.get("arch"))
    family = ARCH_MODEL_NAME_REGISTRY.get(name, name)
    trained_as = {getattr(lm, "architecture", None): lm.title for lm in FAMILIES.values() if lm.family != RELEASED}
    if family in trained_as:
        return trained_as[family]
    if config.get("heads_config"):
        return f"language model with heads for {heads(config)}"
    sides = {key.split(".")[0] for key in weights}
    if {"encoder", "decoder"} <= sides or issubclass(MODEL_REGISTRY.get(family, object), FairseqEncoderDecoderModel):
        return "sequence-to-sequence model" + (" that learned to denoise" if CODES in weights else "")
    return "another fairseq model"


def _lm_prefix(side: str, weights: Mapping[str, Tensor]) -> str:
    """Return the prefix of the names of the weights of a side's language model; a model with heads has one side."""
    prefixes = [f"{STACKS[side]}.{holder}.representation.lm." for holder in ("embed_tokens", "reader")]
    prefixes += ["representation.lm."] if side == "src" else []
    return next((prefix for prefix in prefixes if any(name.startswith(prefix) for name in weights)), prefixes[0])


def _outside(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights that belong to no language model."""
    prefixes = tuple(_lm_prefix(side, weights) for side in SIDE_NAMES)
    return {name: tensor for name, tensor in weights.items() if not name.startswith(prefixes)}


def _language_model(side: str, config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> LanguageModel | None:
    prefix = _lm_prefix(side, weights)
    inside = {key: tensor for key, tensor in weights.items() if key.startswith(prefix)}
    if not inside:
        return None
    stored, fusion = stored_lm(side, config), str(config.get(f"{side}_fusion"))
    family = FAMILIES.get(stored["lm"].get("family", ""))
    parameters, layers = count_parameters(inside), int(config.get(f"{side}_lm_freeze_layers") or 0)
    place = PretrainedLM.layer_of if family is None else family.layer_of
    places = {key: place(key[len(prefix) :]) for key in inside} if layers else {}
    kept = {key: inside[key] for key, number in places.items() if number is not None and number <= layers}
    kept |= {key: inside[key] for key in inside if stored["lm"].get("lora") and ADAPTER not in key}
    trained = 0 if stored.get("frozen", fusion == ELMO) else parameters - count_parameters(kept)
    scale = config.get(f"{side}_lm_lr_scale")
    return LanguageModel(
        side=SIDE_NAMES[side],
        kind=stored.get("title") or ("language model" if family is None else family.title),
        fusion=fusion,
        tensors=len(_parameters(inside)),
        parameters=parameters,
        trained=trained,
        frozen=trained == 0,
        frozen_layers=layers,
        lr_scale=1.0 if scale is None else float(scale),
        frozen_updates=int(config.get(f"{side}_lm_freeze_updates") or 0),
        dictionary_hash=stored.get("dictionary_hash"),
        fingerprint=stored.get("fingerprint"),
    )


def _mix(side: str, config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Mix | None:
    prefix = f"{_lm_prefix(side, weights).removesuffix('lm.')}mix."
    if not {f"{prefix}weights", f"{prefix}gamma"} <= set(weights):  # no mix, or that of an integration of one's own
        return None
    shares = torch.softmax(weights[f"{prefix}weights"].float(), dim=0).tolist()
    names, chosen = state_names(stored_lm(side, config), len(shares)), config.get(f"{side}_lm_layers")
    if chosen:
        names = [names[number] for number in chosen_states(str(chosen), len(names))]
    return Mix(SIDE_NAMES[side], weights[f"{prefix}gamma"].float().item(), dict(zip(names, shares)))
