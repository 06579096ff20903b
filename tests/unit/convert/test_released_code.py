"""Converted checkpoints of the released code give the numbers which that code itself gave (to 1e-5, float32).

Only sentences without padding are compared past the towers: the released joining block reads what its backward tower
says of the padding behind a sentence, where ours reads zero vectors (SPEC section 6).
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import lmfusion
from lmfusion.checkpoint.reading import read_file
from lmfusion.convert import Inputs, convert
from lmfusion.lm.transformer.layout import RowLayout


@pytest.fixture
def expected(released_code: Path) -> Any:
    """Inputs, and what the released code gave."""
    return torch.load(released_code / "expected.pt", weights_only=True)


@pytest.fixture
def converted(released_code: Path, tmp_path: Path) -> Any:
    """A converted checkpoint, written: its path."""

    def run(name: str, **inputs: Any) -> Path:
        given = Inputs(dictionary=str(released_code / "dict.txt"), **inputs)
        convert(released_code / f"{name}.pt", given).write(tmp_path / f"{name}.pt")
        return tmp_path / f"{name}.pt"

    return run


@torch.no_grad()
def test_cloze_lm(converted: Any, expected: Any, close: Any) -> None:
    lm: Any = lmfusion.load_lm(converted("bilm"))
    tokens = expected["bilm"]["tokens"]
    real = tokens.ne(lm.padding_idx)
    assert real[0].all()
    forward, backward = lm.tower_states(tokens, RowLayout(~real))
    states = [forward[0], *(state for pair in zip(forward[1:], backward[1:]) for state in pair)]
    for found, state in zip(states, expected["bilm"]["inner"][:-1], strict=True):
        close(found[real], state[real])
    joined = lm.join(forward[-1][:1], backward[-1][:1], RowLayout(~real[:1]))
    close(joined[0], expected["bilm"]["inner"][-1][0])
    close(lm(tokens)[0][0], expected["bilm"]["logits"][0])
    close(lm.top_state(tokens)[0], expected["bilm_nomask"]["last"][0])
    close(lm.output_layer(lm.top_state(tokens))[0], expected["bilm_nomask"]["logits"][0])


@torch.no_grad()
def test_causal_lm(converted: Any, expected: Any, close: Any) -> None:
    lm: Any = lmfusion.load_lm(converted("unilm"))
    tokens = expected["unilm"]["tokens"]
    real = tokens.ne(lm.padding_idx)
    for found, state in zip(lm.layer_states(tokens), expected["unilm"]["inner"], strict=True):
        close(found[real], state[real])
    close(lm(tokens)[0][real], expected["unilm"]["logits"][real])


@torch.no_grad()
@pytest.mark.parametrize("how", ["file of the LM", "its converted file", "flags"])
def test_src_elmo(converted: Any, released_code: Path, expected: Any, close: Any, how: str) -> None:
    """What its LM's weights do not tell comes from the LM's file, in either format, or from flags."""
    heads = {"decoder_attention_heads": 4, "double_final_heads": False}
    path = converted("src_elmo", **{
        "file of the LM": lambda: {"lm": [str(released_code / "bilm.pt")]},
        "its converted file": lambda: {"lms": {"src": str(converted("bilm"))}},
        "flags": lambda: {"lm_args": {"src": heads}},
    }[how]())  # fmt: skip
    folder = path.parent
    for lang in ("en", "de"):
        (folder / f"dict.{lang}.txt").write_bytes((released_code / "dict.txt").read_bytes())
    model = lmfusion.load_model(path, data=str(folder)).models[0]
    source, prefix = expected["src_elmo"]["src"][:1], expected["src_elmo"]["prev"][:1]
    assert source.ne(1).all()
    length = torch.tensor([source.size(1)])
    close(model.encoder.embed_tokens(source)[0], expected["src_elmo"]["emb"][0])
    encoded = model.encoder(source, length)["encoder_out"][0]
    close(encoded[:, 0], expected["src_elmo"]["encoder_out"][0])
    close(model(source, length, prefix)[0][0], expected["src_elmo"]["logits"][0])


@torch.no_grad()
def test_the_independent_calculation_is_the_released_codes(
    released_code: Path, expected: Any, reference: ModuleType
) -> None:
    """So that what else is compared with it is compared with that code's arithmetic."""
    for name in ("bilm", "unilm"):
        state = read_file(released_code / f"{name}.pt")
        w, args = reference.double(state["model"]), vars(state["args"])
        tokens = expected[name]["tokens"][0].tolist()
        states, tops = reference.language_model(w, "decoder.", args, tokens)
        for found, released in zip(states, expected[name]["inner"], strict=True):
            torch.testing.assert_close(found.float(), released[0], rtol=0, atol=2e-6)
        logits = reference.softmax_input(w, "decoder.", args, tops[0]).float()
        torch.testing.assert_close(logits, expected[name]["logits"][0], rtol=0, atol=2e-6)
    lm = vars(read_file(released_code / "bilm.pt")["args"])
    state = read_file(released_code / "src_elmo.pt")
    args, given = vars(state["args"]), expected["src_elmo"]
    source, prefix = given["src"][0].tolist(), given["prev"][0].tolist()
    memory, logits = reference.seq2seq(state["model"], args, {"src": lm}, source, prefix)
    mixed = reference.side(reference.double(state["model"]), "encoder", args, lm, source)
    torch.testing.assert_close(mixed.float(), given["emb"][0], rtol=0, atol=2e-6)
    torch.testing.assert_close(memory.float(), given["encoder_out"][0], rtol=0, atol=5e-6)
    torch.testing.assert_close(logits.float(), given["logits"][0], rtol=0, atol=5e-6)
