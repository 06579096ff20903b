"""Flags of ``transformer_lmfusion``: fairseq's transformer, flat, and what is ours on top.

Flat, because fairseq fills nested fields neither from flat flags nor consistently from Hydra.
"""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, field, fields, make_dataclass
from typing import Any, Optional, get_type_hints

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models.transformer.transformer_config import (
    DecoderConfig,
    EncDecBaseConfig,
    QuantNoiseConfig,
    TransformerConfig,
)
from omegaconf import II

# The integrations; one line each. Those of a user's own folder register themselves in the same way.
import lmfusion.fusion.attend
import lmfusion.fusion.cold
import lmfusion.fusion.elmo
import lmfusion.fusion.finetune
import lmfusion.fusion.initialise  # noqa: F401
from lmfusion.fusion.interface import FUSIONS, Fusion, Side, close_register
from lmfusion.lm.precision import CPU_BF16_HELP
from lmfusion.registration import as_optional

NONE, ELMO, FINETUNE = "none", "elmo", "finetune"
SIDES = ("src", "tgt")
SIDE_NAMES = {"src": "source", "tgt": "target"}
STACKS = {"src": "encoder", "tgt": "decoder"}
close_register()
AUTO, OWN = "auto", "own"
PositionChoice = ChoiceEnum([AUTO, OWN, NONE])

_NESTED = {"encoder": EncDecBaseConfig, "decoder": DecoderConfig, "quant_noise": QuantNoiseConfig}


def _flat_fields() -> list[tuple[str, Any, Any]]:
    """Return fairseq's nested transformer configuration as flat fields: ``encoder.layers`` -> ``encoder_layers``."""
    flat = []
    for spec in fields(TransformerConfig):
        if spec.name.startswith("_"):
            continue
        if spec.name not in _NESTED:
            flat.append((spec.name, spec.type, spec))
            continue
        for inner in fields(_NESTED[spec.name]):
            if not inner.name.startswith("_"):
                # fairseq calls it a list of numbers, and splits it at its commas
                kind = Optional[str] if inner.name == "layers_to_keep" else inner.type
                flat.append((f"{spec.name}_{inner.name}", kind, inner))
    return flat


def _copy(name: str, spec: Any) -> Any:
    default = spec.default
    if default is MISSING:
        return field(default_factory=spec.default_factory, metadata=spec.metadata)
    if name in ("decoder_input_dim", "decoder_output_dim"):
        default = II("model.decoder_embed_dim")
    return field(default=default, metadata=spec.metadata)


FlatTransformerConfig = make_dataclass(
    "FlatTransformerConfig",
    [(name, kind, _copy(name, spec)) for name, kind, spec in _flat_fields()],
    bases=(FairseqDataclass,),
)


def _flag(text: str, default: Any = None) -> Any:
    return field(default=default, metadata={"help": text})


def fusions_of(side: str) -> dict[str, type[Fusion]]:
    """Return the integrations by name that can serve a side, ``"src"`` or ``"tgt"``."""
    return {name: fusion for name, fusion in FUSIONS.items() if side in fusion.sides}


