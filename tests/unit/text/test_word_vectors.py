"""Training word vectors: all four kinds find planted neighbours, and the numbers are gensim's own."""

from __future__ import annotations

import errno
import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lmfusion import cli
from lmfusion.errors import InputError
from lmfusion.lm.vector_files import read_vectors
from lmfusion.text.word_vectors import Sentences, Training, save, train

EATING, WORKING = "eat ripe sweet peel taste".split(), "build iron wood cut hit".split()
FRUITS, TOOLS = ["apple", "pear", "plum", "fig"], ["hammer", "saw", "drill", "file"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,200 sentences in which fruits stand among eating words, tools among working words, at random otherwise."""
    draw = random.Random(3)
    lines = []
    for _ in range(1200):
        kind = draw.randrange(2)
        words = draw.choices([EATING, WORKING][kind], k=4) + draw.choices([FRUITS, TOOLS][kind], k=1) + ["the"]
        draw.shuffle(words)
        lines.append(" ".join(words))
    path = tmp_path_factory.mktemp("corpus") / "text.en"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def gensim() -> Any:
    return pytest.importorskip("gensim")


@pytest.mark.parametrize("mode", ["skipgram", "cbow"])
@pytest.mark.parametrize("loss", ["ns", "hs"])
def test_words_of_like_contexts_become_neighbours(corpus: Path, tmp_path: Path, mode: str, loss: str) -> None:
    out = tmp_path / "text.vec"
    words = ["embed", "--corpus", corpus, "--out", out, "--mode", mode, "--loss", loss, "--size", 12, "--epochs", 20]
    assert cli.main([*map(str, words), "--sample", "0", "--neighbours", "fig", "saw"]) == 0
    found = read_vectors(out)
    assert set(found.words) == {
        "</s>",
        "the",
        *FRUITS,
        *TOOLS,
        *"eat ripe sweet peel taste build iron wood cut hit".split(),
    }
    unit = dict(zip(found.words, found.vectors.numpy() / np.linalg.norm(found.vectors.numpy(), axis=1, keepdims=True)))
    for own, other in ((FRUITS, TOOLS), (TOOLS, FRUITS)):
        for word in own:
            near = min(unit[word] @ unit[friend] for friend in own)
            assert near > max(unit[word] @ unit[stranger] for stranger in other)


def test_numbers_are_those_of_gensim_on_the_same_sentences_and_of_each_kind_others(gensim: Any, corpus: Path) -> None:
    sentences = [[*line.split(), "</s>"] for line in corpus.read_text(encoding="utf-8").splitlines()]
    settings = {"window": 3, "sample": 1e-2, "min_count": 1, "seed": 7, "workers": 1, "epochs": 2}
    kinds = {("skipgram", "ns"): (1, 0, 4), ("skipgram", "hs"): (1, 1, 0), ("cbow", "ns"): (0, 0, 4)}
    kinds["cbow", "hs"] = (0, 1, 0)
    found = []
    for (mode, loss), (sg, hs, negative) in kinds.items():
        theirs = gensim.models.Word2Vec(
            sentences, vector_size=10, sg=sg, hs=hs, negative=negative, alpha=0.05, min_alpha=0.0001, **settings
        ).wv
        ours = train([corpus], Training(mode=mode, loss=loss, size=10, lr=0.05, negative=4, **settings))
        assert ours.index_to_key == theirs.index_to_key
        assert np.array_equal(ours.vectors, theirs.vectors)
        found.append(ours.vectors.tobytes())
    assert len(set(found)) == 4


def test_the_same_seed_gives_the_same_file_and_another_one_does_not(corpus: Path, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one.vec", "two.vec", "three.vec")]
    for seed, file in zip(("1", "1", "2"), files):
        words = ["embed", "--corpus", str(corpus), "--out", str(file), "--size", "8", "--epochs", "1", "--seed", seed]
        assert cli.main(words) == 0
    one, two, three = (file.read_bytes() for file in files)
    assert one == two != three


def test_text_and_binary_files_hold_the_same_numbers(corpus: Path, tmp_path: Path) -> None:
    words = ["embed", "--corpus", str(corpus), "--size", "8", "--epochs", "1"]
    assert cli.main([*words, "--out", str(tmp_path / "text.vec.gz")]) == 0
    assert cli.main([*words, "--out", str(tmp_path / "text.bin"), "--binary"]) == 0
    text, binary = read_vectors(tmp_path / "text.vec.gz"), read_vectors(tmp_path / "text.bin")
    assert text.words == binary.words
    assert text.vectors.equal(binary.vectors)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.bin", "text.vec.gz"]


def test_long_lines_are_read_to_their_end(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text(" ".join(map(str, range(25_000))) + "\n\nshort\n", encoding="utf-8")
    pieces = list(Sentences([path], 1))
    assert [len(piece) for piece in pieces] == [10_000, 10_000, 5_001, 2]
    assert [word for piece in pieces for word in piece] == [*map(str, range(25_000)), "</s>", "short", "</s>"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--size", "0"], "--size 0"),
        (["--lr", "-1"], "--lr -1"),
        (["--lr", "0.00001"], "--lr 1e-05"),
        (["--loss", "hs", "--negative", "5"], "--negative 5 would be ignored with --loss hs"),
        (["--min-count", "100000"], "no word occurs 100000 times"),
        (["--neighbours", "zebra"], "'zebra' has no vector"),
    ],
)
def test_bad_settings_are_one_line(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    out = tmp_path / "text.vec"
    assert cli.main(["embed", "--corpus", str(corpus), "--out", str(out), *words]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(("name", "said"), [("folder", "is a folder"), ("x.vec.bz2", ".bz2")])
def test_a_file_that_cannot_be_used_is_refused_before_anything_is_trained(
    corpus: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    said: str,
) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr("gensim.models.Word2Vec", None)
    assert cli.main(["embed", "--corpus", str(corpus), "--out", str(tmp_path / name)]) != 0
    assert said in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder"]


@pytest.mark.parametrize("misspelt", [{"mode": "skip-gram"}, {"loss": "negative"}])
def test_a_misspelt_kind_of_training_from_python_is_refused_rather_than_taken_for_the_other(misspelt: Any) -> None:
    with pytest.raises(InputError, match=next(iter(misspelt.values()))):
        Training(**misspelt)


def test_an_empty_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("\n\n", encoding="utf-8")
    with pytest.raises(InputError, match="text"):
        train([tmp_path / "text"], Training())


def test_a_missing_gensim_is_named_with_what_brings_it(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(InputError, match=r"lmfusion\[static\]"):
        train([corpus], Training())


def test_the_corpus_is_not_overwritten(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = corpus.read_bytes()
    assert cli.main(["embed", "--corpus", str(corpus), "--out", str(corpus)]) == 2
    assert str(corpus) in capsys.readouterr().err
    assert corpus.read_bytes() == before


def test_a_full_disk_is_told_with_the_file_and_leaves_none(tmp_path: Path) -> None:
    def fill(path: str, binary: bool) -> None:
        Path(path).write_text("2 2\n", encoding="utf-8")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(InputError, match=r"en\.vec could not be written"):
        save(SimpleNamespace(save_word2vec_format=fill), tmp_path / "en.vec", binary=False)
    assert not list(tmp_path.iterdir())
