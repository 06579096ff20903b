"""Causal language models of every kind of embeddings and positions as a folder of OPT, and the model card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from lmfusion.convert import causal_folder

transformers = pytest.importorskip("transformers")
ROWS = [[2, 5, 8], [2, *range(3, 24), 9, 4, 11, 7, 20, 2]]


@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"share_decoder_input_output_embed": True},
        {"decoder_learned_pos": True},
        {"no_token_positional_embeddings": True},
    ],
    ids=["apart", "tied", "learned positions", "no positions"],
)
@torch.no_grad()
def test_logits_of_embeddings_and_positions_of_every_kind(
    make_causal: Any, save_lm: Any, tmp_path: Path, flags: dict[str, Any]
) -> None:
    lm = make_causal(**flags)
    causal_folder.to_folder(save_lm(lm), tmp_path / "hf")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf").eval()
    for row in ROWS:
        tokens = torch.tensor([row])
        torch.testing.assert_close(model(tokens).logits, lm(tokens)[0], rtol=1e-4, atol=3e-5)
    card = " ".join((tmp_path / "hf" / "README.md").read_text(encoding="utf-8").split())
    assert f"2 layers of 16 channels, 24 symbols, sentences of up to {lm.max_positions()} tokens" in card
    assert "license" not in card
