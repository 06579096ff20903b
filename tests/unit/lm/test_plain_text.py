"""Plain text to a language model's tokens and back, and tokens that are none."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from fairseq.data import Dictionary

import lmfusion
from lmfusion.errors import InputError
from lmfusion.lm.interface import PretrainedLM
from lmfusion.lm.vocabulary import Vocabulary
from lmfusion.text.kit import ENTRY, TextKit

ROOT = Path(__file__).parents[3]
SHIPPED, SPM, DICT = (ROOT / "pretrained" / name for name in ("en-cloze.pt", "spm.model", "dict.txt"))
SENTENCE = "This package contains the documentation ."
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


@pytest.fixture(scope="module")
def shipped() -> PretrainedLM:
    """The English LM of the repository, with the BPE that lies beside it."""
    return lmfusion.load_lm(SHIPPED, bpe=SPM, lang="en")


def test_tokens_are_the_indices_of_the_pieces_in_the_frame(shipped: PretrainedLM) -> None:
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(SPM)).encode(SENTENCE, out_type=str)
    dictionary = Dictionary.load(str(DICT))
    expected = [dictionary.eos(), *(dictionary.index(piece) for piece in pieces), dictionary.eos()]
    tokens = shipped.encode("This package contains the documentation.")
    assert tokens.tolist() == [expected]
    assert shipped.decode(tokens) == shipped.decode(tokens[0]) == "This package contains the documentation."
    states = shipped.layer_states(tokens)
    assert [state.shape for state in states] == [(1, len(expected), shipped.state_dim)] * shipped.num_states


def test_real_sentences_come_back_but_for_white_space(shipped: PretrainedLM) -> None:
    with lzma.open(ROOT / "data-prep" / "debian" / "en-de" / "test.en.xz", "rt", encoding="utf-8") as stream:
        lines = [next(stream) for _ in range(40)]
    for line in lines:
        assert "".join(shipped.decode(shipped.encode(line)).split()) == "".join(line.split())


def test_what_a_checkpoint_holds_is_used(make_cloze: Any, save_lm: Any, shipped: PretrainedLM) -> None:
    kit = TextKit(bpe={"_name": "sentencepiece"}, bpe_file=SPM.read_bytes())
    held = make_cloze()
    held.vocabulary.codec = None
    path = save_lm(held, change=lambda state: state.update({ENTRY: kit.to_state()}))
    lm = lmfusion.load_lm(path)
    assert lm.vocabulary.codec is not None
    assert lm.vocabulary.codec.encode(SENTENCE) == " ".join(
        shipped.symbols[number] for number in shipped.encode(SENTENCE)[0, 1:-1].tolist()
    )


def test_without_a_bpe_a_text_is_symbols_between_white_space(make_cloze: Any) -> None:
    lm = make_cloze()
    tokens = lm.encode(" w1  w0 unheard ")
    assert tokens.tolist() == [[2, 5, 4, 3, 2]], "</s> w1 w0 <unk> </s>"
    assert lm.decode(tokens) == "w1 w0 <unk>"
    assert lm.encode("").tolist() == [[2, 2]]


@pytest.mark.parametrize("pieces", [["▁the", "▁cat", "s"], ["the", "ca@@", "t"]])
def test_plain_text_for_a_dictionary_of_pieces_is_refused_instead_of_read_as_unknown(pieces: list[str]) -> None:
    vocabulary = Vocabulary([*SPECIAL, *pieces])
    with pytest.raises(InputError, match=r"'dogs'.*bpe="):
        vocabulary.encode("dogs the")
    # An unknown piece of a text that is encoded is no error.
    assert vocabulary.unknown in vocabulary.encode(f"{pieces[1]} ☃")[0].tolist()


@pytest.mark.parametrize("text", [b"w1", None, ["w1"], 3])
def test_what_is_no_text_is_refused(make_cloze: Any, text: Any) -> None:
    with pytest.raises(InputError, match=type(text).__name__):
        make_cloze().encode(text)


ROW = torch.tensor([[2, 5, 6, 2]])


@pytest.mark.parametrize(
    ("tokens", "named"),
    [
        (ROW[0], r"\(4,\)"),
        (ROW[None], r"\(1, 1, 4\)"),
        (ROW.float(), "float32"),
        (ROW.bool(), "bool"),
        (ROW[:, :0], r"\(1, 0\)"),
        (ROW + 100, "102 is no index of .* 24 symbols"),
        (ROW - 3, "-1 is no index"),
        ([[2, 5, 2]], "list"),
        (None, "NoneType"),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["make_cloze", "make_causal"])
def test_what_are_no_rows_of_tokens_is_refused(
    request: pytest.FixtureRequest, kind: str, tokens: Any, named: str
) -> None:
    lm = request.getfixturevalue(kind)()
    for call in (lm.layer_states, lm.top_state):
        with pytest.raises(InputError, match=named):
            call(tokens)


@pytest.mark.parametrize("tokens", [torch.tensor(3), torch.tensor([[2, 5], [2, 6]]), torch.tensor([24]), "w1"], ids=str)
def test_only_one_row_of_indices_becomes_text(make_cloze: Any, tokens: Any) -> None:
    with pytest.raises(InputError):
        make_cloze().decode(tokens)


def test_a_language_without_a_bpe_is_refused() -> None:
    with pytest.raises(InputError, match="lang='en'"):
        lmfusion.load_lm(SHIPPED, lang="en")
