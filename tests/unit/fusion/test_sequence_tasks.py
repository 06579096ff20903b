"""``lstm_lmfusion`` learns to reverse sentences of 30 words with attention, and not without (slow)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lmfusion.consumers.lstm import LSTMFusion

WORDS, LONGEST, ROWS, UPDATES = 10, 30, 64, 3000
FLAGS = {"encoder_embed_dim": 64, "decoder_embed_dim": 64, "decoder_out_embed_dim": 64, "dropout": 0.0}


def reversed_words(length: int) -> tuple[dict[str, Tensor], Tensor]:
    """A batch of random sentences of one length, and the targets: the same words from the last to the first."""
    words, end = torch.randint(4, 4 + WORDS, (ROWS, length)), torch.full((ROWS, 1), 2)
    back = words.flip(1)
    sources = {"src_tokens": torch.cat([words, end], 1), "src_lengths": torch.full((ROWS,), length + 1)}
    return {**sources, "prev_output_tokens": torch.cat([end, back], 1)}, torch.cat([back, end], 1)


def share_right_after_training(model: LSTMFusion) -> float:
    """Train on all lengths up to the longest; return the share of words that are right at the longest."""
    optimizer = torch.optim.Adam(model.parameters())
    for update in range(UPDATES):
        optimizer.param_groups[0]["lr"] = 0.003 * (1 - update / UPDATES)
        sample, target = reversed_words(int(torch.randint(2, LONGEST + 1, ())))
        loss = F.cross_entropy(model(**sample)[0].flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        sample, target = reversed_words(LONGEST)
        return (model(**sample)[0].argmax(-1) == target).float().mean().item()


@pytest.mark.slow
@pytest.mark.parametrize(("attention", "solved"), [("general", True), ("none", False)])
def test_attention_carries_long_sentences(make_lstm_cfg: Any, dictionary: Any, attention: str, solved: bool) -> None:
    """One layer of 64 units, words right at 30 words."""
    flags = {"encoder_bidirectional": True, "decoder_attention": attention}
    task = type("Task", (), {"source_dictionary": dictionary, "target_dictionary": dictionary})
    share = share_right_after_training(LSTMFusion.build_model(make_lstm_cfg(**FLAGS, **flags), task))
    assert (share > 0.97) if solved else (share < 0.6), share
