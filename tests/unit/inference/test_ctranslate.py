"""Folders of CTranslate2 without CTranslate2: a stand-in gives back what it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sentencepiece

from lmfusion.errors import InputError
from lmfusion.inference import ctranslate
from lmfusion.inference.ctranslate import BPE, MODEL, SHARED, SOURCE, TEXT, CTranslator
from lmfusion.inference.translate_lines import Search
from lmfusion.text.line_map import available_cores

BPE_SECTION = {"_name": "sentencepiece", "sentencepiece_enable_sampling": False}


class Echo:
    """CTranslate2's translator, which repeats a sentence; what it does not know becomes <unk>.

    A further hypothesis has one symbol less at its end, and a worse score.
    """

    made: dict[str, Any]
    asked: list[tuple[list[list[str]], dict[str, Any]]]

    def __init__(self, folder: str, **settings: Any) -> None:
        self.known = json.loads((Path(folder) / SHARED).read_text(encoding="utf-8"))
        type(self).made, type(self).asked = settings, []

    def translate_batch(self, sources: list[list[str]], **settings: Any) -> list[SimpleNamespace]:
        self.asked.append((sources, settings))
        count = range(settings["num_hypotheses"])
        written = ([word if word in self.known else "<unk>" for word in words] for words in sources)
        return [
            SimpleNamespace(hypotheses=[words[: len(words) - n] for n in count], scores=[-n / 2 for n in count])
            for words in written
        ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose model knows what occurs in a small text."""
    lines = ["a small house by the sea", "the old tree near a café", "three green birds"] * 20
    prefix = str(tmp_path / "bpe")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=prefix, vocab_size=60, normalization_rule_name="identity",
        minloglevel=2, model_type="bpe",
    )  # fmt: skip
    pieces = sentencepiece.SentencePieceProcessor(model_file=f"{prefix}.model")
    symbols = ["<s>", "<pad>", "</s>", "<unk>", *(pieces.id_to_piece(number) for number in range(3, len(pieces)))]
    assert (tmp_path / BPE).is_file()
    (tmp_path / SHARED).write_text(json.dumps(symbols), encoding="utf-8")
    content = {"tokenizer": {}, "bpe": BPE_SECTION, "languages": ["en", "de"], "source_positions": 100}
    (tmp_path / TEXT).write_text(json.dumps(content), encoding="utf-8")
    monkeypatch.setattr(ctranslate, "_library", lambda: SimpleNamespace(Translator=Echo))
    return tmp_path


def test_what_the_model_does_not_know_is_told_once_and_counted(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    lines = ["a house", "", "a house 漢", "漢 漢 tree", "birds"]
    assert CTranslator(folder).translate(lines)[4] == "birds"
    first, output, *last = caplog.messages
    assert "line 3: 1 of " in first
    assert "(漢)" in first
    assert "line 3: <unk>" in output
    assert "--unkpen" not in output, "CTranslate2 has none"
    assert ["2 lines" in told for told in last] == [True, True]


def test_known_text_is_told_nothing_of(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert CTranslator(folder).translate(["a house", "the sea"]) == ["a house", "the sea"]
    assert not caplog.messages


def test_the_sources_own_symbols_are_those_that_count(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / SOURCE).write_text('["<unk>"]', encoding="utf-8")
    CTranslator(folder).translate(["a house"])
    assert "line 1" in caplog.text


def test_the_first_line_of_a_later_window_has_its_number_in_the_text(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A window is 16 batches."""
    lines = [*["a house"] * 20, "漢", "birds"]
    assert len(list(CTranslator(folder).translate_lines(lines, Search(batch_size=1)))) == 22
    assert len(Echo.asked) > 1
    assert "line 21: 1 of " in caplog.messages[0]


@pytest.mark.parametrize("positions", [-5, 0, "none"])
def test_a_length_that_no_model_has_is_a_damaged_folder(folder: Path, positions: object) -> None:
    content = json.loads((folder / TEXT).read_text(encoding="utf-8"))
    (folder / TEXT).write_text(json.dumps({**content, "source_positions": positions}), encoding="utf-8")
    with pytest.raises(InputError, match=TEXT):
        CTranslator(folder)


@pytest.mark.parametrize("content", [b"", bytes(1000), b"\xff" * 1000], ids=["empty", "zeros", "ones"])
def test_a_damaged_model_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    library = pytest.importorskip("ctranslate2")
    monkeypatch.setattr(ctranslate, "_library", lambda: library)
    (folder / MODEL).write_bytes(content)
    with pytest.raises(InputError, match=str(folder)) as raised:
        CTranslator(folder)
    assert "\n" not in str(raised.value)


def test_a_line_that_is_too_long_is_cut_and_named(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With </s>, which CTranslate2 adds, it is as long as the model reads."""
    content = json.loads((folder / TEXT).read_text(encoding="utf-8"))
    (folder / TEXT).write_text(json.dumps({**content, "source_positions": 5}), encoding="utf-8")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / BPE))
    line = "three green birds by the sea"
    fits, longer = (
        next(line[:end] for end in range(len(line)) if len(pieces.encode(line[:end])) == count) for count in (4, 5)
    )
    found = CTranslator(folder).translate([fits, "", longer, line])
    ((sources, _),) = Echo.asked
    assert sources == [pieces.encode(each, out_type=str)[:4] for each in (fits, longer, line)]
    assert found == [fits, "", pieces.decode(sources[1]), pieces.decode(sources[2])]
    first, second = caplog.messages
    assert "line 3 has 6 symbols, and the model reads 5" in first
    assert f"line 4 has {len(pieces.encode(line)) + 1} symbols" in second


def test_hypotheses_come_best_first_with_their_own_scores(folder: Path) -> None:
    ((best, second, third),) = CTranslator(folder).translate_lines(["a house"], Search(beam=4, nbest=3))
    assert [best.score, second.score, third.score] == [0.0, -0.5, -1.0]
    assert best.text == "a house"
    assert len(best.text) > len(second.text) > len(third.text)


def test_the_search_is_the_one_that_is_asked_for(folder: Path) -> None:
    settings = {"lenpen": 0.6, "max_len_b": 30, "min_len": 2, "no_repeat_ngram_size": 3}
    list(CTranslator(folder).translate_lines(["a house"], Search(beam=4, nbest=2, batch_size=8, settings=settings)))
    ((_, asked),) = Echo.asked
    assert asked == {
        "beam_size": 4, "num_hypotheses": 2, "max_batch_size": 8, "return_scores": True, "length_penalty": 0.6,
        "max_decoding_length": 30, "min_decoding_length": 2, "no_repeat_ngram_size": 3,
    }  # fmt: skip
    CTranslator(folder).translate(["a house"], beam=3)
    ((_, asked),) = Echo.asked
    assert (asked["beam_size"], asked["max_decoding_length"]) == (3, 200), "fairseq's own greatest length"


def test_a_setting_that_ctranslate2_does_not_have_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="unkpen"):
        list(CTranslator(folder).translate_lines(["a house"], Search(settings={"unkpen": 100.0})))


