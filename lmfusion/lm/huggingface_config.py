"""Configuration of the families that take models of Hugging Face."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from lmfusion.lm.vocabulary import BOS

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

ADAPTER = ".lora_"
"""What the names of weights of low-rank adapters have in them."""


@dataclass
class HuggingFaceConfig:
    """Plain values from which an untrained copy is built.

    Attributes:
        model_type: transformers' name of the architecture.
        settings: of the architecture, as transformers writes them into config.json.
        opening: symbols that the tokenizer puts in front of a sentence.
        tokenizer_bytes: size of the tokenizer's file.
        licence: as the model card names it.
        transformers: version that read the folder.
        dropout: replaces that of the settings.
        attention_dropout: replaces that of the settings.
        lora: rank of the low-rank adapters that are trained in place of the weights; None: there are none.
        dtype: of the weights, one of :data:`DTYPES`; 16 bits are for frozen models.
        segments: whether the second text of a pair has segment 1, as in pretraining; checkpoints from before that was
            so have 0.
        separators: symbols for the end between the texts of a pair, as in pretraining; checkpoints from before have 1.
    """

    model_type: str
    settings: dict[str, Any]
    opening: list[str] = field(default_factory=lambda: [BOS])
    tokenizer_bytes: int = 0
    licence: str = "unknown"
    transformers: str = ""
    dropout: float | None = None
    attention_dropout: float | None = None
    lora: int | None = None
    dtype: str = "float32"
    segments: bool = False
    separators: int = 1
