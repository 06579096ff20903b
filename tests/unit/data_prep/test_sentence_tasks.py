"""Labelled sentences of package descriptions: labels worked out again from the index, and the committed files."""

from __future__ import annotations

import hashlib
import json
import lzma
import sys
from itertools import product
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "data-prep" / "debian"))
sys.path.insert(0, str(Path(__file__).parent))

import sentence_tasks
from debian_corpus.labelled import GROUP_OF, MAX_WORDS
from debian_packages import make_lists

from lmfusion.text.labelled import read_examples

COMMITTED = Path(__file__).parents[3] / "data-prep" / "debian" / "sentences"
TASKS, SPLITS = ("section", "synopsis", "similarity"), ("train", "valid", "test")
KINDS = "viewer server parser editor compiler mixer solver crawler player monitor indexer".split()
OBJECTS = "pictures letters maps songs graphs proteins archives sockets fonts stars tides".split()
SECTIONS = ("devel", "libs", "python", "doc", "science", "sound", "net", "admin")
"""One of each group."""


def index() -> tuple[dict[str, dict[str, object]], str, str]:
    """Packages by name, and the two indices that describe them."""
    packages: dict[str, dict[str, object]] = {}
    for number, (kind, thing) in enumerate(product(KINDS, OBJECTS)):
        tags = {f"role::{kind}", f"works-with::{thing}", f"use::{number % 3}", f"suite::{number % 2}"}
        text = f"This {kind} takes {thing} from several places and keeps {thing} in order for the {kind} and its users."
        packages[f"{thing}-{kind}"] = {
            "section": SECTIONS[number % len(SECTIONS)],
            "tags": tags,
            "synopsis": f"fast {kind} for all sorts of {thing}",
            "text": text,
        }
    listed = "\n".join(
        f"Package: {name}\nSection: {each['section']}\nTag: {', '.join(sorted(each['tags']))}\n"  # type: ignore[call-overload]
        for name, each in packages.items()
    )
    english = "\n".join(
        f"Package: {name}\nDescription-md5: {hashlib.md5(name.encode()).hexdigest()}\n"
        f"Description-en: {each['synopsis']}\n {each['text']}\n"
        for name, each in packages.items()
    )
    return packages, listed, english


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sentences")
    _, listed, english = index()
    names = {
        "main/binary-amd64/Packages": listed,
        "main/i18n/Translation-en": english,
        "main/i18n/Translation-de": "\n",
    }
    lists = make_lists(folder / "lists", names)
    assert sentence_tasks.main(["--indices", str(lists), "--out", str(folder / "out"), "--plain"]) == 0
    return folder / "out"


def rows(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]


def test_labels_are_those_of_the_index(built: Path) -> None:
    packages, _, _ = index()
    by_text = {each["text"]: each for each in packages.values()}
    by_synopsis = {each["synopsis"]: each for each in packages.values()}
    counts = dict.fromkeys(TASKS, 0)
    for split in SPLITS:
        for text, label in rows(built / f"section-{split}.tsv"):
            assert label == GROUP_OF[str(by_text[text]["section"])]
            counts["section"] += 1
        for synopsis, text, label in rows(built / f"synopsis-{split}.tsv"):
            assert (by_text[text]["synopsis"] == synopsis) == (label == "1")
            counts["synopsis"] += 1
        for one, other, score in rows(built / f"similarity-{split}.tsv"):
            a, b = by_synopsis[one]["tags"], by_synopsis[other]["tags"]
            assert float(score) == pytest.approx(5 * len(a & b) / len(a | b), abs=0.005)  # type: ignore[operator, arg-type]
            counts["similarity"] += 1
    assert min(counts.values()) > 30


def test_no_package_is_in_two_splits(built: Path) -> None:
    packages, _, _ = index()
    homes = {str(each[part]): name for name, each in packages.items() for part in ("text", "synopsis")}
    found: dict[str, set[str]] = {split: set() for split in SPLITS}
    for split in SPLITS:
        found[split] |= {homes[text] for text, _ in rows(built / f"section-{split}.tsv")}
        found[split] |= {homes[text] for _, text, _ in rows(built / f"synopsis-{split}.tsv")}
        for one, other, _ in rows(built / f"similarity-{split}.tsv"):
            found[split] |= {homes[one], homes[other]}
    assert not found["train"] & found["valid"]
    assert not found["test"] & (found["train"] | found["valid"])


@pytest.mark.parametrize("task", TASKS)
def test_committed_files_are_whole_and_balanced_in_training(task: str) -> None:
    sums = dict(reversed(line.split()) for line in (COMMITTED / "SHA256SUMS").read_text(encoding="utf-8").splitlines())
    counts = json.loads((COMMITTED / "counts.json").read_text(encoding="utf-8"))["files"]
    for split in SPLITS:
        path = COMMITTED / f"{task}-{split}.tsv.xz"
        assert hashlib.sha256(path.read_bytes()).hexdigest() == sums[path.name]
        columns, examples = read_examples(path)
        assert len(examples) == counts[f"{task}-{split}.tsv"]["lines"] - 1
        if split == "train":
            labels = [each.label or "" for each in examples]
            bins = [str(min(int(float(label)), 4)) for label in labels] if columns.kind == "score" else labels
            assert len({bins.count(each) for each in set(bins)}) == 1
        if task == "section":
            assert max(len(each.texts[0].split()) for each in examples) <= MAX_WORDS


def test_no_committed_held_out_text_is_training_text() -> None:
    texts: dict[str, set[str]] = {split: set() for split in SPLITS}
    for task, split in product(TASKS, SPLITS):
        _, examples = read_examples(COMMITTED / f"{task}-{split}.tsv.xz")
        texts[split] |= {text.lower() for each in examples for text in each.texts}
    assert not texts["train"] & texts["valid"]
    assert not texts["test"] & (texts["train"] | texts["valid"])


def test_no_committed_held_out_description_is_in_the_text_of_the_language_models() -> None:
    with lzma.open(COMMITTED.parent / "en-de" / "synopsis.train.description.xz", "rt", encoding="utf-8") as stream:
        known = {line.strip().lower() for line in stream}
    for task, split in product(TASKS, ("valid", "test")):
        _, examples = read_examples(COMMITTED / f"{task}-{split}.tsv.xz")
        assert not {text.lower() for each in examples for text in each.texts} & known
