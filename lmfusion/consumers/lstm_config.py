"""Flags of ``lstm_lmfusion``: those of fairseq's ``lstm``, and the two sides' language models."""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
from dataclasses import dataclass, field, make_dataclass
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from lmfusion.errors import InputError, check_dropout
from lmfusion.fusion.combinations import check_sides
from lmfusion.fusion.config import SIDES, STORE_LM_ONCE, integration, side_fields
from lmfusion.lm.precision import CPU_BF16_HELP
from lmfusion.lm.task_value import task_value

GENERAL, ADDITIVE, NO_ATTENTION = "general", "additive", "none"
AttentionChoice = ChoiceEnum([GENERAL, ADDITIVE, NO_ATTENTION])
_TRANSFORMERS_ALONE = ("positions", "embed_scale")


_ATTENTION_HELP = (
    "general: h W s (Luong et al. 2015), fairseq's; additive: v tanh(W s + U h) (Bahdanau et al. 2015); none: the "
    "encoder's last states alone"
)


def _flag(text: str, default: Any) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass
class LSTMFlags(FairseqDataclass):
    """Flags of fairseq's ``lstm``; ``decoder_attention`` says which attention, not only whether."""

    dropout: float = _flag("dropout probability", 0.1)
    encoder_embed_dim: int = _flag("channels of the encoder's embeddings", 512)
    encoder_hidden_size: Optional[int] = _flag("cells of an encoder layer (default: --encoder-embed-dim)", None)
    encoder_layers: int = _flag("layers of the encoder", 1)
    encoder_bidirectional: bool = _flag("read the source in both directions", False)
    encoder_dropout_in: Optional[float] = _flag("dropout of the encoder's embeddings (default: --dropout)", None)
    encoder_dropout_out: Optional[float] = _flag("dropout of the encoder's states (default: --dropout)", None)
    decoder_embed_dim: int = _flag("channels of the decoder's embeddings", 512)
    decoder_hidden_size: Optional[int] = _flag("cells of a decoder layer (default: --decoder-embed-dim)", None)
    decoder_layers: int = _flag("layers of the decoder, as many as the encoder's", 1)
    decoder_out_embed_dim: int = _flag("channels of the output embeddings", 512)
    decoder_dropout_in: Optional[float] = _flag("dropout of the decoder's embeddings (default: --dropout)", None)
    decoder_dropout_out: Optional[float] = _flag("dropout of the decoder's states (default: --dropout)", None)
    decoder_attention: AttentionChoice = field(default=GENERAL, metadata={"help": _ATTENTION_HELP})  # type: ignore[valid-type]
    share_decoder_input_output_embed: bool = _flag("tie the decoder's input and output embeddings", False)
    share_all_embeddings: bool = _flag("tie the embeddings of encoder, decoder and output", False)
    max_source_positions: Optional[int] = task_value("max_source_positions", 1024)
    max_target_positions: Optional[int] = task_value("max_target_positions", 1024)


LSTMFusionConfig: Any = make_dataclass(
    "LSTMFusionConfig",
    [
        (f"{side}_{name}", kind, spec)
        for side in SIDES
        for name, kind, spec in side_fields(side)
        if name not in _TRANSFORMERS_ALONE
    ]
    + [STORE_LM_ONCE, ("cpu_bf16", bool, _flag(CPU_BF16_HELP, False))],
    bases=(LSTMFlags,),
)
"""Flags of ``lstm_lmfusion``."""
LSTMFusionConfig.__module__ = __name__


def check_flags(cfg: Any) -> None:
    """Refuse flags that cannot work together, or of which one would be ignored.

    Args:
        cfg: the model's configuration.

    Raises:
        InputError: naming the flags and the fix.
    """
    for name in LSTMFlags.__dataclass_fields__:
        value = getattr(cfg, name, None)
        flag = f"--{name.replace('_', '-')}"
        if name.endswith(("_dim", "_size", "_layers")) and value is not None and value < 1:
            raise InputError(f"{flag} {value}: give 1 or more.")
        if "dropout" in name and value is not None:
            check_dropout(value, f"{flag} {value:g}")
    check_sides(cfg)
    for side in SIDES:
        fusion = integration(cfg, side)
        if fusion is not None and not fusion.replaces_embeddings:
            raise InputError(
                f"--{side}-fusion {fusion.name} works inside the layers of a transformer (transformer_lmfusion): with "
                f"lstm_lmfusion choose one that takes the place of the word embeddings, such as elmo or finetune."
            )
    if cfg.encoder_layers != cfg.decoder_layers:
        raise InputError(
            f"--encoder-layers {cfg.encoder_layers} and --decoder-layers {cfg.decoder_layers} must be the same: the "
            f"decoder's layers start from the encoder's last states."
        )
    ties = [name for name in ("share_all_embeddings", "share_decoder_input_output_embed") if getattr(cfg, name)]
    if ties and cfg.decoder_embed_dim != cfg.decoder_out_embed_dim:
        raise InputError(
            f"--{ties[0].replace('_', '-')} needs --decoder-embed-dim {cfg.decoder_embed_dim} and "
            f"--decoder-out-embed-dim {cfg.decoder_out_embed_dim} to be the same."
        )
