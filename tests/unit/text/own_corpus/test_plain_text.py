"""Plain text and articles become what language models read, without held-out lines; what seems wrong is said."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from lmfusion.text.mono import sentences


def test_monolingual_text_has_no_held_out_line_and_no_line_twice(own: Any, tmp_path: Path) -> None:
    text = [*own.english, "", *(f"line {n}" for n in range(9000)), *own.english[:30]]
    files = own.put("a.en", text[:700]), tmp_path / "b.en.gz"
    files[1].write_bytes(gzip.compress("\n".join(text[700:]).encode()))
    summary = own.build(text=files)
    train, valid = own.lines("out/mono.train.en"), own.lines("out/mono.valid.en")
    held_out = {line.casefold() for split in ("valid", "test") for line in own.lines(f"out/{split}.en")}
    expected = [line for line in dict.fromkeys(text) if line and line.casefold() not in held_out]
    assert sorted(train + valid) == sorted(expected)
    kept = set(train)
    assert train == [line for line in expected if line in kept]
    assert 100 <= len(valid) <= 105, "one in a hundred, at least a hundred; lines that differ in capitals go together"
    assert not {line.casefold() for line in train} & {line.casefold() for line in valid}
    assert set(own.mono("de")) == set(own.lines("out/train.de"))
    assert [note for note in summary.notes if "no --text in de" in note]
    assert not [note for note in summary.notes if "no --text in en" in note]


def test_mono_valid_stays_when_text_is_added(own: Any) -> None:
    text = [f"line {n}" for n in range(20_000)]
    chosen = []
    for number in (18_000, 20_000):
        own.build(text=(own.put("a.en", text[::-1][:number]),))
        chosen.append(set(own.lines("out/mono.valid.en")))
        assert len(chosen[-1]) == number // 100
    assert len(chosen[0] & chosen[1]) > 160


def test_summarization_has_one_language(own: Any) -> None:
    articles = [f"{en} Item {n} is new. It costs {n} euros." for n, en in enumerate(own.english[:300])]
    objects = own.put("own.jsonl", [json.dumps({"a": x, "s": f"Item {n}"}) for n, x in enumerate(articles)])
    sides = ("text", "summary")
    asked = {"jsonl": objects, "fields": ("a", "s"), "source": "text", "target": "summary", "text_language": "en"}
    own.build(**asked)
    kept = own.made("train", sides=sides)
    assert len(kept) == 260
    mono = own.mono("en")
    assert {f"It costs {n} euros." for n in range(300) if (articles[n], f"Item {n}") in kept} <= set(mono)
    held_out = [text for split in ("valid", "test") for pair in own.made(split, sides=sides) for text in pair]
    parts = [part for text in held_out for part in (text, *sentences(text))]
    assert not {line.casefold() for line in mono} & {part.casefold() for part in parts}
    plain = own.put("plain.txt", [part for article in articles for part in sentences(article)])
    own.build("plain", **asked, text=(plain,))
    assert set(own.mono("en", "plain")) == set(mono)


def test_sentences_are_cut_after_their_marks() -> None:
    text = ["It is 3.5 m long.", "“Why?” ask 7 dogs e.g. on Mondays!", "(Because.", "7 dogs!"]
    assert sentences(" ".join(text)) == text
    assert sentences("これは本です。あれも。") == ["これは本です。", "あれも。"]
    assert sentences("") == []


def test_suspicions_reach_the_notes(own: Any) -> None:
    german, english, plain = own.put("a.txt", own.german), own.put("b.txt", own.english), own.put("p.de", own.english)
    summary = own.build(pairs=(german, english), text=(plain,))
    assert [note for note in summary.notes if "swapped" in note and "p.de" not in note]
    assert [note for note in summary.doubts if "swapped" in note]
    assert set(summary.doubts) < set(summary.notes), "counts are no doubts"
    summary = own.build(pairs=(german, own.put("c.txt", own.english[1:] + own.english[:1])))
    assert [note for note in summary.notes if "lengths" in note]
    summary = own.build(pairs=(english, german), text=(plain,))
    assert [note for note in summary.notes if "swapped" in note and "p.de" in note]


def test_plain_text_is_looked_at_for_its_script(own: Any) -> None:
    pairs = own.put("a.en", own.english), own.put("a.de", own.german)
    plain = own.put("plain.de", [f"Это строка номер {number}." for number in range(100)])
    doubts = own.build(pairs=pairs, text=(plain,)).doubts
    assert [note for note in doubts if "--text in de" in note and "Cyrillic" in note]
    doubts = own.build("one", pairs=pairs, text_language="ja").doubts
    assert [note for note in doubts if "text in ja" in note and "Japanese" in note]
