"""BERT of transformers as our family: the same states and logits, and back again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import lmfusion
from lmfusion.cli import main
from lmfusion.convert.bert import _with_mask_last, from_folder
from lmfusion.errors import InputError
from lmfusion.lm.bert import BertLM
from lmfusion.lm.loading import build
from lmfusion.text.huggingface import PieceTokenizer, import_transformers

FIRST, SECOND = "The package contains tools", "for reading old files of mail"


def theirs_of(folder: Path) -> Any:
    return import_transformers().AutoModelForPreTraining.from_pretrained(str(folder)).eval()


def rows_of(folder: Path) -> dict[str, torch.Tensor]:
    """A pair and a single sentence, padded at the right, as the tokenizer of transformers makes them."""
    tokenizer = import_transformers().AutoTokenizer.from_pretrained(str(folder))
    pieces = [tokenizer.encode(text, add_special_tokens=False) for text in (FIRST, SECOND)]
    cls, sep, pad = tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id
    pair = [cls, *pieces[0], sep, *pieces[1], sep]
    single = [cls, *pieces[0], sep]
    gap = [pad] * (len(pair) - len(single))
    return {
        "input_ids": torch.tensor([pair, single + gap]),
        "attention_mask": torch.tensor([[1] * len(pair), [1] * len(single) + [0] * len(gap)]),
        "token_type_ids": torch.tensor([[0] * len(single) + [1] * (len(pair) - len(single)), [0] * len(pair)]),
    }


@torch.no_grad()
def test_states_and_both_logits_are_those_of_transformers(make_folder: Callable[..., Path]) -> None:
    folder = make_folder()
    rows, theirs = rows_of(folder), theirs_of(folder)
    expected = theirs(**rows, output_hidden_states=True)
    lm = from_folder(folder).model
    assert isinstance(lm, BertLM)
    ids = lm.vocabulary.model_ids
    ours = torch.argsort(ids)[rows["input_ids"]]
    words = rows["attention_mask"].bool()
    for state, other in zip(lm.layer_states(ours), expected.hidden_states, strict=True):
        torch.testing.assert_close(state[words], other[words], rtol=0, atol=1e-5)
    logits, others = lm(ours)
    torch.testing.assert_close(logits[words], expected.prediction_logits[words][:, ids], rtol=0, atol=1e-5)
    torch.testing.assert_close(others["pair"], expected.seq_relationship_logits, rtol=0, atol=1e-5)
    pooled = theirs.bert(**rows).pooler_output
    torch.testing.assert_close(lm.pool(lm.top_state(ours), ~words), pooled, rtol=0, atol=1e-5)


@torch.no_grad()
def test_both_directions_of_the_command_keep_every_weight_and_the_text(
    make_folder: Callable[..., Path], tmp_path: Path
) -> None:
    folder, ours, back = make_folder(), tmp_path / "bert.pt", tmp_path / "back"
    main(["hf", "import", str(folder), "--out", str(ours), "--dict", str(tmp_path / "dict.txt")])
    main(["hf", "export", str(ours), "--out", str(back)])
    before, after = theirs_of(folder).state_dict(), theirs_of(back).state_dict()
    assert set(before) == set(after)
    for name, weight in before.items():
        torch.testing.assert_close(after[name], weight, rtol=0, atol=0)
    text = f"{FIRST} {SECOND}"
    assert PieceTokenizer.from_folder(back).encode(text) == PieceTokenizer.from_folder(folder).encode(text)
    lm = lmfusion.load_lm(ours)
    assert lm.symbols[-1] == "<mask>"
    assert [line.split()[0] for line in (tmp_path / "dict.txt").read_text().splitlines()] == lm.symbols[4:]
    pieces = [*PieceTokenizer.from_folder(folder).encode(text), "</s>"]
    assert [lm.symbols[number] for number in lm.encode(text)[0]] == ["<s>", *pieces]


@torch.no_grad()
def test_a_model_without_a_tokenizer_is_read_by_its_symbols(
    make_bert: Callable[..., BertLM], save_bert: Callable[[BertLM], Path], tmp_path: Path
) -> None:
    lm = make_bert()
    main(["hf", "export", str(save_bert(lm)), "--out", str(tmp_path / "folder")])
    tokenizer = import_transformers().AutoTokenizer.from_pretrained(str(tmp_path / "folder"))
    rows = tokenizer("w1 al.le@@ unheard", "w3", return_tensors="pt")
    found = [lm.symbols[number] for number in rows["input_ids"][0].tolist()]
    assert found == "<s> w1 al.le@@ <unk> </s> w3 </s>".split(), "pieces are not split at signs"
    expected = theirs_of(tmp_path / "folder")(**rows, output_hidden_states=True).hidden_states
    for state, other in zip(lm.layer_states(rows["input_ids"]), expected, strict=True):
        torch.testing.assert_close(state, other, rtol=0, atol=1e-5)


def test_a_folder_of_a_model_that_was_trained_here_is_read_again(
    make_bert: Callable[..., BertLM], save_bert: Callable[[BertLM], Path], tmp_path: Path
) -> None:
    """Its tokenizer takes symbols between spaces, and calls the mask <mask>."""
    lm, ours, again = make_bert(), tmp_path / "folder", tmp_path / "again.pt"
    assert main(["hf", "export", str(save_bert(lm)), "--out", str(ours)]) == 0
    assert main(["hf", "import", str(ours), "--out", str(again), "--dict", str(tmp_path / "dict.txt")]) == 0
    found = lmfusion.load_lm(again)
    assert found.symbols == lm.symbols
    assert [line.split()[0] for line in (tmp_path / "dict.txt").read_text().splitlines()] == lm.symbols[4:]
    for name, weight in lm.named_parameters():
        torch.testing.assert_close(found.get_parameter(name), weight, rtol=0, atol=0)
    assert [lm.symbols[number] for number in found.encode("w1 unheard w19")[0]] == "<s> w1 <unk> w19 </s>".split()


def test_a_symbol_with_a_backslash_stays_what_it_is_in_the_training_text(
    make_bert: Callable[..., BertLM], save_bert: Callable[[BertLM], Path], tmp_path: Path
) -> None:
    """As of prepared text, whose dictionary has it as it is; a piece of a tokenizer of one's own is escaped."""
    names = ["w1", r"C:\tmp", "\\", r"\5c;", "w2"]
    lm, ours, again = make_bert(names), tmp_path / "folder", tmp_path / "again.pt"
    assert main(["hf", "export", str(save_bert(lm)), "--out", str(ours)]) == 0
    assert main(["hf", "import", str(ours), "--out", str(again), "--dict", str(tmp_path / "dict.txt")]) == 0
    found = lmfusion.load_lm(again)
    assert found.symbols == lm.symbols
    assert [line.split()[0] for line in (tmp_path / "dict.txt").read_text().splitlines()] == lm.symbols[4:]
    text = " ".join(names)
    assert found.encode(text).tolist() == lm.encode(text).tolist()
    assert found.decode(found.encode(text)) == text


