"""A stream of lines is translated in order, as it comes in; the model is one that turns sentences around."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.hub_utils import GeneratorHubInterface
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.inference.translate_lines import Search, translate_lines

LIMIT = 6
UNKNOWN = -1


class Reverser:
    """Gives the words of a sentence from the last to the first, and remembers how many it was asked for at a time."""

    def __init__(self) -> None:
        self.max_positions = (LIMIT, 100)
        self.tgt_dict = SimpleNamespace(unk_word="<unk>")
        self.src_dict = SimpleNamespace(unk=lambda: UNKNOWN, index=self.index)
        self.cfg = SimpleNamespace(dataset=SimpleNamespace(batch_size=None, max_tokens=None))
        self.unread: set[str] = set()
        self.asked: list[int] = []
        self.searches: list[dict[str, Any]] = []
        self.words: list[str] = [""]
        self.after_batch = lambda sentences: None

    def encode(self, text: str) -> Tensor:
        for word in text.split():
            if word not in self.words:
                self.words.append(word)
        return torch.tensor([*(self.index(word) for word in text.split()), 0])

    def index(self, word: str) -> int:
        return UNKNOWN if word in self.unread or word not in self.words else self.words.index(word)

    def tokenize(self, text: str) -> str:
        return text

    def apply_bpe(self, text: str) -> str:
        return text

    def generate(self, tokens: list[Tensor], beam: int, *, nbest: int, **settings: Any) -> list[list[dict[str, Any]]]:
        self.asked.append(len(tokens))
        self.searches.append({"beam": beam, **settings})
        self.after_batch(len(tokens))
        return [[{"tokens": row.flip(0), "score": torch.tensor(-float(n))} for n in range(beam)] for row in tokens]

    def decode(self, tokens: Tensor) -> str:
        return " ".join("?" if number == UNKNOWN else self.words[number] for number in tokens.tolist())


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The model; sentences are encoded by it."""
    monkeypatch.setattr(GeneratorHubInterface, "encode", lambda self, text: self.encode(text))
    return Reverser()


def texts(found: Iterator[Any]) -> list[str]:
    """The best translations."""
    return [hypotheses[0].text for hypotheses in found]


def test_lines_keep_their_order_and_lines_without_words_their_place(model: Any) -> None:
    lines = ["a b", "", "c", " \t ", "d e f", ""]
    assert texts(translate_lines(model, lines, Search())) == ["b a", "", "c", "", "f e d", ""]


@pytest.mark.parametrize("count", [1, 2, 31, 32, 33, 100])
def test_any_number_of_lines_comes_out(model: Any, count: int) -> None:
    lines = [f"{number} x" for number in range(count)]
    assert texts(translate_lines(model, lines, Search(batch_size=2))) == [f"x {number}" for number in range(count)]
    assert max(model.asked) <= 32, "a window is 16 batches"


def test_lines_are_told_as_finished_once_each_while_others_are_still_to_come(model: Any) -> None:
    told: list[int] = []
    found = translate_lines(model, ["a b", "", *["c"] * 50], Search(batch_size=2), done=told.append)
    assert next(found)
    assert 0 < sum(told) < 52
    assert len([1, *found]) == sum(told) == 52


def test_who_is_told_of_one_text_is_not_told_of_the_next(model: Any) -> None:
    told: list[int] = []
    list(translate_lines(model, ["a b"], Search(), done=told.append))
    list(translate_lines(model, ["c d", "", "e"], Search()))
    model.generate([torch.tensor([1, 0])], 5, nbest=1)
    assert told == [1]


def test_the_models_batches_afterwards_are_as_before(model: Any) -> None:
    model.cfg.dataset.batch_size, model.cfg.dataset.max_tokens = 7, 300
    found = translate_lines(model, ["a b", "c"], Search(batch_size=2))
    next(found)
    assert (model.cfg.dataset.batch_size, model.cfg.dataset.max_tokens) == (2, None)
    found.close()
    assert (model.cfg.dataset.batch_size, model.cfg.dataset.max_tokens) == (7, 300)


def test_the_search_is_the_one_that_is_asked_for(model: Any) -> None:
    """Batches are of sentences: the most tokens of the training's batches do not count."""
    model.cfg.dataset.max_tokens = 3
    search = Search(beam=3, batch_size=7, settings={"lenpen": 0.6, "unkpen": 100.0})
    found = translate_lines(model, ["a b"], search)
    next(found)
    assert model.searches == [{"beam": 3, "lenpen": 0.6, "unkpen": 100.0}]
    assert (model.cfg.dataset.batch_size, model.cfg.dataset.max_tokens) == (7, None)


def test_nothing_gives_nothing(model: Any) -> None:
    assert texts(translate_lines(model, [], Search())) == []


def test_answers_begin_before_the_input_ends(model: Any) -> None:
    answered = threading.Event()

    def lines() -> Iterator[str]:
        yield "a b"
        assert answered.wait(20), "the first line waits for the second"
        yield "c d"

    found = translate_lines(model, lines(), Search())
    assert next(found)[0].text == "b a"
    answered.set()
    assert texts(found) == ["d c"]


