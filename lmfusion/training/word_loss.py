"""The loss of a language model inside a translation model on the batch's own sentences, as in its pretraining."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from fairseq.utils import convert_padding_direction
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.lm.cloze import ClozeLM
from lmfusion.lm.interface import TOP, PretrainedLM


def check_predicts(lm: PretrainedLM) -> None:
    """Refuse a language model that has no loss on whole sentences, or whose output embeddings are not kept.

    Raises:
        InputError: naming what is missing.
    """
    cloze = isinstance(lm, ClozeLM) and lm.targets == ["self"]
    if not cloze and (lm.sees_future or type(lm).logits is PretrainedLM.logits):
        raise InputError(
            f"--lm-loss-weight: a {lm.title} has no loss on whole sentences: take a cloze LM, or one that predicts "
            f"next words."
        )
    if not lm.config.get("share_decoder_input_output_embed"):
        raise InputError(
            f"--lm-loss-weight: the output embeddings of this {lm.title} are not kept: take one whose output and input "
            f"embeddings are the same (--share-decoder-input-output-embed)."
        )


def word_loss(lm: PretrainedLM, rows: Tensor) -> tuple[Tensor, int]:
    """Compute the cross-entropy of the words of sentences in a language model.

    A cloze LM predicts each word from all others, any other one from those before it; ``</s>`` at the end counts.

    Args:
        lm: one that :func:`check_predicts` accepts.
        rows: B x T ids with the LM's frame, padding on the right.

    Returns:
        The sum over all words, a scalar, and their number.
    """
    if isinstance(lm, ClozeLM):
        target = rows.clone()
        target[:, : len(lm.vocabulary.opening)] = lm.padding_idx
        logits = lm(rows)[0]
    else:
        top = lm.states(rows[:, :-1], want={TOP}).top
        assert top is not None
        logits, target = lm.logits(top), rows[:, 1:]
    loss = F.cross_entropy(
        logits.float().flatten(0, -2), target.flatten(), ignore_index=lm.padding_idx, reduction="sum"
    )
    return loss, int(target.ne(lm.padding_idx).sum())


def framed_rows(model: Any, stack: Any, sample: dict[str, Any]) -> Tensor:
    """Return the rows that a side's language model reads of a batch, whole: B x T ids with its frame.

    Args:
        model: an encoder-decoder model with language models inside.
        stack: its encoder or its decoder.
        sample: fairseq's batch.
    """
    reader = stack.embed_tokens
    if stack is model.encoder:
        framed, _ = reader.frame(sample["net_input"]["src_tokens"])
        rows: Tensor = framed.tokens
        return rows
    padding = stack.dictionary.pad()
    prefixes, target = (
        convert_padding_direction(tokens, padding, left_to_right=True)  # --left-pad-target
        for tokens in (sample["net_input"]["prev_output_tokens"], sample["target"])
    )
    ids: Tensor = reader.lm.vocabulary.ids(torch.cat([prefixes[:, :1], target], dim=1))
    return ids
