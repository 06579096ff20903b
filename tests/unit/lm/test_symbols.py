"""The dictionary inside a language model."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary

from lmfusion.errors import InputError, LMFusionError
from lmfusion.lm.symbols import (
    check_symbols,
    decode_symbols,
    dictionary_hash,
    dictionary_of,
    encode_symbols,
    first_difference,
)
from lmfusion.lm.vocabulary import Vocabulary

SYMBOLS = ["<s>", "<pad>", "</s>", "<unk>", "▁the", "ä", "𝛾", "e\u0301", "#", "@@", "\u00a0", "\u2028"]


def test_symbols_of_any_script_survive_the_state_dict() -> None:
    assert decode_symbols(encode_symbols(SYMBOLS)) == SYMBOLS


def test_symbols_survive_half_precision_and_saving(tmp_path: Any) -> None:
    table = Vocabulary(SYMBOLS).half()
    torch.save(table.state_dict(), tmp_path / "table.pt")
    stored = torch.load(tmp_path / "table.pt", weights_only=True)
    assert decode_symbols(stored["codes"]) == SYMBOLS


def test_symbols_survive_checkpoint_averaging() -> None:
    """fairseq sums the tensors of n checkpoints and divides whole numbers by n, rounding down."""
    codes = encode_symbols(SYMBOLS)
    average = (codes + codes + codes) // 3
    assert decode_symbols(average) == SYMBOLS


@pytest.mark.parametrize(
    ("trained", "given", "message"),
    [
        (["a", "b", "c"], ["a", "x", "c"], r"index 1, where the language model has 'b' and .* has 'x'"),
        (["a", "b"], ["a", "b", "c"], r"index 2, where the language model has nothing .* has 'c' \(2 and 3 symbols\)"),
        (["a", "b", "c"], ["a"], r"index 1, where the language model has 'b' and .* has nothing"),
    ],
)
def test_another_dictionary_is_refused_by_its_first_difference(
    trained: list[str], given: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        check_symbols(trained, given, what="the source dictionary")


def test_equal_dictionaries_have_no_first_difference() -> None:
    assert first_difference(["a", "b"], ["a", "b"]) is None
    check_symbols(["a", "b"], ["a", "b"], what="the source dictionary")


def test_loading_into_a_model_of_another_dictionary_names_both_symbols(
    make_cloze: Any, other_dictionary: Dictionary
) -> None:
    weights = make_cloze().state_dict()
    other = type(make_cloze())(make_cloze().config, other_dictionary)
    with pytest.raises(InputError, match=r"index 7, where the language model has 'w3' and .* has 'x'"):
        other.load_state_dict(weights)


def test_dictionary_hash_is_that_of_the_symbols_in_order(make_causal: Any, dictionary: Dictionary) -> None:
    text = "\n".join(dictionary.symbols)
    assert make_causal().dictionary_hash == hashlib.sha256(text.encode()).hexdigest()
    assert dictionary_hash(["a", "b"]) != dictionary_hash(["b", "a"])


def test_a_dictionary_made_of_symbols_gives_them_the_same_indices() -> None:
    made = dictionary_of(SYMBOLS)
    assert [made.index(symbol) for symbol in SYMBOLS] == list(range(len(SYMBOLS)))
    assert (made.bos(), made.pad(), made.eos(), made.unk()) == (0, 1, 2, 3)


@pytest.mark.parametrize("symbols", [["a", "b"], ["<s>", "<pad>", "</s>", "<unk>", "a", "a"]])
def test_symbols_that_are_no_fairseq_dictionary_are_refused(symbols: list[str]) -> None:
    with pytest.raises(InputError, match="no fairseq dictionary"):
        dictionary_of(symbols)


def test_user_errors_are_value_errors() -> None:
    """Callers that catch ValueError, as fairseq's do, catch them too."""
    assert issubclass(InputError, LMFusionError)
    assert issubclass(LMFusionError, ValueError)
