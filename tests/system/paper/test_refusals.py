"""Bad input to the real scripts: one line that names it and the fix; what is finished stays and is used again."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from pathlib import Path
from typing import Any, Callable

import pytest

pytestmark = pytest.mark.slow
BROKEN = "newstest2018"


def half(whole: bytes) -> bytes:
    return whole[: len(whole) // 2]


def other_byte(whole: bytes) -> bytes:
    return whole[:-1] + bytes([whole[-1] ^ 1])


def without_its_last_line(whole: bytes) -> bytes:
    """The archive with one German and Turkish sentence less than there are English ones."""
    changed = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(whole)) as old, tarfile.open(fileobj=changed, mode="w") as new:
        for member in old:
            stream = old.extractfile(member)
            assert stream is not None
            text = stream.read()
            if "-ref." in member.name:
                text = text[: text.rindex(b"<seg")] + text[text.rindex(b"</seg>") + len(b"</seg>") :]
            member.size = len(text)
            new.addfile(member, io.BytesIO(text))
    return gzip.compress(changed.getvalue(), mtime=0)


def latin_1(whole: bytes) -> bytes:
    """The archive with a letter in it that is not UTF-8."""
    text = bytearray(gzip.decompress(whole))
    text[text.rindex(b"</seg>")] = 0xE9  # of the last file, the Turkish side
    return gzip.compress(bytes(text), mtime=0)


def table_with(sources: Path, folder: Path, content: bytes, described: bool) -> Path:
    """The table of sources with another file for one archive; `described`: its size and checksum too."""
    other = folder / "other.tgz"
    other.write_bytes(content)
    rows = [line.split("\t") for line in sources.read_text("utf-8").splitlines()]
    for row in rows:
        if row[0] == BROKEN:
            row[2] = other.as_uri()
            if described:
                row[3], row[4] = str(len(content)), "sha256:" + hashlib.sha256(content).hexdigest()
    table = folder / "sources.tsv"
    table.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return table


@pytest.mark.parametrize(
    ("damage", "described", "said"),
    [
        (half, False, "{name}: {part} has {size} of {true} bytes"),
        (other_byte, False, "{name}: {part} is not the published file (sha256 {sha256} instead of "),
        (without_its_last_line, True, "{whole}: test/newstest2018-entr-src.en.sgm has 26 lines but test/newstest2018-"),
        (latin_1, True, "{whole}: test/newstest2018-entr-ref.tr.sgm: not UTF-8 ("),
    ],
)
def test_a_bad_archive_is_refused_by_name_and_what_was_finished_before_it_is_kept(
    damage: Callable[[bytes], bytes], described: bool, said: str, untouched: Any, tmp_path: Path
) -> None:
    data, downloads = tmp_path / "data", tmp_path / "data" / "downloads"
    true = (untouched.sources.parent / "wmt18-test.tgz").read_bytes()
    bad = damage(true)
    table = table_with(untouched.sources, tmp_path, bad, described)
    error = untouched.refused(untouched.preparation("wmt18_entr", "--sources", table, data=data))
    facts = {"name": BROKEN, "size": f"{len(bad):,}", "true": f"{len(true):,}"}
    facts |= {"sha256": hashlib.sha256(bad).hexdigest()}
    whole = downloads / "wmt18-test.tgz"
    assert error.startswith(said.format(part=f"{whole}.part", whole=whole, **facts))
    assert (data / "wmt18_entr" / "text" / "bitext.tr").is_file()
    assert not (data / "wmt18_entr" / "text" / "test.tr").exists()
    if damage is not half:  # a damaged file does not repair itself: what the message advises
        for path in downloads.glob("wmt18-test.tgz*"):
            path.unlink()
        (downloads / "verified.json").write_text("{}", encoding="utf-8")
    repaired = untouched.prepare("wmt18_entr", data=data)
    assert "text.bitext" not in repaired, "finished before"
    assert "newstest2017 25, newstest2018 26 sentences" in repaired
    assert (data / "wmt18_entr" / "bitext-all" / "test.en-tr.tr.bin").is_file()


def test_a_size_that_is_not_the_papers_is_refused(untouched: Any, tmp_path: Path) -> None:
    said = untouched.refused(untouched.preparation("wmt18_ende", "--subsets", "100K", data=tmp_path / "data"))
    assert said.startswith("argument --subsets: invalid choice: '100K' (choose from ")
    assert said.endswith("See --help.")
    said = untouched.refused(untouched.row("wmt18_ende/src_elmo", "--bitext", "100K", runs=tmp_path / "runs"))
    assert said == "--bitext 100K: give 160K, 320K, 640K, 1280K, 2560K or 5186K. See --help."


def test_more_gpus_than_there_are_is_refused(untouched: Any, tmp_path: Path) -> None:
    said = untouched.refused(untouched.row("lm/en_cloze", "--gpus", "16", runs=tmp_path / "runs"))
    assert said.startswith("--gpus 16: there are ")
    assert not list((tmp_path / "runs").rglob("*.json"))


def test_rows_without_their_language_model_are_refused_and_the_others_go_on(laboratory: Any, tmp_path: Path) -> None:
    """`all.sh` ends with an error that names the rows; the rows that could be trained are."""
    done = laboratory.start(laboratory.row("wmt18_entr/all", runs=tmp_path))
    assert done.returncode == 2
    missing = f"error: {tmp_path}/lm/en_cloze.pt: no such file. Pretrain it: bash recipes/lm/en_cloze.sh --scale tiny."
    errors = done.stderr.splitlines()
    assert [line.startswith(missing) for line in errors] == [True, True, False]
    assert errors[-1].startswith("error: failed: src_elmo src_elmo_shdemb. ")
    assert (tmp_path / "wmt18_entr" / "seed-1" / "baseline" / "scores.json").is_file()
    assert "src_elmo: no scores yet" in done.stdout
