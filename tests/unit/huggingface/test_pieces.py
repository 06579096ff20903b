"""Pieces of a Hugging Face tokenizer survive fairseq's text formats, and become text again."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import pytest
from fairseq.data import Dictionary
from fairseq.data.encoders import build_bpe

import lmfusion
from lmfusion import cli
from lmfusion.text.huggingface import PieceTokenizer
from lmfusion.text.piece_symbols import escape
from lmfusion.text.two_bpe import TwoBPE, TwoBPEConfig

transformers = pytest.importorskip("transformers")
Tokenizer = pytest.importorskip("tokenizers").Tokenizer

Saved = Callable[[str], Path]
SENTENCEPIECE = Path(__file__).resolve().parents[3] / "pretrained" / "spm.model"
SPACES = ["\u00a0", "a\u3000b", "\x85", "\t", "\x1c", " x"]
ROLE_NAMES = ["<s>", "</s>", "<pad>", "<unk>"]
AWKWARD = [
    *SPACES,
    *ROLE_NAMES,
    "\\3c;s>",
    "\\",
    "\\\\",
    "\\20;",
    "<s>x",
    "Ġ",
    "▁",
    "#",
    "##a",
    "1",
    "#fairseq:overwrite",
]


def written(tokenizer: PieceTokenizer, folder: Path) -> Dictionary:
    (folder / "dict.txt").write_text(tokenizer.dictionary_text(), encoding="utf-8")
    return Dictionary.load(str(folder / "dict.txt"))


@pytest.mark.parametrize(
    "model_type",
    ["bert", "gpt2", *(pytest.param(name, marks=pytest.mark.slow) for name in ("roberta", "xlm-roberta", "llama"))],
)
def test_through_fairseqs_dictionary_every_sentence_has_the_ids_of_transformers_and_its_text(
    saved_models: Saved, corpus: Any, tmp_path: Path, model_type: str
) -> None:
    folder = saved_models(model_type)
    tokenizer, theirs = PieceTokenizer.from_folder(folder), transformers.AutoTokenizer.from_pretrained(folder)
    dictionary = written(tokenizer, tmp_path)
    whole, lines = 0, [*corpus("en", 2000), *corpus("de", 2000)]
    for line in lines:
        pieces = " ".join(tokenizer.encode(line))
        ids = dictionary.encode_line(pieces, add_if_not_exist=False).tolist()
        assert [tokenizer.ids[number] for number in ids[:-1]] == theirs(line, add_special_tokens=False)["input_ids"]
        text = tokenizer.decode(dictionary.string(ids).split())
        if "<unk>" in pieces:  # a letter that the 600 sentences of its training lack
            continue
        whole += 1
        if model_type == "bert":  # WordPiece does not say where punctuation stood beside a word
            assert "".join(text.split()) == "".join(line.split())
        else:
            assert text == line
    assert whole > 0.95 * len(lines)


def test_pieces_with_white_space_or_fairseqs_own_names_stay_what_they_are(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models

    words = ["[BOS]", "[PAD]", "[EOS]", "[UNK]", *AWKWARD]
    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer = PieceTokenizer(
        made, [*ROLE_NAMES[:1], "<pad>", "</s>", "<unk>", *map(escape, AWKWARD)], list(range(len(words)))
    )
    dictionary = written(tokenizer, tmp_path)
    assert dictionary.symbols == tokenizer.symbols
    assert len(set(tokenizer.symbols)) == len(words)
    for number, word in enumerate(AWKWARD, start=4):
        (symbol,) = tokenizer.encode(word)
        assert dictionary.encode_line(symbol, add_if_not_exist=False).tolist() == [number, 2]
        assert tokenizer.decode([symbol]) == " ".join(word.splitlines())


@pytest.mark.parametrize("model_type", ["roberta", "xlm-roberta", "gpt2", "bert"])
def test_names_of_special_symbols_in_a_text_are_text(saved_models: Saved, model_type: str) -> None:
    tokenizer = PieceTokenizer.from_folder(saved_models(model_type))
    text = "The <s> tag, </s> and <|endoftext|> and [SEP]"
    pieces = tokenizer.encode(text)
    assert not {"<s>", "</s>", "<pad>"} & set(pieces)
    assert len(pieces) > 20
    if model_type in ("roberta", "gpt2"):
        assert tokenizer.decode(pieces) == text


def test_a_dictionary_is_the_models_symbols(saved_models: Saved, tmp_path: Path, capsys: Any) -> None:
    for model_type in ("bert", "xlm-roberta", "gpt2"):
        folder, out = saved_models(model_type), tmp_path / f"{model_type}.txt"
        assert cli.main(["hf", "dictionary", str(folder), "--out", str(out)]) == 0
        lm = lmfusion.load_lm(folder)
        assert Dictionary.load(str(out)).symbols == lm.symbols
        assert f"{len(lm.symbols):,} symbols" in capsys.readouterr().out


def test_commands_turn_lines_into_pieces_and_back(
    saved_models: Saved, corpus: Any, capsys: Any, monkeypatch: Any
) -> None:
    folder, lines = str(saved_models("roberta")), [*corpus("de", 50), "", "a\u2028b"]

    def run(step: str, text: str) -> str:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
        assert cli.main(["hf", step, folder]) == 0
        return str(capsys.readouterr().out)

    pieces = run("encode", "".join(line + "\n" for line in lines))
    assert pieces.count("\n") == len(lines)
    assert run("decode", pieces).split("\n") == [*lines[:-1], "a b", ""]  # one line for one line
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"good\n\xff\xfe\n")))
    assert cli.main(["hf", "encode", folder]) == 2
    assert "line 2" in capsys.readouterr().err


@pytest.mark.parametrize("direction", ["left", "right"])
def test_padding_and_truncation_that_a_tokenizer_file_asks_for_are_left_out(
    make_folder: Callable[..., Path], direction: str
) -> None:
    folder = make_folder("bert")
    plain = PieceTokenizer.from_folder(folder)
    given = Tokenizer.from_file(str(folder / "tokenizer.json"))
    given.enable_padding(length=128, direction=direction)  # as the files of sentence encoders have it
    given.enable_truncation(4)
    given.save(str(folder / "tokenizer.json"))
    tokenizer, line = PieceTokenizer.from_folder(folder), "These files are read and written by the package manager."
    assert (tokenizer.symbols, tokenizer.ids, tokenizer.opening, tokenizer.closes) == (
        *(plain.symbols, plain.ids, plain.opening, plain.closes),
    )
    assert tokenizer.encode(line) == plain.encode(line)
    assert len(plain.encode(line)) > 4


def test_fairseq_encodes_the_source_by_one_and_decodes_the_target_by_the_other(saved_models: Saved) -> None:
    flags = {"_name": "lmfusion", "src_bpe": f"hf:{saved_models('bert')}", "tgt_bpe": f"sentencepiece:{SENTENCEPIECE}"}
    bpe = build_bpe(SimpleNamespace(bpe="lmfusion", **flags))
    assert bpe.encode("Files").split() == PieceTokenizer.from_folder(saved_models("bert")).encode("Files")
    assert bpe.decode("▁der ▁H und ▁bell te") == "der Hund bellte"
    other = TwoBPE(TwoBPEConfig(tgt_bpe=f"hf:{saved_models('gpt2')}"))
    pieces = PieceTokenizer.from_folder(saved_models("gpt2")).encode("Der Hund bellte.")
    assert other.encode("as it is") == "as it is"
    assert other.decode(" ".join(pieces)) == "Der Hund bellte."
    assert other.decode(" ".join([*pieces, "<unk>", *pieces])) == "Der Hund bellte. <unk> Der Hund bellte."


@pytest.mark.parametrize("given", ["hf:", "bert", "moses:x", "sentencepiece:nowhere.model", "hf:nowhere"])
def test_a_segmentation_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(lmfusion.InputError):
        TwoBPE(TwoBPEConfig(src_bpe=given))


def test_a_tokenizer_that_loses_capitals_is_refused_for_a_target_alone(tmp_path: Path) -> None:
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcd"])}
    transformers.AutoConfig.for_model("bert").save_pretrained(tmp_path)
    transformers.BertTokenizer(vocab=vocabulary, do_lower_case=True).save_pretrained(tmp_path)
    assert TwoBPE(TwoBPEConfig(src_bpe=f"hf:{tmp_path}")).encode("A") == "a"
    with pytest.raises(lmfusion.InputError, match="capitals"):
        TwoBPE(TwoBPEConfig(tgt_bpe=f"hf:{tmp_path}"))


def test_a_slow_tokenizer_is_refused_with_the_name_of_the_fast_one(tmp_path: Path) -> None:
    transformers.AutoConfig.for_model("bert").save_pretrained(tmp_path)
    transformers.ByT5Tokenizer().save_pretrained(tmp_path)
    with pytest.raises(lmfusion.InputError, match=r"slow.*tokenizer\.json"):
        PieceTokenizer.from_folder(tmp_path)