def test_a_dialogue_asks_for_a_line_after_it_has_answered_the_one_before(model: Any) -> None:
    told: list[str] = []

    def lines() -> Iterator[str]:
        for line in ("a b", "c d"):
            told.append("asked")
            yield line

    for hypotheses in translate_lines(model, lines(), Search(), ahead=False):
        told.append(hypotheses[0].text)
    assert told == ["asked", "b a", "asked", "d c"]


def test_what_is_wrong_with_a_line_is_said_after_those_before_it(model: Any) -> None:
    def lines() -> Iterator[str]:
        yield "a b"
        raise InputError("line 2 is no text")

    found = translate_lines(model, lines(), Search())
    assert next(found)[0].text == "b a"
    with pytest.raises(InputError, match="line 2"):
        next(found)


def test_half_a_character_is_named_with_its_line(model: Any) -> None:
    """As bytes that are no UTF-8 come in from a terminal or as a file's name."""
    with pytest.raises(InputError, match=r"line 3 has '\\udcff'"):
        list(translate_lines(model, ["a b", "", "c \udcff"], Search()))


def test_a_line_that_is_too_long_is_cut_and_named(model: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = texts(translate_lines(model, ["a b c d e", "", "1 2 3 4 5 6 7", "a"], Search()))
    assert found == ["e d c b a", "", "5 4 3 2 1", "a"], "five words and </s>"
    assert len(caplog.messages) == 1
    assert "line 3 has 8 symbols" in caplog.messages[0]


def test_as_many_hypotheses_as_asked_for_best_first(model: Any) -> None:
    found = list(translate_lines(model, ["a", ""], Search(beam=4, nbest=3)))
    assert [[each.score for each in hypotheses] for hypotheses in found] == [[0, -1, -2], [0]]


def test_white_space_of_every_kind_is_a_space(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(GeneratorHubInterface, "encode", lambda self, text: read.append(text) or self.encode(text))
    list(translate_lines(model, ["a\u00a0b\tc\u3000d\u202fe", "  f  g "], Search()))
    assert read == ["a b c d e", "f g"]


def test_the_first_unknown_word_of_a_translation_is_named_and_all_are_counted(
    model: Any, caplog: pytest.LogCaptureFixture
) -> None:
    list(translate_lines(model, ["a b", "c", "<unk>"], Search()))
    (told,) = caplog.messages
    assert "line 3" in told
    assert "--unkpen" in told
    caplog.clear()
    list(translate_lines(model, ["a b", "c <unk>", "", "<unk>", "<unk> d"], Search(batch_size=1)))
    first, last = caplog.messages
    assert "line 2" in first
    assert "translation of 3 lines" in last


def test_the_first_line_with_unknown_symbols_is_named_and_all_are_counted(
    model: Any, caplog: pytest.LogCaptureFixture
) -> None:
    model.unread = {"Ｇ", "☃", "1", "2", "3", "4", "5", "6"}
    list(translate_lines(model, ["a b", "", "Ｇ b ☃ Ｇ e", "d"], Search()))
    (told,) = caplog.messages
    assert "line 3: 3 of 5 symbols" in told
    assert "(Ｇ, ☃)" in told
    caplog.clear()
    list(translate_lines(model, ["1 2 3 4 5 6", "☃", "b", "Ｇ"], Search(batch_size=1)))
    first, cut, last = caplog.messages
    assert "7 symbols" in cut, "with </s>; those left out are counted, too"
    assert "line 1: 6 of 6 symbols" in first
    assert "(1, 2, 3, 4, 5, …)" in first
    assert "source of 3 lines" in last


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_whatever_ends_the_lines_early_ends_the_translations(model: Any) -> None:
    def lines() -> Iterator[str]:
        yield "a b"
        raise EOFError("compressed file ended")

    found = translate_lines(model, lines(), Search())
    assert next(found)[0].text == "b a"
    with pytest.raises(RuntimeError):
        next(found)


@pytest.mark.parametrize("error", [OSError("disk gone"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no text")])
def test_what_went_wrong_with_reading_is_said_as_it_is(model: Any, error: Exception) -> None:
    def lines() -> Iterator[str]:
        yield "a b"
        raise error

    found = translate_lines(model, lines(), Search())
    assert next(found)[0].text == "b a"
    with pytest.raises(type(error)) as raised:
        next(found)
    assert raised.value is error


def test_in_a_dialogue_each_line_with_unknown_symbols_is_named_and_none_counted(
    model: Any, caplog: pytest.LogCaptureFixture
) -> None:
    model.unread = {"☃"}
    list(translate_lines(model, ["☃", "a", "☃ b"], Search(), ahead=False))
    assert [told.split(":")[0] for told in caplog.messages] == ["line 1", "line 3"]
    caplog.clear()
    model.unread = set()
    list(translate_lines(model, ["<unk>", "a <unk>"], Search(), ahead=False))
    assert [told.split(":")[0] for told in caplog.messages] == ["line 1"], "of translations the first, as ever"
