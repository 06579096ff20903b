"""Letters of a person's own text become symbols of its BPE, also rare ones and those that only the pairs have."""

from __future__ import annotations

import io
import random
from collections import Counter
from pathlib import Path

import pytest
import sentencepiece

from lmfusion.text import binarize, bpe_size, learn_bpe, letters, prepare
from lmfusion.text.own_preparation import OwnPreparation

UKRAINIAN = "абвгдежзийклмнопрстуфхцчшьюяєі"
KANJI = "".join(chr(0x4E00 + 7 * number) for number in range(300))


def sentences(alphabet: str, count: int, seed: int = 1) -> list[str]:
    """Words of random letters, the first of the alphabet more often than the last."""
    chance = random.Random(seed)
    weights = [1 / (2 + place) for place in range(len(alphabet))]
    return [
        " ".join("".join(chance.choices(alphabet, weights, k=chance.randint(2, 7))) for _ in range(8))
        for _ in range(count)
    ]


def put(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def unknown(model: Path, lines: list[str]) -> Counter[str]:
    """Pieces that the sentencepiece library takes for unknown, read by it alone."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    found: Counter[str] = Counter()
    for line in lines:
        ids, pieces = processor.encode(line), processor.encode(line, out_type=str)
        found.update(piece for number, piece in zip(ids, pieces) if number == processor.unk_id())
    return found


def make(tmp_path: Path, train: dict[str, list[str]], mono: dict[str, list[str]], *words: str) -> Path:
    """Prepare a corpus; return the folder with the model."""
    corpus, out = tmp_path / "corpus", tmp_path / "out"
    corpus.mkdir()
    for side, lines in train.items():
        for split, part in (("train", lines), ("valid", lines[:5]), ("test", lines[5:10])):
            put(corpus / f"{split}.{side}", part)
        put(corpus / f"mono.train.{side}", mono[side])
        put(corpus / f"mono.valid.{side}", mono[side][:5])
    source, target = train
    flags = [str(corpus), "-s", source, "-t", target, "--out", str(out), "--workers", "1", "--tokenizer", "none"]
    OwnPreparation(prepare.parse_args([*flags, *words]), {}).run()
    return out


@pytest.fixture(autouse=True)
def nothing_is_binarized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binarize, "fairseq_preprocess", lambda work, flags, log: {})


def test_letters_that_are_rare_are_symbols_if_they_occur_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ukrainian, english = sentences(UKRAINIAN, 3000), sentences("etaoinshrdlu", 3000)
    for number, more in enumerate(("Щука", "Щедрик?", "Юрій & Ґава", "Ґанок", "Юнак?", "так & ні", "Ѣ")):
        ukrainian[20 + number] += f" {more}"
    out = make(tmp_path, {"uk": ukrainian, "en": english}, {"uk": ukrainian, "en": english}, "--bpe-size", "400")
    assert unknown(out / "spm.model", ukrainian + english) == Counter({"Ѣ": 1})
    assert len((out / "dict.txt").read_text(encoding="utf-8").splitlines()) == 400
    notes = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ")]
    assert len(notes) == 1
    assert "Ѣ (1)" in notes[0]


def test_letters_that_only_the_pairs_have_are_symbols(tmp_path: Path) -> None:
    plain, english = sentences("あいうえおかきくけこ", 2000), sentences("etaoinshrdlu", 300)
    japanese = [kana + KANJI[3 * number % 300] for number, kana in enumerate(plain[:300])]
    out = make(tmp_path, {"ja": japanese, "en": english}, {"ja": plain, "en": english}, "--bpe-size", "500")
    assert len(set("".join(japanese)) - set("".join(plain))) == 100
    assert not unknown(out / "spm.model", japanese + english)


def test_thousands_of_rare_letters_leave_room_for_what_letters_make_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    english = sentences("etaoinshrdlu", 2000)
    rare = [chr(0x4E00 + number) for number in range(3000)]
    chinese = [line + rare[number] + rare[number // 2] for number, line in enumerate(english)]
    out = make(tmp_path, {"zh": chinese, "en": english}, {"zh": chinese, "en": english}, "--bpe-size", "3000")
    symbols = [line.split()[0] for line in (out / "dict.txt").read_text(encoding="utf-8").splitlines()]
    assert len(symbols) == 3000
    assert sum(len(symbol) == 1 for symbol in symbols) <= 2001
    missing = set("".join(chinese)) - set(symbols) - {" "}
    assert f"note: {len(missing):,} of " in capsys.readouterr().out


def test_the_most_frequent_are_wanted_and_never_spaces_or_control_characters() -> None:
    found = Counter({" ": 900, "▁": 50, "▅": 50, "\x01": 9, "\u3000": 9, "a": 100, "b": 80, "漢": 2, "字": 2, "Щ": 1})
    assert letters.wanted(found, 100) == "ab字漢"
    assert letters.wanted(found, 3) == "ab"
    assert letters.wanted(Counter(), 100) == ""
    assert letters.without_symbol(found, ["a", "b", "字", "漢", "Щ", "ab"]) == []


def test_what_is_not_seen_alone_is_named_so_that_it_is() -> None:
    found = Counter({"a": 9, "\u0943": 1, "\u200c": 1, "\u0e34": 1, "\u0301": 1, "\U0001f600": 1})
    (note,) = letters.without_symbol(found, ["a"])
    named = note.split(": ", 1)[1].split(", ")
    assert set(named) == {"◌\u0943 (1)", "U+200C (1)", "◌\u0e34 (1)", "◌\u0301 (1)", "\U0001f600 (1)"}


def test_rare_letters_are_no_more_than_frequent_ones() -> None:
    text = Counter({"a": 500_000, "b": 500_000}) + Counter({chr(0x4E00 + number): 2 for number in range(50)})
    assert letters.frequent(text) == 2, "50 letters of 2 are a ten-thousandth"
    assert letters.rarer(text) == 2
    assert len(letters.wanted(text, 3000)) == 4


def test_the_size_has_room_for_the_letters_of_the_pairs(tmp_path: Path) -> None:
    text = put(tmp_path / "mono", ["あいうえお" * 30] * 100)
    pairs = put(tmp_path / "pairs", [KANJI] * 20)
    assert bpe_size.choose([text]) == 125, "3,000 words"
    assert bpe_size.choose([text], [pairs]) == 2 * 305
    assert bpe_size.choose([text], [text]) == 125, "the pairs' own side is no more text"


def test_without_required_letters_a_bpe_has_the_bytes_that_it_always_had(tmp_path: Path) -> None:
    lines = sentences(UKRAINIAN, 500)
    text, before = put(tmp_path / "text", lines), io.BytesIO()
    sentencepiece.set_random_generator_seed(1)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=before, model_type="bpe", vocab_size=203, character_coverage=0.9999,
        user_defined_symbols=[], normalization_rule_name="identity", input_sentence_size=5_000_000, num_threads=1,
        max_sentence_length=1 << 30, shuffle_input_sentence=True, minloglevel=1,
    )  # fmt: skip
    assert learn_bpe.learn([text], 200) == before.getvalue()
    with_letter = sentencepiece.SentencePieceProcessor(model_proto=learn_bpe.learn([text], 200, required="Щ"))
    assert with_letter.piece_to_id("Щ") != with_letter.unk_id()
