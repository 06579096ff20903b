"""The split: families stay together, nothing held out resembles training text, and the checker notices if it does."""

from __future__ import annotations

import json
import lzma
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "data-prep" / "debian"))

import check_split
from debian_corpus import neardup, output, pools, split
from debian_corpus.entries import Entry, pair_entries
from debian_corpus.neardup import REMOVE, STRICT, HeldOut

NOUNS = "library tool daemon module font game editor driver viewer server parser codec plugin applet client".split()
VERBS = "reads writes converts compares draws encrypts indexes plays schedules mounts verifies renders".split()
THINGS = "images archives sockets certificates manuals spreadsheets calendars maps proteins galaxies wallets".split()
TARGETS = dict(
    zip(
        NOUNS + VERBS + THINGS,
        (
            "Bibliothek Werkzeug Dienst Modul Schrift Spiel Editor Treiber Betrachter Server Parser Codec Erweiterung "
            "Miniprogramm Klient liest schreibt wandelt vergleicht zeichnet verschlüsselt erfasst spielt plant bindet "
            "prüft stellt Bilder Archive Verbindungen Zertifikate Handbücher Tabellen Kalender Karten Proteine "
            "Galaxien Börsen"
        ).split(),
    )
)
BOILERPLATE = {
    "en": (".", "This package contains the documentation."),
    "de": (".", "Dieses Paket enthält die Dokumentation."),
}


def made_up_entries(count: int, seed: int = 1) -> list[Entry]:
    """Descriptions of made-up packages, each of a family of its own; half of them share a last sentence."""
    rng = random.Random(seed)
    result = []
    for number in range(count):
        name = "".join(rng.choices("bcdfghklmnprstvz", k=4) + rng.choices("aeiou", k=2)) + chr(97 + number % 26)
        noun, verb, thing, other = rng.choice(NOUNS), rng.choice(VERBS), *rng.sample(THINGS, 2)
        unusual = " ".join("".join(rng.choices("abdegiklmnoprstu", k=6)) for _ in range(4))
        result.append(
            Entry(
                f"{number:032x}",
                (name,),
                f"{noun} that {verb} {thing} with {unusual.split()[0]}",
                (f"{name} {verb} {thing} and {other} by {unusual}.", *BOILERPLATE["en"][: 2 * (number % 2)]),
                f"{TARGETS[noun]}, die {TARGETS[thing]} mit {unusual.split()[0]} {TARGETS[verb]}",
                (
                    f"{name} {TARGETS[verb]} {TARGETS[thing]} sowie {TARGETS[other]} durch {unusual}.",
                    *BOILERPLATE["de"][: 2 * (number % 2)],
                ),
            )
        )
    return result


@pytest.fixture(scope="module")
def corpus() -> split.Corpus:
    return split.make(pools.pools(made_up_entries(600), "de"), "de")


def brute_force(held: str, asked: str, limits: neardup.Thresholds) -> bool:
    """The definition of a near-duplicate, without an index."""
    one, two = neardup._features(held), neardup._features(asked)

    def jaccard(first: set[str], second: set[str]) -> float:
        return len(first & second) / len(first | second)

    return (
        jaccard(one.bigrams, two.bigrams) >= limits.bigrams
        or (limits.words is not None and jaccard(one.words, two.words) >= limits.words)
        or (one.length >= limits.min_contained and len(one.inner & two.inner) >= limits.containment * len(one.inner))
    )


@pytest.mark.parametrize("limits", [REMOVE, STRICT], ids=["remove", "strict"])
def test_index_finds_what_comparing_everything_finds(limits: neardup.Thresholds) -> None:
    rng = random.Random(3)
    vocabulary = [f"w{chr(97 + index)}" for index in range(5)]
    texts = [" ".join(rng.choices(vocabulary, k=rng.randint(3, 9))) for _ in range(600)]
    held, asked = texts[:200], texts[200:]
    index = HeldOut(held, limits, background=asked[:50])
    expected = [[number for number, text in enumerate(held) if brute_force(text, line, limits)] for line in asked]
    assert sum(map(len, expected)) > 100
    assert [index.matches(line) for line in asked] == expected


@pytest.mark.parametrize(
    ("held", "training"),
    [
        ("Runtime files for GCC 12 on this machine", "runtime files for gcc-11 on this machine."),
        ("It reads sound files in any format of GStreamer.", "It reads video files in any format of GStreamer."),
        ("GNOME terminal emulator application", "MATE terminal emulator application"),
        ("development files for the Wayland compositor", "Wayland compositor: the development files for"),
        ("fast lexical analyzer generator", "This is the old version of the fast lexical analyzer generator for C."),
    ],
    ids=["version", "one word", "short", "order", "quoted"],
)
def test_near_duplicates_are_recognized(held: str, training: str) -> None:
    assert HeldOut([held], STRICT).matches(training) == [0]


def test_same_subject_in_other_words_is_no_near_duplicate() -> None:
    held = "It reads sound files in any format supported by GStreamer."
    assert HeldOut([held], STRICT).matches("Every audio format that GStreamer knows can be opened.") == []


def test_family_decides_the_split_whatever_its_version() -> None:
    assert {pools.split_of_family("gcc")} == {pools.split_of_family("gcc") for _ in range(3)}
    names = [f"package-{chr(97 + one)}{chr(97 + two)}" for one in range(26) for two in range(26)]
    shares = [pools.split_of_family(name) for name in names]
    assert 0.02 < shares.count("test") / len(shares) < 0.09
    assert 0.02 < shares.count("valid") / len(shares) < 0.09


