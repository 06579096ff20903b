"""A sentencepiece model as a tokenizer of the package tokenizers: the same ids, or symbols between spaces."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from lmfusion.convert.piece_tokenizer import piece_tokenizer
from lmfusion.lm.vocabulary import Vocabulary
from lmfusion.text.codec import TextCodec
from lmfusion.text.kit import TextKit

Tokenizer: Any = pytest.importorskip("tokenizers").Tokenizer
LINES = ["the package contains tools", "for reading old files of mail", "a tool, the files and the mail"] * 9
PLAIN = {"model_type": "bpe", "normalization_rule_name": "identity"}
SPM = {"_name": "sentencepiece", "sentencepiece_enable_sampling": False}
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


@pytest.fixture
def make_vocabulary() -> Callable[..., Vocabulary]:
    """The symbols of a sentencepiece model that is trained with these settings, and its codec."""

    def make(moses: dict[str, Any] | None = None, left_out: tuple[str, ...] = (), **settings: Any) -> Vocabulary:
        model, lines = io.BytesIO(), settings.pop("lines", LINES)
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=model, num_threads=1, minloglevel=2, hard_vocab_limit=False,
            **{"vocab_size": 45, **settings},
        )  # fmt: skip
        processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        pieces = [processor.id_to_piece(number) for number in range(3, processor.get_piece_size())]
        vocabulary = Vocabulary([*SPECIAL, *(piece for piece in pieces if piece not in left_out)])
        vocabulary.codec = TextCodec(TextKit(tokenizer=moses or {}, bpe=SPM, bpe_file=model.getvalue()))
        return vocabulary

    return make


@pytest.mark.parametrize(
    "text",
    [
        "the files of old mail",
        "  tools   and  mail ",
        "Ünheard ☃☃ ☃ of",
        "\ufb01les \u2026 \uff54he",
        "\u00a0the\u00a0mail\tand\u3000a\u2009tool \u00a0 ☃\u00a0☃\t",
    ],
)
def test_text_becomes_the_ids_of_the_model(make_vocabulary: Callable[..., Vocabulary], text: str) -> None:
    """A space of another kind is a piece without a symbol of fairseq's, whose dictionaries are divided at it."""
    vocabulary = make_vocabulary(**PLAIN)
    tokenizer, _ = piece_tokenizer(vocabulary)
    assert tokenizer.encode(text).ids == vocabulary.encode(text)[0, :-1].tolist()


@pytest.mark.parametrize(
    "settings",
    [
        {**PLAIN, "user_defined_symbols": ["<x>"]},
        {**PLAIN, "add_dummy_prefix": False},
        {**PLAIN, "model_type": "unigram"},
        {**PLAIN, "left_out": ("▁t", "e")},
        {**PLAIN, "byte_fallback": True, "vocab_size": 330, "lines": [*LINES, *["<0123456789ABCDEFx></u>"] * 9]},
        {"model_type": "bpe"},
        {"model_type": "bpe", "normalization_rule_name": "nfkc_cf"},
    ],
    ids=["user symbols", "no space in front", "unigram", "pieces lacking", "bytes", "normalized", "small letters"],
)
def test_a_model_that_splits_otherwise_takes_its_symbols(
    make_vocabulary: Callable[..., Vocabulary], settings: dict[str, Any]
) -> None:
    """sentencepiece normalizes text unless it is told not to: ½ is 1⁄2, and … three dots."""
    vocabulary = make_vocabulary({"_name": "moses"}, **settings)
    tokenizer, about = piece_tokenizer(vocabulary)
    symbols = vocabulary.symbols[4:]
    tokenizer = Tokenizer.from_str(tokenizer.to_str())
    assert tokenizer.encode(" ".join([*symbols, "unheard"])).ids == [2, *range(4, len(vocabulary)), 3]
    assert "holds no BPE" not in about
    assert "Moses" not in about, "symbols are not tokenized"


@pytest.mark.parametrize("rules", ["41\t61\n", "2026\t2C\n"], ids=["A is a", "… is a comma"])
def test_a_normalization_of_ones_own_takes_symbols(
    make_vocabulary: Callable[..., Vocabulary], tmp_path: Path, rules: str
) -> None:
    """It changes no piece, and no space: the text that it was learned from was changed before."""
    (tmp_path / "rules.tsv").write_text(rules)
    settings = {"model_type": "bpe", "normalization_rule_tsv": str(tmp_path / "rules.tsv")}
    vocabulary = make_vocabulary(**settings)
    tokenizer, about = piece_tokenizer(vocabulary)
    assert vocabulary.encode("A…").tolist() != make_vocabulary(**PLAIN).encode("A…").tolist(), "the rule is a rule"
    assert tokenizer.encode(" ".join(vocabulary.symbols[4:])).ids == [2, *range(4, len(vocabulary))]
    assert "holds no BPE" not in about


def test_a_model_without_a_bpe_says_so() -> None:
    tokenizer, about = piece_tokenizer(Vocabulary([*SPECIAL, "a", "b"]))
    assert tokenizer.encode("b  a c").ids == [2, 5, 4, 3]
    assert "holds no BPE" in about


@pytest.mark.parametrize(
    ("moses", "parts"),
    [
        ({}, ("plain text",)),
        ({"_name": "space"}, ("plain text",)),
        ({"_name": "nltk"}, ("word_tokenize",)),
        ({"_name": "moses"}, ("MosesTokenizer('en')", "aggressive_dash_splits=True", "escape=True")),
        ({"_name": "moses", "source_lang": "de"}, ("MosesTokenizer('de')",)),
        (
            {"_name": "moses_monolingual", "moses_lang": "de", "moses_no_dash_splits": True},
            ("MosesTokenizer('de')", "aggressive_dash_splits=False", "escape=True"),
        ),
        (
            {"_name": "moses_monolingual", "moses_lang": "de", "moses_no_escape": True},
            ("MosesTokenizer('de')", "aggressive_dash_splits=True", "escape=False"),
        ),
    ],
    ids=["none", "space", "nltk", "moses", "moses of a pair", "without dashes", "without escapes"],
)
def test_what_is_done_before_is_what_training_did(
    make_vocabulary: Callable[..., Vocabulary], moses: dict[str, Any], parts: tuple[str, ...]
) -> None:
    _, about = piece_tokenizer(make_vocabulary(moses, **PLAIN))
    for part in parts:
        assert part in about