def test_a_number_that_no_piece_has_is_a_row_of_zeros(make_folder: Callable[..., Path], tmp_path: Path) -> None:
    """As in a vocabulary with a line that stands there twice; rows behind the last piece are left out."""
    folder, ours, back = make_folder(vocab_size=510), tmp_path / "bert.pt", tmp_path / "back"
    file = folder / "tokenizer.json"
    values = json.loads(file.read_text(encoding="utf-8"))
    pieces = values["model"]["vocab"]
    gone = pieces.pop(next(piece for piece, number in pieces.items() if number == 77))
    file.write_text(json.dumps(values), encoding="utf-8")
    last = max(pieces.values())
    from_folder(folder).write(ours)
    assert main(["hf", "export", str(ours), "--out", str(back)]) == 0
    before, after = (theirs_of(path).state_dict() for path in (folder, back))
    for name, weight in before.items():
        if (name.startswith("cls.predictions.") and "transform" not in name) or "word_embeddings" in name:
            weight = weight[: last + 1].clone()
            weight[gone] = 0
        torch.testing.assert_close(after[name], weight, rtol=0, atol=0)
    assert gone == 77 < last < 509


def test_dropouts_and_the_longest_sentence_go_both_ways(make_folder: Callable[..., Path], tmp_path: Path) -> None:
    said = {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.3, "max_position_embeddings": 24}
    folder, ours, back = make_folder(**said), tmp_path / "bert.pt", tmp_path / "back"
    converted = from_folder(folder)
    config = converted.checkpoint["cfg"]
    assert (config["model"]["dropout"], config["model"]["attention_dropout"]) == (0.2, 0.3)
    assert [config["task"][name] for name in ("tokens_per_sample", "max_target_positions")] == [24, 24]
    converted.write(ours)
    assert main(["hf", "export", str(ours), "--out", str(back)]) == 0
    found = theirs_of(back).config
    assert {name: getattr(found, name) for name in said} == said
    tokenizer = import_transformers().AutoTokenizer.from_pretrained(str(back))
    assert (tokenizer.mask_token, tokenizer.unk_token, tokenizer.cls_token) == ("[MASK]", "[UNK]", "[CLS]")
    assert found.pad_token_id == tokenizer.pad_token_id