def test_description_of_two_splits_families_is_training_text() -> None:
    names = [f"package-{chr(97 + one)}{chr(97 + two)}" for one in range(26) for two in range(26)]
    test = next(name for name in names if pools.split_of_family(name) == "test")
    valid = next(name for name in names if pools.split_of_family(name) == "valid")
    entry = Entry("0" * 32, (test, valid), "a game", ())
    assert pools.assign([entry]) == {"0" * 32: "train"}


def test_every_set_is_filled_and_boilerplate_is_trained_on_but_not_tested(corpus: split.Corpus) -> None:
    for task, wanted in (("bitext", pools.SPLITS), ("synopsis", pools.SPLITS), ("mono.en", pools.SPLITS[:2])):
        assert all(corpus[task][name] for name in wanted), task
    boilerplate = (BOILERPLATE["en"][1], BOILERPLATE["de"][1])
    assert boilerplate in corpus["bitext"]["train"]
    assert boilerplate not in corpus["bitext"]["valid"] + corpus["bitext"]["test"]


def test_nothing_held_out_resembles_training_text(corpus: split.Corpus, tmp_path: Path) -> None:
    folder = written(corpus, tmp_path / "corpus")
    assert check_split.main([str(folder)]) == 0


def written(corpus: split.Corpus, folder: Path) -> Path:
    folder.mkdir()
    output.write(folder, output.texts(corpus, "de"), {"languages": ["en", "de"]}, plain=False)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["train.en", "train.de", "mono.train.en", "mono.train.de", "synopsis.train.description"]
)
def test_checker_finds_one_leaked_sentence(
    corpus: split.Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    folder = written(corpus, tmp_path / "corpus")
    side = 1 if name.endswith(".de") else 0
    leaked = max((unit[side] for unit in corpus["bitext"]["test"]), key=len)
    path = folder / f"{name}.xz"
    path.write_bytes(lzma.compress(lzma.decompress(path.read_bytes()) + f"{leaked.upper()}\n".encode()))
    assert check_split.main([str(folder)]) == 1
    said = capsys.readouterr().out
    assert f"held out: {leaked}" in said
    assert check_split.main([str(folder), "--max", "1"]) == 0


@pytest.mark.parametrize("name", ["test.de.xz", "synopsis.test.synopsis.xz"])
@pytest.mark.parametrize("content", [None, b""], ids=["missing", "empty"])
def test_checker_does_not_pass_over_a_held_out_file(
    corpus: split.Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes | None
) -> None:
    folder = written(corpus, tmp_path / "corpus")
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(lzma.compress(content))
    assert check_split.main([str(folder)]) == 2
    assert f"{name if content is None else name.removesuffix('.xz')} is missing" in capsys.readouterr().err


def test_checker_does_not_pass_over_a_language_without_held_out_text(
    corpus: split.Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, more = written(corpus, tmp_path / "corpus"), tmp_path / "more"
    more.mkdir()
    (more / "mono.more.fr").write_text("Une phrase.\n", encoding="utf-8")
    assert check_split.main([str(folder), "--more", str(more)]) == 2
    assert "valid.fr is missing or empty, so mono.more.train.fr cannot be compared" in capsys.readouterr().err


def test_checker_refuses_what_is_no_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_split.main([str(tmp_path / "nowhere")]) == 2
    assert check_split.main([str(tmp_path)]) == 2
    assert "no train files" in capsys.readouterr().err
    (tmp_path / "train.en.xz").write_bytes(b"not xz")
    assert check_split.main([str(tmp_path)]) == 2
    assert "train.en.xz is damaged" in capsys.readouterr().err


def test_same_descriptions_in_another_order_give_the_same_bytes(tmp_path: Path) -> None:
    found = made_up_entries(150)
    packages, english, german = ([*rows] for rows in zip(*(as_stanzas(entry) for entry in found)))
    folders = []
    for number, seed in enumerate((1, 2)):
        for rows in (packages, english, german):
            random.Random(seed).shuffle(rows)
        entries = pair_entries("\n".join(packages), "\n".join(english), "\n".join(german), "de")
        folders.append(written(split.make(pools.pools(entries, "de"), "de"), tmp_path / str(number)))
    sums = [(folder / "SHA256SUMS").read_text() for folder in folders]
    assert sums[0] == sums[1]
    assert json.loads((folders[0] / "counts.json").read_text())["files"]["train.en"]["lines"] > 100


def as_stanzas(entry: Entry) -> tuple[str, str, str]:
    """An entry as the three indices would have it."""
    english = "\n".join(f" {line}" for line in entry.lines)
    german = "\n".join(f" {line}" for line in entry.target_lines)
    head = f"Package: {entry.families[0]}\n"
    return (
        f"{head}Version: 1-1\n",
        f"{head}Description-md5: {entry.md5}\nDescription-en: {entry.synopsis}\n{english}\n",
        f"{head}Description-md5: {entry.md5}\nDescription-de: {entry.target_synopsis}\n{german}\n",
    )


def test_training_order_is_shuffled_but_fixed(corpus: split.Corpus) -> None:
    again = split.make(pools.pools(made_up_entries(600), "de"), "de")
    assert again == corpus
    lines = [unit[0] for unit in corpus["mono.en"]["train"]]
    assert lines != sorted(lines)
    assert len({line.split()[0] for line in lines[:30]}) > 10
