"""The corpora of the paper from archive to fairseq's data: the real commands on stand-ins, also killed half-way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from fairseq.data import Dictionary, data_utils

ROOT = Path(__file__).parents[2]
NEWSTESTS = {f"newstest{year}": 20 + number for number, year in enumerate(range(2012, 2019))}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder all corpora share, as they do at work."""
    return tmp_path_factory.mktemp("paper") / "DATA"


def command(corpus: str, data: Path, table: Path, *flags: str) -> list[str]:
    """The command line of one corpus."""
    words = ["bash", str(ROOT / "data-prep" / f"{corpus}.sh"), "--out", str(data), "--scale", "tiny"]
    return [*words, "--sources", str(table), "--workers", "1", *flags]


def run(*words: object) -> str:
    """Run a corpus to its end; its output."""
    done = subprocess.run(command(*words), capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def environment() -> dict[str, str]:
    return {**os.environ, "NO_SETUP": "1", "OMP_NUM_THREADS": "1"}


def ids(folder: Path, name: str, dictionary: Dictionary) -> list[str]:
    """The lines of a binarized file, as symbols."""
    return [dictionary.string(line) for line in data_utils.load_indexed_dataset(str(folder / name), dictionary)]


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def joined(symbols: str) -> str:
    """Moses tokens of BPE symbols."""
    return symbols.replace(" ", "").replace("▁", " ").strip()


def made(data: Path) -> dict[str, int]:
    """When each file was made."""
    return {str(path): path.stat().st_mtime_ns for path in data.rglob("*") if path.is_file() and path.suffix != ".json"}


def test_english_german_killed_half_way_goes_on_to_nested_subsets_and_lm_data(
    data: Path, standin_sources: Path
) -> None:
    flags = ("--subsets", "160K", "5186K", "--bitext-bpe", "160K")
    words = command("wmt18_ende", data, standin_sources, *flags)
    begun = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment(), start_new_session=True)
    assert begun.stdout is not None
    while "newscrawl/tok.en" not in begun.stdout.readline():
        assert begun.poll() is None
    os.killpg(begun.pid, signal.SIGKILL)
    begun.wait()
    begun.stdout.close()
    before = made(data)
    said = run("wmt18_ende", data, standin_sources, *flags)
    assert "text.bitext" not in said, "a finished stage was done again"
    finished = {path: time for path, time in before.items() if ".partial" not in path and "/.lock" not in path}
    assert finished.items() <= made(data).items()
    assert len(finished) > 40
    assert not list(data.rglob("*.partial"))
    assert "everything is there" in run("wmt18_ende", data, standin_sources, *flags)

    folder = data / "wmt18_ende"
    dictionary = Dictionary.load(str(folder / "dict.txt"))
    assert len(dictionary) == 604
    small, whole = (ids(folder / f"bitext-{name}", "train.en-de.de", dictionary) for name in ("160K", "5186K"))
    assert small == whole[:16]
    counts = json.loads((folder / "prepare.json").read_text())["counts"]
    assert counts["text.bitext"]["pairs"]["commoncrawl"] == 250
    selected = counts["tok.train"]
    assert selected["dropped_empty"] == selected["dropped_long"] == 4
    assert sum(selected.values()) == 700
    assert len(whole) == selected["train"]
    assert [joined(line) for line in whole] == lines(folder / "tok" / "train.de")
    for called, name in (line.split("\t") for line in lines(folder / "testsets.tsv")):
        assert len(ids(folder / "bitext-160K", f"{called}.en-de.de", dictionary)) == NEWSTESTS[name]
        assert len(lines(folder / "text" / f"{name}.de")) == NEWSTESTS[name]
    for lang in ("en", "de"):
        assert (folder / f"lm.{lang}" / "dict.txt").read_bytes() == (folder / "dict.txt").read_bytes()
        assert len(ids(folder / f"lm.{lang}", "valid", dictionary)) == 20
    own = folder / "bitext-bpe-160K"
    own_dictionary = Dictionary.load(str(own / "dict.txt"))
    encoded = ids(own, "train.en-de.en", own_dictionary)
    assert [joined(line) for line in encoded] == lines(folder / "tok" / "train.en")[:16]


def test_english_turkish_shares_the_joint_bpe_on_the_english_side(data: Path, standin_sources: Path) -> None:
    said = run("wmt18_entr", data, standin_sources)
    assert "300 pairs (setimes2 300), paper: 208,000" in said
    folder = data / "wmt18_entr"
    assert (folder / "dict.txt").read_bytes() == (data / "wmt18_ende" / "dict.txt").read_bytes()
    assert (folder / "dict.txt").read_bytes() == (folder / "bitext-all" / "dict.en.txt").read_bytes()
    turkish = Dictionary.load(str(folder / "bitext-all" / "dict.tr.txt"))
    assert len(turkish) == 304
    assert [joined(line) for line in ids(folder / "bitext-all", "train.en-tr.tr", turkish)] == lines(
        folder / "tok" / "bitext.tr"
    )
    for split, name in (("valid", "newstest2017"), ("test", "newstest2018")):
        assert len(ids(folder / "bitext-all", f"{split}.en-tr.tr", turkish)) == NEWSTESTS[name]
        assert lines(folder / "text" / f"{split}.tr") == lines(folder / "text" / f"{name}.tr")


def test_summaries_keep_their_sentences(data: Path, standin_sources: Path) -> None:
    said = run("cnn_dm", data, standin_sources)
    assert "train: 120 stories listed (paper: 287,227), 118 kept, 2 without an article, 0 without highlights" in said
    folder = data / "cnn_dm"
    dictionary = Dictionary.load(str(folder / "dict.txt"))
    summaries = ids(folder / "bitext-all", "test.article-summary.summary", dictionary)
    assert len(summaries) == 10
    assert all(joined(line).count("¶") == 1 for line in summaries)
    assert [line.count(" ¶ ") for line in lines(folder / "text" / "test.summary")] == [1] * 10
    sentences = json.loads((folder / "prepare.json").read_text())["counts"]["lm.en"]["files"]["train"]["sentences"]
    stories = len(lines(folder / "tok" / "stories.train.en"))
    assert 640 < sentences <= 640 + stories