def test_precision_device_and_threads_are_those_that_are_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    CTranslator(folder, int8=True, device="cuda")
    assert Echo.made == {"compute_type": "int8", "device": "cuda", "intra_threads": 3}
    CTranslator(folder)
    assert (Echo.made["compute_type"], Echo.made["device"]) == ("default", "cpu")


@pytest.mark.parametrize("value", ["4,2", "many", "0", "-1"])
def test_threads_that_are_no_number_are_as_many_as_cores(
    folder: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """OpenMP takes a list, one for each level of its loops, of which the first counts; it ignores what is none."""
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    CTranslator(folder)
    assert Echo.made["intra_threads"] == (4 if value == "4,2" else available_cores())


def test_a_model_that_ctranslate2_cannot_read_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("File model.bin is incomplete")

    monkeypatch.setattr(ctranslate, "_library", lambda: SimpleNamespace(Translator=fails))
    with pytest.raises(InputError, match=r"cannot be read by CTranslate2: File model\.bin is incomplete"):
        CTranslator(folder)


def test_white_space_of_every_kind_is_a_space(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert CTranslator(folder).translate(["a\u00a0small\thouse\u3000"]) == ["a small house"]
    assert not caplog.messages


def test_half_a_character_is_no_text(folder: Path) -> None:
    with pytest.raises(InputError, match=r"'\\udcff'"):
        CTranslator(folder).translate(["a house", "a \udcff"])


def test_lines_are_told_as_finished_once_each(folder: Path) -> None:
    told: list[int] = []
    found = CTranslator(folder).translate_lines(
        ["a house", "", *["birds"] * 30], Search(batch_size=1), done=told.append
    )
    assert len(list(found)) == sum(told) == 32


def test_in_a_dialogue_a_line_is_answered_before_the_next_and_each_unknown_one_is_named(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []

    def lines() -> Iterator[str]:
        for line in ("a house", "漢", "漢 birds"):
            told.append("asked")
            yield line

    for hypotheses in CTranslator(folder).translate_lines(lines(), Search(), ahead=False):
        told.append(hypotheses[0].text[:7])
    assert told[:3] == ["asked", "a house", "asked"]
    assert told.count("asked") == 3
    assert told[-2] == "asked"
    named = [message.split(":")[0] for message in caplog.messages if "unknown to the model" in message]
    assert named == ["line 2", "line 3"]
    assert not any("lines" in message for message in caplog.messages)


@pytest.mark.parametrize("content", [None, "[", "[[1]]", "7"])
def test_a_damaged_vocabulary_is_named(folder: Path, content: str | None) -> None:
    (folder / SHARED).unlink()
    if content is not None:
        (folder / SHARED).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=SHARED):
        CTranslator(folder)
