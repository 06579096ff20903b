"""``lstm_lmfusion`` learns to copy and to reverse sentences of 30 words with attention, and not without (slow)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lmfusion.consumers.lstm import LSTMFusion

WORDS, LONGEST, ROWS, UPDATES = 10, 30, 64, 3000
FLAGS = {"encoder_embed_dim": 64, "decoder_embed_dim": 64, "decoder_out_embed_dim": 64, "dropout": 0.0}


def batch(task: str, length: int) -> tuple[dict[str, Tensor], Tensor]:
    """Random sentences of one length, and the targets: the same words, from the last to the first if reversed."""
    words, end = torch.randint(4, 4 + WORDS, (ROWS, length)), torch.full((ROWS, 1), 2)
    back = words.flip(1) if task == "reverse" else words
    sources = {"src_tokens": torch.cat([words, end], 1), "src_lengths": torch.full((ROWS,), length + 1)}
    return {**sources, "prev_output_tokens": torch.cat([end, back], 1)}, torch.cat([back, end], 1)


def share_right_after_training(model: LSTMFusion, task: str) -> float:
    """Train on all lengths up to the longest; return the share of words that are right at the longest."""
    optimizer = torch.optim.Adam(model.parameters())
    for update in range(UPDATES):
        optimizer.param_groups[0]["lr"] = 0.003 * (1 - update / UPDATES)
        sample, target = batch(task, int(torch.randint(2, LONGEST + 1, ())))
        loss = F.cross_entropy(model(**sample)[0].flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        sample, target = batch(task, LONGEST)
        return (model(**sample)[0].argmax(-1) == target).float().mean().item()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "attention"), [("reverse", "general"), ("reverse", "additive"), ("copy", "general"), ("copy", "none")]
)
def test_attention_carries_long_sentences(make_lstm_cfg: Any, dictionary: Any, task: str, attention: str) -> None:
    """One layer of 64 units, words right at 30 words."""
    flags = {"encoder_bidirectional": True, "decoder_attention": attention}
    setup = type("Task", (), {"source_dictionary": dictionary, "target_dictionary": dictionary})
    share = share_right_after_training(LSTMFusion.build_model(make_lstm_cfg(**FLAGS, **flags), setup), task)
    assert (share < 0.6) if attention == "none" else (share > 0.97), share
