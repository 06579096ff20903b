"""Text that is longer than models read: left out, refused or cut before anything is trained, and never silently."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmfusion.text import binarize, prepare
from lmfusion.text.own_preparation import OwnPreparation
from lmfusion.text.textio import DataError, read_lines

LIMIT = 40
SIZES = {"train": 200, "valid": 12, "test": 12, "mono.train": 200, "mono.valid": 12}
WORDS = "the small program reads every file of a folder and writes what it finds to another one".split()


def sentence(number: int, length: int = 6) -> str:
    """A sentence that is found by its number."""
    return " ".join(WORDS[(number * 7 + place * 3) % len(WORDS)] for place in range(length)) + f" {number} ."


@pytest.fixture(autouse=True)
def nothing_is_binarized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binarize, "fairseq_preprocess", lambda work, flags, log: {})


def make_corpus(folder: Path, sides: tuple[str, str], languages: tuple[str, ...], **long: list[int]) -> Path:
    """A corpus folder; in the splits named, the lines of these numbers (from 1) are long, on the source side."""
    folder.mkdir(parents=True)
    for split, size in SIZES.items():
        for side in languages if split.startswith("mono") else sides:
            lines = [
                sentence(number, 60 if side in (sides[0], *languages[:1]) and number in long.get(split, []) else 6)
                for number in range(1, size + 1)
            ]
            (folder / f"{split}.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def preparation(
    corpus: Path, out: Path, *words: str, given: dict[str, tuple[Path, Path]] | None = None
) -> OwnPreparation:
    flags = [str(corpus), "--out", str(out), "--max-length", str(LIMIT), "--bpe-size", "120", "--workers", "1"]
    return OwnPreparation(prepare.parse_args([*flags, "--max-ratio", "0", *words]), given or {})


def lines(path: Path) -> list[str]:
    return list(read_lines(path))


ENGLISH_GERMAN = ("-s", "en", "-t", "de")


def test_pairs_that_were_split_off_and_are_too_long_are_left_out_of_both_sides(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", ("en", "de"), ("en", "de"), valid=[3, 12], test=[1])
    out = tmp_path / "out"
    preparation(corpus, out, *ENGLISH_GERMAN).run()
    for split, left_out in (("valid", {3, 12}), ("test", {1})):
        kept = [number for number in range(1, SIZES[split] + 1) if number not in left_out]
        for side in ("en", "de"):
            assert lines(out / "text" / f"{split}.{side}") == [sentence(number) for number in kept]
            assert len(lines(out / "tok" / f"{split}.{side}")) == len(kept)
            assert max(len(line.split()) for line in lines(out / "bpe" / f"{split}.{side}")) <= LIMIT
    assert json.loads((out / "prepare.json").read_text())["counts"]["left_out"] == {"valid": [3, 12], "test": [1]}

    (out / "text" / "valid.en").unlink()
    again = preparation(corpus, out, *ENGLISH_GERMAN)
    again.run()
    assert len(lines(out / "text" / "valid.en")) == SIZES["valid"] - 2, "what is made again leaves out the same lines"
    assert again.counts["left_out"] == {"valid": [3, 12], "test": [1]}


def test_a_pair_that_was_given_and_is_too_long_is_refused_by_file_and_line(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", ("en", "de"), ("en", "de"), test=[5, 9], valid=[2])
    given = {"test": (Path("mine/newstest.en"), Path("mine/newstest.de"))}
    with pytest.raises(DataError, match=rf"^mine/newstest\.en, line 5: \d+ symbols .* {LIMIT} .*lines 9\)") as told:
        preparation(corpus, tmp_path / "out", *ENGLISH_GERMAN, given=given).run()
    assert "--max-length" in str(told.value)
    assert not list((tmp_path / "out").glob("bitext-all*")), "nothing is binarized"
    preparation(corpus, tmp_path / "out", *ENGLISH_GERMAN, "--max-length", "99", given=given).run()
    assert (tmp_path / "out" / "bitext-all").is_dir(), "the advice can be followed in the same folder"


@pytest.mark.parametrize("name", ["text/train.en", "tok/train.en", "bpe/test.de", "spm.model", "lm.en/dict.txt"])
def test_files_of_somebody_else_are_neither_taken_for_ours_nor_touched(tmp_path: Path, name: str) -> None:
    """A training text of that name would be trained on whole, the test set in it."""
    out = tmp_path / "out"
    theirs = out / name
    theirs.parent.mkdir(parents=True)
    theirs.write_text("of somebody else\n", encoding="utf-8")
    corpus = make_corpus(tmp_path / "corpus", ("en", "de"), ("en", "de"))
    with pytest.raises(DataError, match=f"out/{name.split('/')[0]}: is there already"):
        preparation(corpus, out, "-s", "en", "-t", "de").run()
    assert [path for path in out.rglob("*") if path.is_file() and path.name != ".lock"] == [theirs]


def test_settings_are_refused_without_loss_once_something_is_binarized(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", ("en", "de"), ("en", "de"))
    preparation(corpus, tmp_path / "out", *ENGLISH_GERMAN).run()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*") if path.name != ".lock"}
    with pytest.raises(DataError, match="max_length"):
        preparation(corpus, tmp_path / "out", *ENGLISH_GERMAN, "--max-length", "99").run()
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_long_training_pairs_and_plain_sentences_are_dropped_and_counted(tmp_path: Path) -> None:
    long = {"train": [1, 50, 200], "mono.train": [7]}
    corpus = make_corpus(tmp_path / "corpus", ("en", "de"), ("en", "de"), **long)
    done = preparation(corpus, tmp_path / "out", *ENGLISH_GERMAN)
    done.run()
    assert done.counts["bitext-all"]["train"] == {"kept": 197, "dropped_long": 3}
    assert done.counts["lm.en"]["train"] == {"kept": 199, "dropped_long": 1}
    for side in ("en", "de"):
        kept = lines(tmp_path / "out" / "kept" / "bitext-all" / f"train.{side}")
        encoded = lines(tmp_path / "out" / "bpe" / f"train.{side}")
        assert kept == [line for number, line in enumerate(encoded, start=1) if number not in long["train"]]


def test_articles_are_cut_and_the_language_model_reads_all_of_them_in_pieces(tmp_path: Path) -> None:
    long = {"train": [1, 50], "valid": [2], "test": [12], "mono.train": [7]}
    corpus = make_corpus(tmp_path / "corpus", ("text", "summary"), ("en",), **long)
    done = preparation(corpus, tmp_path / "out", "-s", "text", "-t", "summary", "--text-lang", "en")
    done.run()
    bpe = tmp_path / "out" / "bpe"
    for split in ("train", "valid", "test"):
        encoded = lines(bpe / f"{split}.text")
        assert len(encoded) == SIZES[split]
        assert [number for number, line in enumerate(encoded, start=1) if len(line.split()) == LIMIT] == long[split]
        assert max(len(line.split()) for line in encoded) == LIMIT
    text = lines(tmp_path / "out" / "text" / "valid.text")
    assert text[1] == sentence(2, 60), "what is scored and translated stays whole"
    pieces, whole = lines(tmp_path / "out" / "kept" / "lm.en" / "train"), lines(bpe / "mono.train.en")
    assert max(len(line.split()) for line in pieces) == LIMIT
    assert " ".join(pieces) == " ".join(whole)
    assert len(pieces) > len(whole) == SIZES["mono.train"]


def test_a_summary_that_is_too_long_to_be_tested_on_is_left_out(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", ("text", "summary"), ("en",))
    path = corpus / "test.summary"
    path.write_text(path.read_text(encoding="utf-8").replace(sentence(4), sentence(4, 60)), encoding="utf-8")
    preparation(corpus, tmp_path / "out", "-s", "text", "-t", "summary", "--text-lang", "en").run()
    assert len(lines(tmp_path / "out" / "text" / "test.text")) == SIZES["test"] - 1
    assert sentence(4) not in lines(tmp_path / "out" / "text" / "test.text")


def test_closing_symbols_are_none_of_the_text_that_unknown_symbols_are_a_share_of() -> None:
    files = {
        "train": {"sentences": 100, "tokens": 1100, "unknown_percent": 1.0},
        "test": {"sentences": 10, "tokens": 20, "unknown_percent": 0.0},
    }
    assert binarize.most_unknown(files) == pytest.approx(100 * 11 / 1000)
