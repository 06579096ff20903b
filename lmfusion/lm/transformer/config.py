"""Flags of the language models, and the published sizes as named architectures."""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
from argparse import Namespace
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from fairseq.dataclass import FairseqDataclass

from lmfusion.lm.precision import CPU_BF16_HELP
from lmfusion.lm.recomputation import RECOMPUTATION_HELP
from lmfusion.lm.task_value import task_value

OF_TRAINING = ("checkpoint_activations",)
"""Flags that are no part of a language model: its configuration, by which stored states are found, has none of them."""


@dataclass
class SharedLMConfig(FairseqDataclass):
    """Flags of every language model that fairseq-train trains, with fairseq's names for a decoder-only model."""

    decoder_embed_dim: int = field(default=512, metadata={"help": "channels C of the model"})
    decoder_layers: int = field(default=6, metadata={"help": "layers N of a tower"})
    dropout: float = field(default=0.1, metadata={"help": "dropout of embeddings and of each layer's output"})
    input_dropout: float = field(
        default=0.0, metadata={"help": "probability of reading <unk> instead of a token in training"}
    )
    share_decoder_input_output_embed: bool = field(
        default=False, metadata={"help": "use the input embeddings as softmax weights (tied)"}
    )
    cpu_bf16: bool = field(default=False, metadata={"help": CPU_BF16_HELP})
    checkpoint_activations: bool = field(default=False, metadata={"help": RECOMPUTATION_HELP})
    tokens_per_sample: int = task_value("tokens_per_sample", 1024)
    max_target_positions: Optional[int] = task_value("max_target_positions")


@dataclass
class LMConfig(SharedLMConfig):
    """Flags of both transformer language models."""

    decoder_ffn_embed_dim: int = field(default=2048, metadata={"help": "inner size of the feed-forward sub-blocks"})
    decoder_attention_heads: int = field(
        default=8, metadata={"help": "attention heads of a tower; must divide --decoder-embed-dim"}
    )
    attention_dropout: float = field(default=0.1, metadata={"help": "dropout of attention weights"})
    activation_dropout: float = field(
        default=0.05,
        metadata={
            "help": "dropout after the ReLU of the feed-forward sub-blocks",
            "argparse_alias": "--relu-dropout",
        },
    )
    no_token_positional_embeddings: bool = field(default=False, metadata={"help": "no position embeddings at all"})
    decoder_learned_pos: bool = field(
        default=False, metadata={"help": "learn position embeddings instead of sinusoids"}
    )


@dataclass
class CausalLMConfig(LMConfig):
    """Flags of ``uni_transformer_lm``."""


@dataclass
class ClozeLMConfig(LMConfig):
    """Flags of ``bi_transformer_lm``, those for variants of the paper's released code included."""

    no_bias_kv: bool = field(
        default=False,
        metadata={"help": "a zero key/value pair in the towers' attention instead of a learned one"},
    )
    no_extra_kv: bool = field(
        default=False,
        metadata={"help": "neither a learned nor a zero key/value pair in the towers' attention"},
    )
    single_tower: bool = field(default=False, metadata={"help": "one set of weights for both towers"})
    linear_final_layer: bool = field(
        default=False,
        metadata={"help": "join the towers by a linear layer instead of an attention block"},
    )
    linear_final_layer_bias: bool = field(default=False, metadata={"help": "give the linear join a bias"})
    double_final_heads: bool = field(default=False, metadata={"help": "twice the heads in the joining block"})
    concat_final_q: bool = field(
        default=False,
        metadata={"help": "joining block's query: project [f[i-1]; b[i+1]] instead of their sum"},
    )


@dataclass
class BertLMConfig(FairseqDataclass):
    """Flags of ``bert_lm``; the defaults are the published base size (Devlin et al. 2019)."""

    decoder_embed_dim: int = field(default=768, metadata={"help": "channels C of the model"})
    decoder_ffn_embed_dim: int = field(default=3072, metadata={"help": "inner size of the feed-forward sub-blocks"})
    decoder_layers: int = field(default=12, metadata={"help": "layers N"})
    decoder_attention_heads: int = field(
        default=12, metadata={"help": "attention heads; must divide --decoder-embed-dim"}
    )
    dropout: float = field(default=0.1, metadata={"help": "dropout of embeddings and of each sub-block's output"})
    attention_dropout: float = field(default=0.1, metadata={"help": "dropout of attention weights"})
    cpu_bf16: bool = field(default=False, metadata={"help": CPU_BF16_HELP})
    checkpoint_activations: bool = field(default=False, metadata={"help": RECOMPUTATION_HELP})
    tokens_per_sample: int = task_value("tokens_per_sample", 1024)
    max_target_positions: Optional[int] = task_value("max_target_positions")


def plain_config(cfg: Any, kind: Callable[[], FairseqDataclass]) -> dict[str, Any]:
    """Return a model's configuration as plain values by name, with unset limits resolved.

    Args:
        cfg: any object with the attributes, e.g. fairseq's configuration.
        kind: the dataclass whose fields are taken.
    """
    names = [name for name in kind().__dataclass_fields__ if not name.startswith("_") and name not in OF_TRAINING]
    values = {name: getattr(cfg, name) for name in names}
    if values["max_target_positions"] is None:
        values["max_target_positions"] = values["tokens_per_sample"]
    return values


def complete_config(config: dict[str, Any], kind: type[FairseqDataclass], **overrides: Any) -> dict[str, Any]:
    """Return a configuration with defaults for flags that are newer than it, and with some values replaced.

    Args:
        config: plain values.
        kind: dataclass of the flags.
        overrides: values to replace; None leaves one as it is.
    """
    defaults = {name: spec.default for name, spec in kind.__dataclass_fields__.items()}
    given = {name: value for name, value in overrides.items() if value is not None}
    return plain_config(Namespace(**{**defaults, **config, **given}), kind)


def set_defaults(args: Namespace, **defaults: Any) -> None:
    """Set values of flags that were not given."""
    for name, value in defaults.items():
        setattr(args, name, getattr(args, name, value))


def big_architecture(args: Namespace) -> None:
    """Set the paper's size as defaults: N = 12, C = 1024, feed-forward 4096, 16 heads (SPEC section 1)."""
    set_defaults(
        args,
        decoder_layers=12,
        decoder_embed_dim=1024,
        decoder_ffn_embed_dim=4096,
        decoder_attention_heads=16,
    )
