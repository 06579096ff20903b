"""Bitext: both sides checked, the paper's filter, nested subsets; test sets as sacreBLEU has them."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from paper_corpora import parallel, select_pairs, sgm, stages
from paper_corpora.translation import Steps
from paper_corpora.wmt18_ende import ENDE, LANGS
from paper_corpora.workspace import SCALES, SUBSET_NAMES, Workspace
from sacrebleu.dataset import DATASETS

from lmfusion.text import textio

NAMES = ("rapid2016.de-en.en", "rapid2016.de-en.de")


def lines(path: Path) -> list[str]:
    return list(textio.read_lines(path))


def archive(path: Path, members: dict[str, bytes]) -> Path:
    """A .tgz with these files."""
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members.items():
            file = path.with_name("member")
            file.write_bytes(data)
            tar.add(file, name)
    return path


def test_the_corpora_come_one_after_the_other_with_white_space_made_single_spaces(
    workspace: Callable[..., Workspace],
) -> None:
    here = workspace()
    steps = Steps(here, ENDE)
    stages.run(here, [steps.unpack("")])
    english, german = map(lines, steps.files("text", "bitext"))
    assert len(english) == len(german) == 700
    assert (english[199], german[199]) == ("You are welcome .", "Gern geschehen , bitte .")
    assert not [line for line in english + german if line != " ".join(line.split())]


def unpack(workspace: Workspace) -> None:
    targets = workspace.data / "en", workspace.data / "de"
    parallel.extract(workspace, {"rapid2016": NAMES}, LANGS, targets)


BAD_ARCHIVES = {
    "unequal sides": (
        {NAMES[0]: b"a\nb\n", NAMES[1]: b"a\n"},
        r"rapid2016\.de-en\.en has 2 lines but .*\.de has 1: the",
    ),
    "another count": ({NAMES[0]: b"a\n", NAMES[1]: b"a\n"}, r"rapid2016\.de-en\.en has 1 lines instead of 150"),
    "no such side": ({NAMES[0]: b"a\n"}, r"other\.tgz: rapid2016\.de-en\.de is not in it"),
    "not UTF-8": ({NAMES[0]: b"a\n\xe9\n", NAMES[1]: b"a\n"}, r"rapid2016\.de-en\.en, line 2: not UTF-8"),
}


@pytest.mark.parametrize("kind", BAD_ARCHIVES)
def test_a_bad_bitext_is_one_error_that_names_the_file(
    workspace: Callable[..., Workspace], tmp_path: Path, kind: str
) -> None:
    members, message = BAD_ARCHIVES[kind]
    here = workspace(f"rapid2016={archive(tmp_path / 'other.tgz', members)}")
    with pytest.raises(textio.DataError, match=message):
        unpack(here)
    assert not list(here.data.iterdir())


def test_an_archive_with_a_flipped_bit_is_refused_by_name(workspace: Callable[..., Workspace], tmp_path: Path) -> None:
    """By gzip's check sum: the text may well be as long as it was."""
    here = workspace()
    text = gzip.decompress(here.downloads.get(here.source("rapid2016")).read_bytes())
    stored = bytearray(gzip.compress(text, compresslevel=0))
    stored[stored.index(b"e ")] ^= 1
    (tmp_path / "flipped.tgz").write_bytes(stored)
    here = workspace(f"rapid2016={tmp_path / 'flipped.tgz'}")
    with pytest.raises(textio.DataError, match=r"flipped\.tgz: cannot be unpacked \(CRC check failed"):
        unpack(here)


def test_half_an_archive_is_refused_by_name(workspace: Callable[..., Workspace], tmp_path: Path) -> None:
    here = workspace()
    whole = here.downloads.get(here.source("rapid2016")).read_bytes()
    (tmp_path / "half.tgz").write_bytes(whole[: len(whole) // 2])
    here = workspace(f"rapid2016={tmp_path / 'half.tgz'}")
    with pytest.raises(textio.DataError, match=r"half\.tgz: cannot be unpacked"):
        unpack(here)


def selected(folder: Path, pairs: list[tuple[str, str]], held_out: int, seed: int) -> list[tuple[str, str]]:
    """The training pairs, in order."""
    for kind in ("tok", "text"):
        for lang, side in zip(LANGS, zip(*pairs)):
            parallel.write_lines(folder / kind / f"bitext.{lang}", side)
    select_pairs.select(folder, LANGS, held_out, seed)
    return list(zip(*(lines(folder / "tok" / f"train.{lang}") for lang in LANGS)))


def words(number: int, name: str) -> str:
    return " ".join([name] * number)


def test_pairs_that_are_empty_too_long_or_too_unequal_are_dropped_and_some_held_out(tmp_path: Path) -> None:
    bad = [("", "x"), ("x", ""), (words(251, "a"), words(250, "b")), (words(2, "a"), words(4, "b"))]
    bad += [(words(301, "a"), words(200, "b"))]
    good = [(words(250, "a"), words(250, "b")), (words(2, "c"), words(3, "d")), (words(3, "e"), words(2, "f"))]
    good += [(f"s{number}", f"t{number}") for number in range(50)]
    train = selected(tmp_path, bad + good, 5, seed=1)
    valid = list(zip(*(lines(tmp_path / "tok" / f"valid.{lang}") for lang in LANGS)))
    assert sorted(train + valid) == sorted(good)
    assert len(valid) == 5
    assert valid == list(zip(*(lines(tmp_path / "text" / f"valid.{lang}") for lang in LANGS)))


def test_the_seed_makes_the_order_and_nothing_else_does(tmp_path: Path) -> None:
    pairs = [(f"s{number}", f"t{number}") for number in range(200)]
    first = selected(tmp_path / "1", pairs, 5, seed=1)
    assert first == selected(tmp_path / "2", pairs, 5, seed=1)
    assert first != selected(tmp_path / "3", pairs, 5, seed=2)
    assert first != sorted(first)


def test_tokenized_sides_of_unequal_length_are_refused_with_both_counts(tmp_path: Path) -> None:
    (tmp_path / "en").write_text("a\nb\n", encoding="utf-8")
    (tmp_path / "de").write_text("a\n", encoding="utf-8")
    with pytest.raises(textio.DataError, match=r"en has 2 lines but .*de has 1"):
        select_pairs.judge(tmp_path / "en", tmp_path / "de")


def test_nothing_left_to_train_on_is_refused(tmp_path: Path) -> None:
    with pytest.raises(textio.DataError, match=r"1 sentence pairs are left .* 1 are to be held out"):
        selected(tmp_path, [("a", "b"), ("", "c")], 1, seed=1)


def test_the_subsets_are_the_papers_and_in_proportion_at_the_tiny_scale() -> None:
    full = [SCALES["full"].subset(name) for name in SUBSET_NAMES]
    assert full == [160_000, 320_000, 640_000, 1_280_000, 2_560_000, None]
    assert [SCALES["tiny"].subset(name) for name in SUBSET_NAMES] == [16, 32, 64, 128, 256, None]


def test_test_sets_are_read_as_sacrebleu_reads_them(tmp_path: Path) -> None:
    text = (
        '<refset setid="x">\n<doc>\n<hl>\n<seg id="1"> A  &amp; B </seg>\n</hl><p>\n<seg id="2">C d.</seg>\n</p></doc>'
    )
    (tmp_path / "x.sgm").write_text(text, encoding="utf-8")
    DATASETS["wmt18"]._convert_format(str(tmp_path / "x.sgm"), str(tmp_path / "theirs"))
    assert sgm.segments(text) == ["A &amp; B", "C d."] == [line.strip() for line in lines(tmp_path / "theirs")]
