"""BERT of Hugging Face in training: masked words of made-up sentences, by its own loss."""

from __future__ import annotations

import argparse
from typing import Any

import torch
from models import Sizes
from options import autocast
from steps import PAD, Sample, Training
from torch import Tensor, nn

from lmfusion.text.import_transformers import import_transformers

MASKED = 0.15
"""Part of the words that are to be predicted (Devlin et al. 2019, section 3.1)."""
IGNORED = -100
"""The label of a word that is not."""


def masked_bert(sizes: Sizes, blocks: int) -> nn.Module:
    """transformers' BERT with so many blocks, random weights and dropout as in lmfusion's language models.

    Raises:
        InputError: transformers is not installed.
    """
    transformers = import_transformers()
    config = transformers.BertConfig(
        vocab_size=sizes.vocabulary,
        hidden_size=sizes.lm_channels,
        intermediate_size=sizes.lm_ffn,
        num_hidden_layers=blocks,
        num_attention_heads=sizes.lm_heads,
        max_position_embeddings=sizes.max_positions,
        pad_token_id=PAD,
    )
    built: nn.Module = transformers.BertForMaskedLM(config)
    return built


class MaskedTraining(Training):
    """BERT in training; :class:`Training` says how.

    Args:
        model: of :func:`masked_bert`.
        samples: batches of the language modeling task; which words are masked is drawn once for each.
        args: as of ``Training``.
    """

    def __init__(self, model: nn.Module, samples: list[Sample], args: argparse.Namespace) -> None:
        generator = torch.Generator().manual_seed(1)
        super().__init__(model, [_masked(sample, args.sizes, generator) for sample in samples], args, "cross_entropy")

    def loss(self, sample: Sample) -> Tensor:
        """Of a batch: the mean over its masked words."""
        with autocast(self.args):
            loss: Tensor = self.model(**sample["net_input"]).loss
        return loss


def _masked(sample: Sample, sizes: Sizes, generator: torch.Generator) -> dict[str, Any]:
    tokens = sample["net_input"]["src_tokens"]
    words = tokens.ne(PAD)
    chosen = words & (torch.rand(tokens.shape, generator=generator) < MASKED)
    given = {
        "input_ids": tokens.masked_fill(chosen, sizes.vocabulary - 1),
        "attention_mask": words.long(),
        "labels": tokens.masked_fill(~chosen, IGNORED),
    }
    return {**sample, "net_input": given}