def test_a_tokenizer_without_a_mask_is_refused(make_folder: Callable[..., Path]) -> None:
    folder = make_folder()
    tokenizer = PieceTokenizer.from_folder(folder)
    place = tokenizer.symbols.index("[MASK]")
    symbols, ids = ([*each[:place], *each[place + 1 :]] for each in (tokenizer.symbols, tokenizer.ids))
    with pytest.raises(InputError, match=r"bert: .*\[MASK\]"):
        _with_mask_last(folder, replace(tokenizer, symbols=symbols, ids=ids))


def test_a_licence_is_refused_where_there_is_no_card(
    make_bert: Callable[..., BertLM], save_bert: Callable[[BertLM], Path], tmp_path: Path, capsys: Any
) -> None:
    words = ["hf", "export", str(save_bert(make_bert())), "--out", str(tmp_path / "folder")]
    assert main([*words, "--licence", "mit"]) == 2
    assert "--licence mit" in capsys.readouterr().err
    assert not (tmp_path / "folder").exists()


def test_a_model_without_room_for_the_tokenizer_takes_a_converted_checkpoint(make_folder: Callable[..., Path]) -> None:
    """As fairseq-train does that trains it further."""
    converted = from_folder(make_folder()).model
    assert isinstance(converted, BertLM)
    fresh = build({"family": "bert", **converted.config}, converted.symbols)
    fresh.load_state_dict(converted.state_dict())
    assert fresh.encode(FIRST).tolist() == converted.encode(FIRST).tolist()
    torch.testing.assert_close(fresh.state_dict(), converted.state_dict(), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("head", "settings", "named"),
    [
        ("AutoModelForMaskedLM", {}, "pooler"),
        ("AutoModelForPreTraining", {"hidden_act": "relu"}, "hidden_act"),
        ("AutoModelForPreTraining", {"layer_norm_eps": 1e-5}, "layer_norm_eps"),
        ("AutoModelForPreTraining", {"type_vocab_size": 3}, "type_vocab_size"),
        ("AutoModelForPreTraining", {"tie_word_embeddings": False}, "output embeddings"),
    ],
)
def test_what_the_family_has_no_place_for_is_refused(
    make_folder: Callable[..., Path], head: str, settings: dict[str, Any], named: str
) -> None:
    with pytest.raises(InputError, match=named):
        from_folder(make_folder(head, **settings))


def test_other_models_and_folders_that_are_there_are_refused(
    make_bert: Callable[..., BertLM], save_bert: Callable[[BertLM], Path], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="no model of Hugging Face"):
        from_folder(tmp_path)
    path = save_bert(make_bert())
    assert main(["hf", "export", str(path), "--out", str(tmp_path)]) != 0
