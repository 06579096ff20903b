"""From a side's flags to its embedding: load the LM, check it, wrap it in the strategy chosen."""

from __future__ import annotations

import json
import logging
from typing import Any, Callable

from fairseq.data import Dictionary
from torch import nn

from lmfusion.errors import UserError
from lmfusion.fusion.config import ELMO, FINETUNE
from lmfusion.fusion.elmo import ElmoRepresentation
from lmfusion.fusion.finetune import FinetunedRepresentation
from lmfusion.fusion.learning_rates import LearningRate
from lmfusion.fusion.reading import Reading
from lmfusion.lm.interface import PretrainedLM, state_fingerprint
from lmfusion.lm.loading import build, describe, load_lm
from lmfusion.lm.vocabulary import check_symbols
from lmfusion.state_cache.stored_states import StoredStates

logger = logging.getLogger(__name__)

_NAMES = {"src": "source", "tgt": "target"}


def reading_of(cfg: Any, side: str) -> Reading:
    """How a side's language model is read: in lmfusion's way, unless a converted checkpoint says otherwise."""
    return Reading.from_description(json.loads(getattr(cfg, f"{side}_lm_config") or "{}"))


def elmo(lm: PretrainedLM, output_dim: int, cfg: Any, side: str) -> nn.Module:
    """The ELMo strategy with a side's flags."""
    return ElmoRepresentation(
        lm,
        output_dim,
        elmo_dropout=getattr(cfg, f"{side}_elmo_dropout") or 0.0,
        affine=getattr(cfg, f"{side}_elmo_affine"),
        dropout=getattr(cfg, f"{side}_representation_dropout") or 0.0,
        states=reading_of(cfg, side).states,
        stored=_stored_states(lm, cfg) if side == "src" and cfg.src_lm_cache else None,
    )


def _stored_states(lm: PretrainedLM, cfg: Any) -> StoredStates:
    fingerprint = json.loads(cfg.src_lm_config)["fingerprint"]
    return StoredStates(lm, cfg.src_lm_cache, fingerprint, half=cfg.src_lm_cache_half)


def finetune(lm: PretrainedLM, output_dim: int, cfg: Any, side: str) -> nn.Module:
    """The fine-tuning strategy with a side's flags."""
    return FinetunedRepresentation(
        lm,
        output_dim,
        dropout=getattr(cfg, f"{side}_representation_dropout") or 0.0,
        frozen_layers=getattr(cfg, f"{side}_lm_freeze_layers") or 0,
        rate=_learning_rate(cfg, side),
    )


def _learning_rate(cfg: Any, side: str) -> LearningRate:
    scale = getattr(cfg, f"{side}_lm_lr_scale")
    return LearningRate(1.0 if scale is None else scale, getattr(cfg, f"{side}_lm_freeze_updates") or 0)


STRATEGIES: dict[str, Callable[[PretrainedLM, int, Any, str], nn.Module]] = {
    ELMO: elmo,
    FINETUNE: finetune,
}


def build_representation(cfg: Any, side: str, dictionary: Dictionary, output_dim: int) -> nn.Module:
    """The representation a side's flags ask for; ``cfg`` afterwards describes the LM in it.

    Args:
        cfg: flags; ``{side}_lm_config``, if set, describes an LM whose weights a checkpoint brings.
        side: ``"src"`` or ``"tgt"``.
        dictionary: of that side.
        output_dim: channels of that side.

    Raises:
        UserError: if the LM is of the wrong kind for the side or of another dictionary.
    """
    stored: str | None = getattr(cfg, f"{side}_lm_config")
    overrides = _dropouts(cfg, side)
    lm = build(json.loads(stored)["lm"], dictionary, **overrides) if stored else _load(cfg, side, dictionary, overrides)
    lm.top = reading_of(cfg, side).top
    representation = STRATEGIES[getattr(cfg, f"{side}_fusion")](lm, output_dim, cfg, side)
    origin = "a checkpoint of this model" if stored else getattr(cfg, f"{side}_lm")
    logger.info(f"{_NAMES[side]} language model: {_summary(lm, _learning_rate(cfg, side))}, from {origin}")
    return representation


def _summary(lm: PretrainedLM, rate: LearningRate) -> str:
    """How many tensors, how many parameters, and what is trained of them how."""
    tensors = list(lm.parameters())
    total = sum(tensor.numel() for tensor in tensors)
    trained = sum(tensor.numel() for tensor in tensors if tensor.requires_grad)
    text = f"{len(tensors)} tensors, {total:,} parameters, "
    text += "frozen" if not trained else "trained" if trained == total else f"{trained:,} of them trained"
    if trained and rate.scale != 1.0:
        text += f" with {rate.scale:g} times the learning rate"
    if trained and rate.frozen_updates:
        text += f", after the first {rate.frozen_updates:,} updates"
    return text


def _load(cfg: Any, side: str, dictionary: Dictionary, overrides: dict[str, Any]) -> PretrainedLM:
    path = getattr(cfg, f"{side}_lm")
    lm = load_lm(path, **overrides)
    _check_kind(lm, side, path)
    check_symbols(lm.symbols, list(dictionary.symbols), what=f"the {_NAMES[side]} dictionary")
    description = {
        "lm": describe(lm),
        "dictionary_hash": lm.dictionary_hash,
        "fingerprint": state_fingerprint(lm),
    }
    setattr(cfg, f"{side}_lm_config", json.dumps(description))
    return lm


def _dropouts(cfg: Any, side: str) -> dict[str, Any]:
    return {
        "dropout": getattr(cfg, f"{side}_lm_dropout"),
        "attention_dropout": getattr(cfg, f"{side}_lm_attention_dropout"),
        "activation_dropout": getattr(cfg, f"{side}_lm_relu_dropout"),
    }


def _check_kind(lm: PretrainedLM, side: str, path: str) -> None:
    if side == "src" and lm.is_causal:
        raise UserError(
            f"{path} is a causal language model (uni_transformer_lm): the source side needs a "
            f"cloze LM (bi_transformer_lm), which sees the words on both sides."
        )
    if side == "tgt" and not lm.is_causal:
        raise UserError(
            f"{path} is a cloze language model (bi_transformer_lm): the target side needs a "
            f"causal LM (uni_transformer_lm), for a cloze LM sees the words to be predicted."
        )