def side_fields(side: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the flags of a side, without prefix: those of every side, then those of the integrations.

    Args:
        side: ``"src"`` or ``"tgt"``.
    """
    name, stack = SIDE_NAMES[side], STACKS[side]
    yield "lm", Optional[str], _flag(f"language model of the {name} language: a checkpoint, or what a family reads")
    own = fusions_of(side)
    ways = "; ".join(f"{key}: {fusion.title}" for key, fusion in own.items())
    yield "fusion", ChoiceEnum([NONE, *own]), _flag(f"how the {name} LM is used: none; {ways}", NONE)
    auto = "none behind an LM that knows its own" if side == "src" else "it has them"
    yield "positions", PositionChoice, _flag(f"position embeddings of the {stack} itself (auto: {auto})", AUTO)
    scale = "factor on what replaces the word embeddings (default: sqrt of the channels, as released)"
    yield "embed_scale", Optional[float], _flag(scale)
    seen: set[str] = set()
    for fusion in own.values():
        types = get_type_hints(fusion.Config)
        for spec in fields(fusion.Config):
            if spec.name not in seen and side in spec.metadata.get("sides", SIDES):
                seen.add(spec.name)
                yield spec.name, as_optional(types[spec.name]), _copy(spec.name, spec)
    yield "lm_config", Optional[str], _flag("written by lmfusion into checkpoints; do not set")


STORE_LM_ONCE = (
    "store_lm_once",
    bool,
    _flag("elmo: keep the frozen LM in one file beside the checkpoints instead of in each of them", False),
)
_OTHERS = [STORE_LM_ONCE, ("cpu_bf16", bool, _flag(CPU_BF16_HELP, False))]

FusionConfig: Any = make_dataclass(
    "FusionConfig",
    [(f"{side}_{name}", kind, spec) for side in SIDES for name, kind, spec in side_fields(side)] + _OTHERS,
    bases=(FlatTransformerConfig,),
)
"""Flags of ``transformer_lmfusion``: a group per side; one that the chosen integration does not have is an error."""
FusionConfig.__module__ = __name__  # by which a configuration of ours is known under fairseq-hydra-train


def integration(cfg: Any, side: str) -> Optional[type[Fusion]]:
    """Return the integration that a side's flags choose, or None.

    Args:
        cfg: a model's configuration, as an object or as plain values.
        side: ``"src"`` or ``"tgt"``.
    """
    name = cfg.get(f"{side}_fusion") if isinstance(cfg, Mapping) else getattr(cfg, f"{side}_fusion")
    return FUSIONS.get(str(name))


def integration_config(cfg: Any, side: str) -> Any:
    """Return a side's flags as an instance of the chosen integration's ``Config``.

    Args:
        cfg: a model's configuration; the side must have an integration.
        side: ``"src"`` or ``"tgt"``.
    """
    fusion = integration(cfg, side)
    assert fusion is not None
    values = {spec.name: getattr(cfg, f"{side}_{spec.name}", spec.default) for spec in fields(fusion.Config)}
    return fusion.Config(**values)


def replaces_embeddings(cfg: Any, side: str) -> bool:
    """Return True if a side's language model takes the place of its word embeddings."""
    fusion = integration(cfg, side)
    return fusion is not None and fusion.replaces_embeddings


def starts_stack(cfg: Any, side: str) -> bool:
    """Return True if a side's language model is where its stack starts from, and is not in the model."""
    fusion = integration(cfg, side)
    return fusion is not None and not fusion.keeps_lm


def read_by_layers(cfg: Any, side: str) -> bool:
    """Return True if a side's language model is in the model beside word embeddings of the side's own."""
    fusion = integration(cfg, side)
    return fusion is not None and fusion.keeps_lm and not fusion.replaces_embeddings


def lm_prefix(cfg: Any, side: str) -> str:
    """Return the prefix of the names of a side's language model's weights in a checkpoint."""
    holder = "embed_tokens" if replaces_embeddings(cfg, side) else "reader"
    return f"{STACKS[side]}.{holder}.representation.lm."


def frozen_lms(cfg: Mapping[str, Any]) -> list[str]:
    """Return the prefixes of frozen language models' weights if ``--store-lm-once`` keeps these in separate files.

    Args:
        cfg: a model's configuration, as plain values.
    """
    if not cfg.get("store_lm_once"):
        return []
    chosen = {side: integration(cfg, side) for side in SIDES}
    return [lm_prefix(cfg, side) for side, fusion in chosen.items() if fusion is not None and not fusion.trains_lm]


def has_positions(cfg: Any, side: str) -> bool:
    """Return True if a side's encoder or decoder has position embeddings of its own.

    Behind a source LM's mixed states, which contain their positions, it has none unless asked for (SPEC section 2).

    Args:
        cfg: a model's configuration.
        side: ``"src"`` or ``"tgt"``.
    """
    choice, fusion = getattr(cfg, f"{side}_positions"), integration(cfg, side)
    if choice == AUTO:
        carried = side == "src" and fusion is not None and fusion.carries_positions
        return not cfg.no_token_positional_embeddings and not carried
    return bool(choice == OWN)


def make_side(cfg: Any, side: str, symbols: list[str], fingerprint: str) -> Side:
    """Build the description of a side for its integration.

    Args:
        cfg: fairseq's nested configuration of the model.
        side: ``"src"`` or ``"tgt"``.
        symbols: of its dictionary.
        fingerprint: of its language model's weights as pretrained.
    """
    stack = getattr(cfg, STACKS[side])
    return Side(side, SIDE_NAMES[side], STACKS[side], symbols, stack.embed_dim, stack.attention_heads, fingerprint)
