"""newscrawl: what is dropped and why, each sentence once, every line accounted for."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from paper_corpora import dedup, newscrawl, stages
from paper_corpora.workspace import Workspace

from lmfusion.text import textio


@pytest.mark.parametrize("part_sentences", [1, 7, 64, 10_000])
def test_repeated_sentences_are_found_part_by_part_as_in_one_set(tmp_path: Path, part_sentences: int) -> None:
    rng = random.Random(3)
    sentences = [str(rng.randrange(300)).encode() for _ in range(1000)]
    (tmp_path / "hashes").write_bytes(b"".join(map(dedup.sentence_hash, sentences)))
    found = dedup.first_occurrences(tmp_path / "hashes", part_sentences)
    seen: set[bytes] = set()
    expected = [not (sentence in seen or seen.add(sentence)) for sentence in sentences]  # type: ignore[func-returns-value]
    assert found.tolist() == expected


def test_no_sentences_are_no_error(tmp_path: Path) -> None:
    (tmp_path / "hashes").touch()
    assert dedup.first_occurrences(tmp_path / "hashes").tolist() == []


@pytest.mark.parametrize(
    ("line", "verdict", "sentence"),
    [
        (b" One\xc2\xa0sentence \t here.\r\n", "kept", "One sentence here."),
        (b" \n", "dropped_empty", ""),
        (b"caf\xe9\n", "dropped_not_utf8", ""),
        (b"w " * 250, "kept", " ".join(["w"] * 250)),
        (b"w " * 251, "dropped_long", ""),
    ],
)
def test_a_line_is_dropped_for_a_reason(line: bytes, verdict: str, sentence: str) -> None:
    assert newscrawl.judge(line) == (verdict, sentence)


def test_the_newest_years_come_first_and_every_line_is_accounted_for(workspace: Callable[..., Workspace]) -> None:
    here = workspace()
    text = newscrawl.stages(here, "de")[0]
    stages.run(here, [text])
    lines = [line for year in newscrawl.YEARS for line in unpacked(here, year)]
    good = [" ".join(line.split()) for line in lines if 0 < len(line.split()) <= 250 and "\ufffd" not in line]
    expected = list(dict.fromkeys(good))
    valid, train = (list(textio.read_lines(text.outputs[number])) for number in (1, 0))
    assert valid + train == expected
    assert len(valid) == here.scale.held_out_mono
    counts = newscrawl.write_hashes([here.path("newscrawl.2017.de")], here.data / "hashes")
    assert counts == {"read": 67, "dropped_empty": 1, "dropped_long": 1, "dropped_not_utf8": 1}


def unpacked(workspace: Workspace, year: int) -> list[str]:
    """The lines of one year; bytes that are not UTF-8 replaced."""
    data = gzip.decompress(workspace.path(f"newscrawl.{year}.de").read_bytes())
    return data.decode("utf-8", errors="replace").split("\n")[:-1]


def test_a_year_that_is_cut_short_is_refused_by_name(tmp_path: Path) -> None:
    whole = gzip.compress("".join(f"sentence {number}\n" for number in range(5000)).encode())
    path = tmp_path / "news.2010.en.shuffled.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(textio.DataError, match=r"news\.2010\.en\.shuffled\.gz: cannot be decompressed to its end"):
        newscrawl.write_hashes([path], tmp_path / "hashes")
