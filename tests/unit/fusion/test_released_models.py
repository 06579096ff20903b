"""Our towers, joining block and SRC-ELMO mix against numbers that the paper's released code computed itself.

The checkpoints (tiny, random weights, in the released format) lie beside the repository where they are kept; elsewhere
this module skips. Renaming their weights is all that is done here: the converter has tests of its own.

Only sentences without padding are compared past the towers: the released joining block reads what its backward tower
says of the padding behind a sentence, where ours reads zero vectors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from torch import Tensor

from lmfusion.fusion.elmo import ElmoRepresentation
from lmfusion.fusion.source import SourceEmbedding
from lmfusion.lm.layout import RowLayout
from lmfusion.lm.loading import build

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "fixtures" / "released-format"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no checkpoints of the released code beside the repository")

SIZE = 32
RENAMED = [
    ("embed_tokens.weight", "embed.tokens.weight"),
    ("embed_out", "output_weight"),
    ("in_proj_", "in_proj."),
    ("self_attn_layer_norm", "layer_norm"),
    ("final_layer_norm", "ffn.layer_norm"),
    ("fc1", "ffn.fc1"),
    ("fc2", "ffn.fc2"),
    ("full_attn_layer.self_attn.", "join."),
    ("full_attn_layer.", "join."),
]


def read(name: str) -> Any:
    return torch.load(FOLDER / name, weights_only=True)


def renamed(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    result = {}
    for name, value in weights.items():
        name = name.split("decoder.", 1)[1]
        for theirs, ours in RENAMED:
            name = name.replace(theirs, ours)
        if name.startswith("join.in_proj."):
            kind = name.rsplit(".", 1)[1]
            result[f"join.q_proj.{kind}"], result[f"join.kv_proj.{kind}"] = value[:SIZE], value[SIZE:]
        elif "_float_tensor" not in name and name != "version":
            result[name] = value.flatten() if "bias_k" in name or "bias_v" in name else value
    return result


def language_model(family: str, weights: dict[str, Tensor]) -> Any:
    sizes = {"embed_dim": SIZE, "ffn_embed_dim": 64, "layers": 3, "attention_heads": 4}
    config = {f"decoder_{name}": size for name, size in sizes.items()}
    rest = {"tokens_per_sample": 128, "max_target_positions": 128, "targets": ["self"]}
    lm: Any = build({"family": family, **config, **rest}, Dictionary.load(str(FOLDER / "dict.txt")))
    found = lm.load_state_dict(renamed(weights), strict=False)
    assert set(found.missing_keys) <= {"symbol_table.codes", "output_weight"}  # a model in use has no softmax
    assert found.unexpected_keys == []
    return lm.eval()


def assert_close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=5e-6)


@torch.no_grad()
def test_cloze_lm() -> None:
    lm, expected = language_model("bi_transformer_lm", read("bilm.pt")["model"]), read("expected.pt")
    tokens = expected["bilm"]["tokens"]
    real = tokens.ne(lm.padding_idx)
    assert real[0].all()
    forward, backward = lm.tower_states(tokens, RowLayout(~real))
    pairs = [state for pair in zip(forward[1:], backward[1:]) for state in pair]
    for found, state in zip([forward[0], *pairs], expected["bilm"]["inner"]):
        assert_close(found[real], state[real])
    assert len(pairs) == 6
    assert_close(lm(tokens)[0][0], expected["bilm"]["logits"][0])
    assert_close(lm.top_state(tokens)[0], expected["bilm_nomask"]["last"][0])
    assert_close(lm.output_layer(lm.top_state(tokens))[0], expected["bilm_nomask"]["logits"][0])


@torch.no_grad()
def test_causal_lm() -> None:
    lm, expected = language_model("uni_transformer_lm", read("unilm.pt")["model"]), read("expected.pt")["unilm"]
    tokens = expected["tokens"]
    real = tokens.ne(lm.padding_idx)
    for found, state in zip(lm.layer_states(tokens), expected["inner"], strict=True):
        assert_close(found[real], state[real])
    assert_close(lm(tokens)[0][real], expected["logits"][real])


@torch.no_grad()
def test_src_elmo_representation() -> None:
    """From source words to what the encoder gets: </s> in front, wide mask, mix of 3 + 3 states, projection."""
    weights, expected = read("src_elmo.pt")["model"], read("expected.pt")["src_elmo"]
    prefix = "encoder.embed_tokens."
    inner = prefix + "language_model."
    lm = language_model("bi_transformer_lm", {k: v for k, v in weights.items() if k.startswith(inner)})
    own = {k[len(prefix) :]: v for k, v in weights.items() if k.startswith(prefix) and not k.startswith(inner)}
    output_dim = own["projection.weight"].size(0)
    representation = ElmoRepresentation(lm, output_dim, elmo_dropout=0.2, affine=True, dropout=0.0).eval()
    assert representation.projection is not None
    representation.projection.weight.copy_(own.pop("projection.weight"))
    representation.mix.load_state_dict(own)
    tokens = expected["src"][:1]
    assert tokens.ne(lm.padding_idx).all()
    assert_close(SourceEmbedding(representation)(tokens)[0], expected["emb"][0])
