"""Trained word vectors are what fairseq's --encoder-embed-path and --decoder-embed-path make of the same file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModel
from torch import Tensor

from lmfusion.fusion.model import TransformerLMFusion

WIDTH = 8
PLACES = {"src": "encoder", "tgt": "decoder"}


@pytest.fixture
def files(dictionary: Dictionary, target_dictionary: Dictionary, tmp_path: Path) -> dict[str, Path]:
    """Vectors of every symbol of each side but <s> and <pad>, in another order than the dictionary's."""
    paths = {}
    for side, symbols in (("src", dictionary.symbols), ("tgt", target_dictionary.symbols)):
        words = sorted(symbol for symbol in symbols if symbol not in ("<s>", "<pad>"))
        lines = [f"{word} {' '.join(map(str, torch.randn(WIDTH).tolist()))}" for word in words]
        paths[side] = tmp_path / f"{side}.vec"
        paths[side].write_text("\n".join([f"{len(words)} {WIDTH}", *lines]) + "\n", encoding="utf-8")
    return paths


def loss_of(model: Any, net_input: dict[str, Tensor]) -> Tensor:
    """The mean negative log-likelihood of fixed targets where there is no padding."""
    logits = model(**net_input)[0]
    targets = torch.tensor([[5, 8, 4, 9, 6, 2], [4, 4, 7, 2, 1, 1], [9, 2, 1, 1, 1, 1]])
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=1)


@pytest.mark.parametrize("theirs", [TransformerModel, TransformerLMFusion])
@pytest.mark.parametrize("sides", [("src",), ("tgt",), ("src", "tgt")], ids="-".join)
def test_finetuned_vectors_are_fairseqs_pretrained_embeddings_bit_for_bit(
    make_cfg: Any,
    task: SimpleNamespace,
    files: dict[str, Path],
    net_input: dict[str, Tensor],
    monkeypatch: pytest.MonkeyPatch,
    theirs: Any,
    sides: tuple[str, ...],
) -> None:
    """Also against fairseq's own class, once the faster kernels, whose sums round otherwise, are away."""
    if theirs is TransformerModel:
        monkeypatch.setattr("lmfusion.fusion.model.speed_up", lambda *_, **__: None)
    ours_cfg, their_cfg = make_cfg(), make_cfg()
    for side in sides:
        setattr(ours_cfg, f"{side}_fusion", "finetune")
        setattr(ours_cfg, f"{side}_lm", str(files[side]))
        setattr(their_cfg, f"{PLACES[side]}_embed_path", str(files[side]))
    models = []
    for kind, cfg in ((TransformerLMFusion, ours_cfg), (theirs, their_cfg)):
        torch.manual_seed(1)
        models.append(kind.build_model(cfg, task).train())
    ours, other = models
    assert_same(ours, other, sides)
    optimizers = [torch.optim.Adam(model.parameters(), lr=0.01) for model in models]
    for _ in range(3):
        losses = [loss_of(model, net_input) for model in models]
        assert torch.equal(*losses)
        for loss, optimizer in zip(losses, optimizers):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert_same(ours, other, sides)


def assert_same(ours: Any, theirs: Any, sides: tuple[str, ...]) -> None:
    """All weights are equal, the vectors except for <s> and <pad>, which are in no file and in no sentence."""
    expected, found = theirs.state_dict(), ours.state_dict()
    for side in sides:
        name = f"{PLACES[side]}.embed_tokens"
        vectors = found.pop(f"{name}.representation.lm.token_embedding.weight")
        assert torch.equal(vectors[2:], expected.pop(f"{name}.weight")[2:])
        found.pop(f"{name}.representation.lm.symbol_table.codes")
    assert set(found) == set(expected)
    assert [name for name in found if not torch.equal(found[name], expected[name])] == []
