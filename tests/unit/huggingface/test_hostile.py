"""A tokenizer in a checkpoint is somebody else's data: whatever it holds, the answer is one line."""

from __future__ import annotations

import json
import re
import resource
from pathlib import Path
from typing import Callable

import pytest
import torch

import lmfusion
from lmfusion import cli
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.errors import InputError
from lmfusion.lm.huggingface_file import save
from lmfusion.text.codec import built_bpe
from lmfusion.text.huggingface import PieceTokenizer
from lmfusion.text.kit import TextKit, to_tensor
from lmfusion.text.two_bpe import pack_pair

pytest.importorskip("transformers")

Saved = Callable[[str], Path]
SHELL = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
         "pre_tokenizer": None, "post_processor": None, "decoder": None}  # fmt: skip
PAIRS = {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]]}
WORDS = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "z"}
TEXTS = {
    "nothing": "",
    "no JSON": "{",
    "no tokenizer": "{}",
    "too deep": "[" * 100_000,
    "merges of no pieces": json.dumps({**SHELL, "model": PAIRS}),
    "another": json.dumps({**SHELL, "model": WORDS}),
    "a panic": json.dumps(
        {**SHELL, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "A"}, "model": WORDS}
    ),
}


def peak() -> int:
    """Bytes of memory that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def one_line(error: BaseException) -> bool:
    return "\n" not in str(error)


@pytest.fixture
def file(saved_models: Saved, tmp_path: Path) -> Path:
    """A BERT as one file."""
    save(lmfusion.load_lm(saved_models("bert")), tmp_path / "bert.pt")
    return tmp_path / "bert.pt"


@pytest.mark.parametrize("model_type", ["bert", "xlm-roberta", "gpt2"])
@torch.no_grad()
def test_a_model_as_one_file_is_the_model_of_its_folder(saved_models: Saved, tmp_path: Path, model_type: str) -> None:
    folder, text = saved_models(model_type), "A file, with <s> and two  spaces."
    assert cli.main(["hf", "save", str(folder), "--out", str(tmp_path / "lm.pt")]) == 0
    expected, lm = lmfusion.load_lm(folder), lmfusion.load_lm(tmp_path / "lm.pt")
    assert (lm.family, lm.title, lm.symbols) == (expected.family, expected.title, expected.symbols)
    assert torch.equal(lm.encode(text), expected.encode(text))
    assert lm.decode(lm.encode(text)) == expected.decode(expected.encode(text))
    torch.testing.assert_close(lm.top_state(lm.encode(text)), expected.top_state(lm.encode(text)), rtol=0, atol=0)
    assert lmfusion.load_lm(tmp_path / "lm.pt", dtype="bfloat16").token_embedding.weight.dtype == torch.bfloat16


@pytest.mark.parametrize("kind", TEXTS)
def test_a_tokenizer_that_is_none_is_one_line(file: Path, kind: str) -> None:
    state = read_checkpoint(file)
    config = json.loads(state["cfg"]["model"]["lm_config"])
    content = TEXTS[kind].encode()
    state["cfg"]["model"]["lm_config"] = json.dumps({**config, "tokenizer_bytes": len(content)})
    state["model"]["decoder.symbol_table.tokenizer_file"] = to_tensor(content)
    torch.save(state, file)
    lm = lmfusion.load_lm(file)
    if not content:
        assert lm.vocabulary.tokenizer is None
        return
    for use in (lambda: lm.encode("a file"), lambda: lm.decode(torch.tensor([[5]])), lambda: lm.vocabulary.keeps_case):
        with pytest.raises(InputError) as caught:
            use()
        assert one_line(caught.value), caught.value


@pytest.mark.parametrize("number", [10**6, -1])
def test_a_table_with_ids_that_the_embeddings_lack_is_one_line(file: Path, number: int) -> None:
    state = read_checkpoint(file)
    state["model"]["decoder.symbol_table.model_ids"][7] = number
    torch.save(state, file)
    with pytest.raises(InputError, match="rows") as caught:
        lmfusion.load_lm(file)
    assert one_line(caught.value)


def test_a_file_that_describes_none_is_one_line(file: Path) -> None:
    whole = read_checkpoint(file)
    config = json.loads(whole["cfg"]["model"]["lm_config"])
    for wrong in (
        "{",
        "[]",
        json.dumps({**config, "model_type": "gpt2"}),
        json.dumps({**config, "settings": {"n": 1}}),
    ):
        torch.save({**whole, "cfg": {"model": {**whole["cfg"]["model"], "lm_config": wrong}}}, file)
        with pytest.raises(InputError) as caught:
            lmfusion.load_lm(file)
        assert one_line(caught.value), caught.value


@pytest.mark.parametrize("change", ["tokenizer", "symbols", "ids", "opening"])
def test_the_tokenizers_of_a_translation_model_are_no_less_checked(saved_models: Saved, change: str) -> None:
    content = json.loads(pack_pair(f"hf:{saved_models('bert')}", None))
    content["src"][change] = {"tokenizer": TEXTS["a panic"], "symbols": ["a"], "ids": [1] * 3, "opening": ["nowhere"]}[
        change
    ]
    kit = TextKit(bpe={"_name": "lmfusion"}, bpe_file=json.dumps(content).encode())
    with pytest.raises(InputError) as caught:
        built_bpe(kit)
    assert one_line(caught.value), caught.value
    assert re.search("lmfusion", str(caught.value))


def test_a_text_on_which_a_pattern_runs_away_is_one_line() -> None:
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    words = {name: number for number, name in enumerate(["<s>", "<pad>", "</s>", "<unk>"])}
    model = {"type": "WordLevel", "vocab": words, "unk_token": "<unk>"}
    text = json.dumps({**SHELL, "pre_tokenizer": split, "model": model})
    tokenizer = PieceTokenizer.from_text(text, list(words), [0, 1, 2, 3], ())
    assert tokenizer.encode("b") == ["<unk>"]
    with pytest.raises(InputError) as caught:
        tokenizer.encode("a" * 40 + "b")
    assert one_line(caught.value)


COUNTS = [
    *(("bert", "num_hidden_layers"), ("gpt2", "n_layer"), ("t5", "num_layers"), ("t5", "num_decoder_layers")),
    *(("qwen2", "num_hidden_layers"), ("bert", "num_labels")),
]


@pytest.mark.parametrize(("model_type", "name"), COUNTS)
def test_a_folder_whose_settings_ask_for_lists_without_end(
    make_folder: Callable[..., Path], model_type: str, name: str
) -> None:
    folder = make_folder(model_type)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, name: 10_000_000}), encoding="utf-8")
    before = peak()
    for read in (lmfusion.load_lm, PieceTokenizer.from_folder):
        with pytest.raises(InputError, match=rf"config\.json: its {name} is 10,000,000"):
            read(folder)
    assert peak() - before < 100 << 20


def with_settings(file: Path, **settings: object) -> None:
    state = read_checkpoint(file)
    config = json.loads(state["cfg"]["model"]["lm_config"])
    state["cfg"]["model"]["lm_config"] = json.dumps({**config, "settings": {**config["settings"], **settings}})
    torch.save(state, file)


SETTINGS = [("num_hidden_layers", 10_000_000), ("num_hidden_layers", -1), ("num_hidden_layers", None)]
SETTINGS += [("hidden_size", 10_000_000), ("hidden_size", 0), ("vocab_size", -3), ("vocab_size", 10**11)]
SETTINGS += [("max_position_embeddings", 10**10), ("num_attention_heads", 0), ("num_attention_heads", 7)]
SETTINGS += [("hidden_act", "os.system"), ("layer_types", ["x"]), ("hidden_size", "x")]


@pytest.mark.parametrize(("name", "value"), SETTINGS)
def test_a_file_whose_settings_no_model_has(file: Path, name: str, value: object) -> None:
    with_settings(file, **{name: value})
    before = peak()
    with pytest.raises(InputError, match=r"bert\.pt") as caught:
        lmfusion.load_lm(file)
    assert one_line(caught.value)
    assert peak() - before < 100 << 20


@pytest.mark.parametrize("value", [10**9, -5, "x"])
def test_a_number_of_labels_is_not_asked_for(file: Path, value: object) -> None:
    """A model without a head has none."""
    expected = lmfusion.load_lm(file)
    with_settings(file, num_labels=value)
    lm = lmfusion.load_lm(file)
    tokens = lm.encode("a file")
    assert torch.equal(lm.top_state(tokens), expected.top_state(tokens))


VALUES = [("settings", [1]), ("settings", None), ("opening", 5), ("opening", [1]), ("tokenizer_bytes", "x")]
VALUES += [("tokenizer_bytes", 10**12), ("tokenizer_bytes", -1), ("lora", 10**9), ("dtype", "x"), ("dtype", None)]
VALUES += [("dropout", "x"), ("model_type", 5), ("licence", [1])]


@pytest.mark.parametrize(("name", "value"), VALUES)
def test_a_file_whose_values_are_of_other_types(file: Path, name: str, value: object) -> None:
    state = read_checkpoint(file)
    config = json.loads(state["cfg"]["model"]["lm_config"])
    state["cfg"]["model"]["lm_config"] = json.dumps({**config, name: value})
    torch.save(state, file)
    with pytest.raises(InputError, match=r"bert\.pt") as caught:
        lmfusion.load_lm(file)
    assert one_line(caught.value)
