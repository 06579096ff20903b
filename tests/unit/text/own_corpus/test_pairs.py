"""A person's own pairs become a corpus folder; formats: test_formats.py, the split itself: test_held_out.py."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from lmfusion.text.corpus import Corpus, check_parallel
from lmfusion.text.textio import DataError


def without_known(pairs: list[tuple[str, str]], known: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs of which neither side is a side of these others, capitals aside."""
    sides = [{pair[n].casefold() for pair in known} for n in (0, 1)]
    return [pair for pair in pairs if all(text.casefold() not in side for text, side in zip(pair, sides))]


def test_pairs_keep_order_and_content_and_nothing_is_lost(own: Any, tmp_path: Path) -> None:
    summary, out = own.build(), tmp_path / "out"
    splits = {split: own.made(split) for split in ("train", "valid", "test")}
    mono = [f"mono.{split}.{language}" for split in ("train", "valid") for language in ("en", "de")]
    assert summary.counts == {
        **{split: len(pairs) for split, pairs in splits.items()},
        **{name: len(own.lines(f"out/{name}")) for name in mono},
    }
    assert len(splits["valid"]) == len(splits["test"]) == 20
    for pairs in splits.values():
        assert pairs == [pair for pair in own.pairs if pair in set(pairs)]
    assert splits["train"] == without_known(own.pairs, splits["valid"] + splits["test"])
    corpus = Corpus(out, "en", "de", ("en", "de"), ("en", "de"))
    assert {corpus.find(name).parent for name in corpus.names()} == {out}
    assert len(list(out.iterdir())) == len(corpus.names()), "and nothing else"
    check_parallel(corpus, out)


def test_the_same_text_gives_the_same_files_in_every_format(own: Any, tmp_path: Path) -> None:
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{escape(en)}</seg></tuv><tuv xml:lang="de"><seg>{escape(de)}</seg></tuv></tu>'
        for en, de in own.pairs
    )
    formats: list[dict[str, Any]] = [
        {},
        {"tsv": own.put("own.tsv", [f"{de}\t{en}" for en, de in own.pairs]), "fields": ("2", "1")},
        {"jsonl": own.put("own.jsonl", [json.dumps({"en": en, "de": de}) for en, de in own.pairs])},
        {"tmx": own.put("own.tmx", [f"<tmx><body>{units}</body></tmx>"])},
    ]
    written = []
    for number, given in enumerate(formats):
        own.build(str(number), **given)
        written.append({path.name: path.read_bytes() for path in (tmp_path / str(number)).iterdir()})
    assert len(written[0]) == 10
    assert written[1:] == written[:1] * 3


def test_what_is_left_out_is_counted(own: Any) -> None:
    pairs = [*own.pairs, *own.pairs[:7], ("only source", ""), ("", "nur Ziel"), ("", "")]
    summary = own.build(pairs=own.files(pairs))
    assert [note for note in summary.notes if note.startswith("3 of 410 ") and "empty" in note]
    assert [note for note in summary.notes if note.startswith("7 of 410 ")]
    assert summary.counts == own.build("once").counts


def test_sources_are_named_with_their_hashes(own: Any, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    pairs, text = own.files(own.pairs), own.put("more/own.en", own.english)
    summary = own.build(pairs=pairs, text=(text,))
    expected = {str(pairs[0]): pairs[0], "own.de": pairs[1], str(text): text}
    assert summary.sources == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in expected.items()}


def test_given_sets_are_kept_whole_and_leave_train(own: Any) -> None:
    test, train = own.pairs[:100], own.pairs[98:]
    given = {"test": own.files(test, "test"), "valid": own.files([("v", "w")], "valid")}
    summary = own.build(pairs=own.files(train), held_out=0, **given)
    assert own.made("test") == test
    assert own.made("valid") == [("v", "w")]
    assert own.made("train") == without_known(train, test)
    assert [note for note in summary.notes if note.startswith("2 of the 100 ")]
    summary = own.build("valid", pairs=own.files(train), test=given["test"])
    assert summary.counts["valid"] == 20
    assert not set(own.made("valid", "valid")) & set(test)


@pytest.mark.parametrize("first", [0, 90])
def test_a_test_set_known_from_train_is_refused(own: Any, first: int) -> None:
    with pytest.raises(DataError, match=f"--test: {100 - first} of its 100 pairs"):
        own.build(pairs=own.files(own.pairs[first:]), test=own.files(own.pairs[:100], "test"))


def test_a_validation_set_that_is_the_test_set_is_refused(own: Any) -> None:
    same = own.files(own.pairs[:50], "same")
    with pytest.raises(DataError, match="--valid: 50 of its 50 pairs are in the test set"):
        own.build(pairs=own.files(own.pairs[50:]), test=same, valid=same)


def test_a_given_pair_without_a_side_is_named(own: Any) -> None:
    with pytest.raises(DataError, match=r"test\.en .*line 2: empty"):
        own.build(test=own.files([("a", "b"), ("c", " ")], "test"))


def test_no_pair_is_split_off_that_is_too_long_to_read(own: Any) -> None:
    summary = own.build(longest=120)
    held_out = own.made("valid") + own.made("test")
    assert len(held_out) == 40
    assert max(len(text) for pair in held_out for text in pair) <= 120
    train = set(own.made("train"))
    assert {pair for pair in own.pairs if len(pair[0]) > 200} <= train
    assert len(train) == summary.counts["train"]
    own.build("one", longest=60, text_language="en")
    held_out = own.made("valid", "one") + own.made("test", "one")
    assert max(len(target) for _, target in held_out) <= 60 < max(len(source) for source, _ in held_out)
    with pytest.raises(DataError, match="are too few"):
        own.build("few", longest=10)


def test_pairs_that_are_not_in_nfc_are_counted(own: Any) -> None:
    pairs = [*own.pairs, ("a cafe\u0301 here", "ein Cafe\u0301 hier"), ("the coffee here", "der Cafe\u0301 dort")]
    assert not any("NFC" in note for note in own.build("before").notes)
    (note,) = (note for note in own.build(pairs=own.files(pairs)).notes if "NFC" in note)
    assert note.startswith(f"2 of {len(pairs)} pairs")
