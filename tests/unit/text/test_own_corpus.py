"""A person's own text becomes a corpus folder; formats: test_formats.py, the split itself: test_held_out.py."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from lmfusion.text import own_data, textio
from lmfusion.text.corpus import Corpus, check_parallel
from lmfusion.text.mono import sentences
from lmfusion.text.own_corpus import Request, build
from lmfusion.text.textio import DataError

CORPUS = Path(__file__).resolve().parents[3] / "data-prep/debian/en-de"
EN, DE = (list(textio.read_lines(CORPUS / f"valid.{language}.xz")) for language in ("en", "de"))
PAIRS = list(dict.fromkeys(zip(EN, DE)))[:400]
NOTHING: dict[str, Any] = {
    **dict.fromkeys(("pairs", "tsv", "jsonl", "tmx", "fields", "text_language", "valid", "test")),
    "text": (),
    "held_out": 20,
    "seed": 1,
    "source": "en",
    "target": "de",
}


def request(**given: Any) -> Request:
    return Request(**{**NOTHING, **given})


def put(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def two_files(folder: Path, pairs: list[tuple[str, str]], name: str = "own") -> tuple[Path, Path]:
    return put(folder / f"{name}.en", [x for x, _ in pairs]), put(folder / f"{name}.de", [x for _, x in pairs])


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def pairs_of(folder: Path, split: str, sides: tuple[str, str] = ("en", "de")) -> list[tuple[str, str]]:
    return list(zip(*(lines(folder / f"{split}.{side}") for side in sides), strict=True))


def test_pairs_keep_order_and_content_and_nothing_is_lost(tmp_path: Path) -> None:
    out = tmp_path / "out"
    summary = build(request(pairs=two_files(tmp_path, PAIRS)), out)
    splits = {split: pairs_of(out, split) for split in ("train", "valid", "test")}
    assert summary.counts == {
        **{split: len(pairs) for split, pairs in splits.items()},
        **{
            f"mono.{split}.{x}": len(lines(out / f"mono.{split}.{x}"))
            for split in ("train", "valid")
            for x in ("en", "de")
        },
    }
    assert len(splits["valid"]) == len(splits["test"]) == 20
    for pairs in splits.values():
        assert pairs == [pair for pair in PAIRS if pair in set(pairs)]
    held_out = set(splits["valid"] + splits["test"])
    known = [{pair[n].casefold() for pair in held_out} for n in (0, 1)]
    alike = {pair for pair in PAIRS if pair[0].casefold() in known[0] or pair[1].casefold() in known[1]}
    assert set(splits["train"]) == set(PAIRS) - alike
    corpus = Corpus(out, "en", "de", ("en", "de"), ("en", "de"))
    assert {corpus.find(name).parent for name in corpus.names()} == {out}
    assert len(list(out.iterdir())) == len(corpus.names()), "and nothing else"
    check_parallel(corpus, out)


def test_the_same_text_gives_the_same_files_in_every_format(tmp_path: Path) -> None:
    table = put(tmp_path / "own.tsv", [f"{de}\t{en}" for en, de in PAIRS])
    objects = put(tmp_path / "own.jsonl", [json.dumps({"en": en, "de": de}) for en, de in PAIRS])
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{escape(en)}</seg></tuv><tuv xml:lang="de"><seg>{escape(de)}</seg></tuv></tu>'
        for en, de in PAIRS
    )
    memory = put(tmp_path / "own.tmx", [f"<tmx><body>{units}</body></tmx>"])
    requests = [
        request(pairs=two_files(tmp_path, PAIRS)),
        request(tsv=table, fields=("2", "1")),
        request(jsonl=objects),
        request(tmx=memory),
    ]
    written = []
    for number, asked in enumerate(requests):
        build(asked, tmp_path / str(number))
        written.append({path.name: path.read_bytes() for path in (tmp_path / str(number)).iterdir()})
    assert len(written[0]) == 10
    assert written[1:] == written[:1] * 3


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    pairs = [*PAIRS, *PAIRS[:7], ("only source", ""), ("", "nur Ziel"), ("", "")]
    summary = build(request(pairs=two_files(tmp_path, pairs)), tmp_path / "out")
    assert [note for note in summary.notes if note.startswith("3 of 410 ") and "empty" in note]
    assert [note for note in summary.notes if note.startswith("7 of 410 ")]
    once = build(request(pairs=two_files(tmp_path, PAIRS)), tmp_path / "once")
    assert summary.counts == once.counts


def test_sources_are_named_with_their_hashes(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    own, text = two_files(tmp_path, PAIRS), put(tmp_path / "more/own.en", EN)
    summary = build(request(pairs=own, text=(text,)), tmp_path / "out")
    expected = {str(own[0]): own[0], "own.de": own[1], str(text): text}
    assert summary.sources == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in expected.items()}


def test_given_sets_are_kept_whole_and_leave_train(tmp_path: Path) -> None:
    test, train = PAIRS[:100], PAIRS[98:]
    given = {"test": two_files(tmp_path, test, "test"), "valid": two_files(tmp_path, [("v", "w")], "valid")}
    asked = request(pairs=two_files(tmp_path, train), held_out=0, **given)
    summary = build(asked, tmp_path / "out")
    assert pairs_of(tmp_path / "out", "test") == test
    assert pairs_of(tmp_path / "out", "valid") == [("v", "w")]
    known = [{pair[n].casefold() for pair in test} for n in (0, 1)]
    left = [pair for pair in train if pair[0].casefold() not in known[0] and pair[1].casefold() not in known[1]]
    assert pairs_of(tmp_path / "out", "train") == left
    assert [note for note in summary.notes if note.startswith("2 of the 100 ")]
    asked = request(pairs=two_files(tmp_path, train), test=two_files(tmp_path, test, "test"))
    assert build(asked, tmp_path / "valid").counts["valid"] == 20
    assert not set(pairs_of(tmp_path / "valid", "valid")) & set(test)


@pytest.mark.parametrize("first", [0, 90])
def test_a_test_set_known_from_train_is_refused(tmp_path: Path, first: int) -> None:
    asked = request(pairs=two_files(tmp_path, PAIRS[first:]), test=two_files(tmp_path, PAIRS[:100], "test"))
    with pytest.raises(DataError, match=f"--test: {100 - first} of its 100 pairs"):
        build(asked, tmp_path / "out")


def test_a_validation_set_that_is_the_test_set_is_refused(tmp_path: Path) -> None:
    same = two_files(tmp_path, PAIRS[:50], "same")
    with pytest.raises(DataError, match="--valid: 50 of its 50 pairs are in the test set"):
        build(request(pairs=two_files(tmp_path, PAIRS[50:]), test=same, valid=same), tmp_path / "out")


def test_a_given_pair_without_a_side_is_named(tmp_path: Path) -> None:
    test = two_files(tmp_path, [("a", "b"), ("c", " ")], "test")
    with pytest.raises(DataError, match=r"test\.en .*line 2: empty"):
        build(request(pairs=two_files(tmp_path, PAIRS), test=test), tmp_path / "out")


def test_monolingual_text_has_no_held_out_line_and_no_line_twice(tmp_path: Path) -> None:
    text = [*EN, "", *(f"line {n}" for n in range(9000)), *EN[:30]]
    files = put(tmp_path / "a.en", text[:700]), tmp_path / "b.en.gz"
    files[1].write_bytes(gzip.compress("\n".join(text[700:]).encode()))
    out = tmp_path / "out"
    summary = build(request(pairs=two_files(tmp_path, PAIRS), text=files), out)
    train, valid = lines(out / "mono.train.en"), lines(out / "mono.valid.en")
    held_out = {line.casefold() for split in ("valid", "test") for line in lines(out / f"{split}.en")}
    expected = [line for line in dict.fromkeys(text) if line and line.casefold() not in held_out]
    assert sorted(train + valid) == sorted(expected)
    kept = set(train)
    assert train == [line for line in expected if line in kept]
    assert 100 <= len(valid) <= 105, "one in a hundred, at least a hundred; lines that differ in capitals go together"
    assert not {line.casefold() for line in train} & {line.casefold() for line in valid}
    assert set(lines(out / "mono.train.de") + lines(out / "mono.valid.de")) == set(lines(out / "train.de"))
    assert [note for note in summary.notes if "no --text in de" in note]
    assert not [note for note in summary.notes if "no --text in en" in note]


def test_mono_valid_stays_when_text_is_added(tmp_path: Path) -> None:
    own = two_files(tmp_path, PAIRS)
    text = [f"line {n}" for n in range(20_000)]
    chosen = []
    for number in (18_000, 20_000):
        build(request(pairs=own, text=(put(tmp_path / "a.en", text[::-1][:number]),)), tmp_path / "out")
        chosen.append(set(lines(tmp_path / "out/mono.valid.en")))
        assert len(chosen[-1]) == number // 100
    assert len(chosen[0] & chosen[1]) > 160


def test_summarization_has_one_language(tmp_path: Path) -> None:
    articles = [f"{en} Item {n} is new. It costs {n} euros." for n, en in enumerate(EN[:300])]
    objects = put(tmp_path / "own.jsonl", [json.dumps({"a": x, "s": f"Item {n}"}) for n, x in enumerate(articles)])
    asked = request(jsonl=objects, fields=("a", "s"), source="text", target="summary", text_language="en")
    build(asked, tmp_path / "out")
    kept = pairs_of(tmp_path / "out", "train", ("text", "summary"))
    assert len(kept) == 260
    mono = lines(tmp_path / "out/mono.train.en") + lines(tmp_path / "out/mono.valid.en")
    assert {f"It costs {n} euros." for n in range(300) if (articles[n], f"Item {n}") in kept} <= set(mono)
    for split in ("valid", "test"):
        for side in ("text", "summary"):
            held_out = [part for line in lines(tmp_path / f"out/{split}.{side}") for part in (line, *sentences(line))]
            assert not {line.casefold() for line in mono} & {line.casefold() for line in held_out}
    plain = put(tmp_path / "plain.txt", [part for article in articles for part in sentences(article)])
    build(request(**{**vars(asked), "text": (plain,)}), tmp_path / "plain")
    assert set(lines(tmp_path / "plain/mono.train.en")) | set(lines(tmp_path / "plain/mono.valid.en")) == set(mono)


def test_sentences_are_cut_after_their_marks() -> None:
    text = ["It is 3.5 m long.", "“Why?” ask 7 dogs e.g. on Mondays!", "(Because.", "7 dogs!"]
    assert sentences(" ".join(text)) == text
    assert sentences("これは本です。あれも。") == ["これは本です。", "あれも。"]
    assert sentences("") == []


def test_no_pair_is_split_off_that_is_too_long_to_read(tmp_path: Path) -> None:
    own = two_files(tmp_path, PAIRS)
    summary = build(request(pairs=own), tmp_path / "out", longest=120)
    held_out = pairs_of(tmp_path / "out", "valid") + pairs_of(tmp_path / "out", "test")
    assert len(held_out) == 40
    assert max(len(text) for pair in held_out for text in pair) <= 120
    train = set(pairs_of(tmp_path / "out", "train"))
    assert {pair for pair in PAIRS if len(pair[0]) > 200} <= train
    assert len(train) == summary.counts["train"]
    one = request(pairs=own, text_language="en")
    build(one, tmp_path / "one", longest=60)
    held_out = pairs_of(tmp_path / "one", "valid") + pairs_of(tmp_path / "one", "test")
    assert max(len(target) for _, target in held_out) <= 60 < max(len(source) for source, _ in held_out)
    with pytest.raises(DataError, match="are too few"):
        build(request(pairs=own), tmp_path / "few", longest=10)


def test_suspicions_reach_the_notes(tmp_path: Path) -> None:
    files = put(tmp_path / "a.txt", DE), put(tmp_path / "b.txt", EN)
    summary = build(request(pairs=files, text=(put(tmp_path / "plain.de", EN),)), tmp_path / "out")
    assert [note for note in summary.notes if "swapped" in note and "plain.de" not in note]
    assert [note for note in summary.doubts if "swapped" in note]
    assert set(summary.doubts) < set(summary.notes), "counts are no doubts"
    summary = build(request(pairs=(files[0], put(tmp_path / "b.txt", EN[1:] + EN[:1]))), tmp_path / "out")
    assert [note for note in summary.notes if "lengths" in note]
    summary = build(request(pairs=files[::-1], text=(put(tmp_path / "plain.de", EN),)), tmp_path / "out")
    assert [note for note in summary.notes if "swapped" in note and "plain.de" in note]


def test_plain_text_is_looked_at_for_its_script(tmp_path: Path) -> None:
    english, german = (put(tmp_path / name, lines) for name, lines in (("a.en", EN), ("a.de", DE)))
    plain = put(tmp_path / "plain.de", [f"Это строка номер {number}." for number in range(100)])
    summary = build(request(pairs=(english, german), text=(plain,)), tmp_path / "out")
    assert [note for note in summary.doubts if "--text in de" in note and "Cyrillic" in note]
    summary = build(request(pairs=(english, german), text_language="ja"), tmp_path / "one")
    assert [note for note in summary.doubts if "text in ja" in note and "Japanese" in note]


def test_unequal_files_say_up_to_where_they_fit(tmp_path: Path) -> None:
    files = put(tmp_path / "a.en", EN), put(tmp_path / "a.de", [*DE[:600], "eine mehr", *DE[600:]])
    with pytest.raises(DataError, match=r"a\.en has 1,\d+ lines but .*a\.de has 1,\d+.* line 600"):
        build(request(pairs=files), tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"pairs": None}, "no text given"),
        ({"tsv": Path("own.en")}, "--pairs and --tsv given"),
        ({"fields": ("1", "2")}, "--fields"),
        ({"target": "en"}, "both 'en'"),
        ({"target": "../de"}, "'../de'"),
        ({"held_out": 0}, "--held-out 0"),
        ({"pairs": (Path("own.en"), Path("own.en"))}, "both sides"),
        ({"pairs": (Path("own.de"), Path("own.en"))}, "de to en"),
        ({"pairs": (Path("own.en"), Path("none.de"))}, "none.de: no such file"),
        ({"text": (Path("own.txt"),)}, "own.txt: which language"),
        ({"pairs": (Path("out/train.en"), Path("own.de"))}, "train.en"),
        ({"pairs": (Path("blank.en"), Path("blank.de"))}, "no pair"),
        ({"held_out": 101}, "202 of the 400|more than half"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], named: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    two_files(tmp_path, PAIRS)
    two_files(tmp_path, [(" ", " ")], "blank")
    for name in ("own.txt", "out/train.en"):
        put(tmp_path / name, ["text"])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    with pytest.raises(DataError, match=named):
        build(request(**{"pairs": (Path("own.en"), Path("own.de")), **change}), Path("out"))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


def test_an_error_midway_leaves_no_partial_file(tmp_path: Path) -> None:
    text = tmp_path / "plain.en"
    text.write_bytes(b"good\n" * 200 + b"\xff\n")
    with pytest.raises(DataError, match=r"plain\.en, line 201"):
        build(request(pairs=two_files(tmp_path, PAIRS), text=(text,)), tmp_path / "out")
    assert not list((tmp_path / "out").glob("*partial*"))
    assert not list((tmp_path / "out").glob("mono.*.en"))


def test_a_corpus_folder_without_its_record_is_not_taken_for_the_text(tmp_path: Path) -> None:
    asked, out = request(pairs=two_files(tmp_path, PAIRS)), tmp_path / "out"
    made = own_data.split(asked, out)
    assert own_data.split(asked, out) == made
    (out / own_data.CORPUS / own_data.RECORD).unlink()
    before = {path.name: path.read_bytes() for path in (out / own_data.CORPUS).iterdir()}
    with pytest.raises(DataError, match=own_data.RECORD):
        own_data.split(asked, out)
    assert {path.name: path.read_bytes() for path in (out / own_data.CORPUS).iterdir()} == before


def test_pairs_that_are_not_in_nfc_are_counted(tmp_path: Path) -> None:
    pairs = [*PAIRS, ("a cafe\u0301 here", "ein Cafe\u0301 hier"), ("the coffee here", "der Cafe\u0301 dort")]
    before = build(request(pairs=two_files(tmp_path, PAIRS)), tmp_path / "before")
    found = build(request(pairs=two_files(tmp_path, pairs)), tmp_path / "out")
    assert not any("NFC" in note for note in before.notes)
    (note,) = (note for note in found.notes if "NFC" in note)
    assert note.startswith(f"2 of {len(pairs)} pairs")
