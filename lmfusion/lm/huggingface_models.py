"""The models of transformers that are supported, and how one is built from plain values.

A name in a file is only looked up in this table: what it stands for is written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from lmfusion.checkpoint.reading import DAMAGE, first_line
from lmfusion.errors import InputError
from lmfusion.text.import_transformers import import_transformers
from lmfusion.text.model_settings import MOST_LAYERS, check_counts


@dataclass(frozen=True)
class Kind:
    """A model type that was tested.

    Attributes:
        reads_left_to_right: True if no state depends on later tokens.
        has_pooler: True if a pooler is built unless it is left out.
        offset_positions: True if a sentence's positions begin behind the index of the padding symbol (RoBERTa).
        dropout: settings that ``dropout`` stands for.
        attention_dropout: settings that ``attention_dropout`` stands for.
        attention: implementation of attention.
        decoder_layers: setting with the number of the decoder's layers, of a type whose encoder alone is used.
    """

    reads_left_to_right: bool = False
    has_pooler: bool = False
    offset_positions: bool = False
    dropout: tuple[str, ...] = ("hidden_dropout_prob",)
    attention_dropout: tuple[str, ...] = ("attention_probs_dropout_prob",)
    attention: str = "sdpa"
    decoder_layers: str | None = None


_ROBERTA = Kind(has_pooler=True, offset_positions=True)
_LLAMA = Kind(reads_left_to_right=True, dropout=(), attention_dropout=("attention_dropout",))
_T5 = Kind(dropout=("dropout_rate",), attention_dropout=(), attention="eager", decoder_layers="num_decoder_layers")
_BART = Kind(dropout=("dropout",), attention_dropout=("attention_dropout",), decoder_layers="decoder_layers")
KINDS = {
    "bert": Kind(has_pooler=True),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "electra": Kind(),
    "deberta": Kind(attention="eager"),
    "deberta-v2": Kind(attention="eager"),
    "distilbert": Kind(dropout=("dropout",), attention_dropout=("attention_dropout",)),
    "modernbert": Kind(dropout=("embedding_dropout", "mlp_dropout"), attention_dropout=("attention_dropout",)),
    **dict.fromkeys(("t5", "mt5", "umt5"), _T5),
    **dict.fromkeys(("bart", "mbart", "m2m_100"), _BART),
    "gpt2": Kind(reads_left_to_right=True, dropout=("resid_pdrop", "embd_pdrop"), attention_dropout=("attn_pdrop",)),
    "gpt_neox": Kind(reads_left_to_right=True, dropout=("hidden_dropout",), attention_dropout=("attention_dropout",)),
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
}
"""The supported model types by their names in config.json."""

_LEFT_OUT = {
    *("model_type", "architectures", "auto_map", "transformers_version", "quantization_config", "dtype", "torch_dtype"),
    *("id2label", "label2id", "problem_type", "use_cache", "return_dict", "output_hidden_states", "output_attentions"),
    *("attn_implementation", "experts_implementation", "chunk_size_feed_forward", "num_labels", "name_or_path"),
}
"""Settings that say nothing of the states, or would choose code."""


def kind_of(model_type: Any) -> Kind:
    """Return what is known of a model type.

    Raises:
        InputError: if it is not supported.
    """
    if not isinstance(model_type, str) or model_type not in KINDS:
        raise InputError(
            f"models of type {str(model_type)[:60]!r} are not among those that were tested: {', '.join(sorted(KINDS))}."
        )
    return KINDS[model_type]


def settings_of(path: Path, config: Any) -> dict[str, Any]:
    """Return the settings of a model of transformers that are needed to build it again, as plain values.

    Args:
        path: of its folder, for messages.
        config: of the model, as transformers reads it.

    Raises:
        InputError: if it is one that its model type does not say: quantized, or an encoder turned into a decoder.
    """
    values = config.to_dict()
    if values.get("quantization_config"):
        raise InputError(f"{path} holds quantized weights: give the model in full or half precision.")
    if values.get("is_decoder") or values.get("add_cross_attention"):
        raise InputError(f"{path} holds a {config.model_type} that was turned into a decoder: give the encoder.")
    return {name: value for name, value in values.items() if name not in _LEFT_OUT and not name.startswith("_")}


def build_model(model_type: str, settings: Mapping[str, Any], changes: Mapping[str, float | None]) -> nn.Module:
    """Build an untrained model of transformers without a head.

    Args:
        model_type: one of :data:`KINDS`.
        settings: from :func:`settings_of`.
        changes: ``dropout`` and ``attention_dropout`` to replace those in the settings; None replaces nothing.

    Raises:
        InputError: if the settings describe none.
    """
    kind, transformers = kind_of(model_type), import_transformers()
    from huggingface_hub.errors import StrictDataclassError

    values = {name: value for name, value in settings.items() if name not in _LEFT_OUT and not name.startswith("_")}
    for name, probability in changes.items():
        values.update(_dropouts(model_type, kind, name, probability))
    more = {"add_pooling_layer": False} if kind.has_pooler else {}
    try:
        check_counts(values)
        config = transformers.AutoConfig.for_model(model_type, **values)
        if not 1 <= config.num_hidden_layers <= MOST_LAYERS:
            raise InputError(f"a {model_type} of {config.num_hidden_layers} layers: give one of 1 to {MOST_LAYERS}.")
        model: nn.Module = transformers.AutoModel.from_config(
            without_decoder(config, kind), trust_remote_code=False, attn_implementation=kind.attention, **more
        )
    except InputError:
        raise
    except (StrictDataclassError, *DAMAGE, ArithmeticError) as error:
        raise InputError(f"these settings describe no {model_type} ({first_line(error)}).") from error
    encoder: nn.Module = encoder_of(model, kind)
    return encoder


def without_decoder(config: Any, kind: Kind) -> Any:
    """Return a configuration of transformers with no layers in a decoder that is not used."""
    if kind.decoder_layers:
        setattr(config, kind.decoder_layers, 0)
    return config


def encoder_of(model: Any, kind: Kind) -> Any:
    """Return the encoder of a model that has a decoder as well; any other model as it is."""
    return model.get_encoder() if kind.decoder_layers else model


def _dropouts(model_type: str, kind: Kind, name: str, probability: float | None) -> dict[str, float]:
    if probability is None:
        return {}
    fields: tuple[str, ...] = getattr(kind, name)
    if not fields:
        raise InputError(f"a {model_type} has no {name.replace('_', ' ')} to set: leave it out.")
    return dict.fromkeys(fields, probability)
