"""The builder as a command: what it writes, and one clear error for whatever can go wrong. No network."""

from __future__ import annotations

import errno
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "data-prep" / "debian"))

sys.path.insert(0, str(Path(__file__).parent))

import build
from debian_corpus import indices, output
from debian_packages import DATE, make_lists

ENGLISH = """\
Package: libogg-dev
Description-md5: 0d0181672e2c3b8856aac1ff26063c44
Description-en: Ogg bitstream library development files
 The libogg-dev package contains the header files and documentation
 needed to develop applications with libogg.

Package: zsync
Description-md5: 11d0181672e2c3b8856aac1ff26063c4
Description-en: client-side implementation of the rsync algorithm
 zsync fetches only those parts of a file that changed, without a
 special server.
"""
GERMAN = """\
Package: libogg-dev
Description-md5: 0d0181672e2c3b8856aac1ff26063c44
Description-de: Bibliothek für Ogg-Bitstreams - Entwicklungsdateien
 Das Paket libogg-dev enthält die Header-Dateien und Dokumentation,
 welche zur Anwendungsentwicklung mit libogg benötigt werden.
"""
PACKAGES = "Package: libogg-dev\nSource: libogg\n\nPackage: zsync\nVersion: 0.6.2-3\n"
NAMES = {
    "main/binary-amd64/Packages": PACKAGES,
    "main/i18n/Translation-en": ENGLISH,
    "main/i18n/Translation-de": GERMAN,
}


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """The indices of English and German."""
    return make_lists(tmp_path / "lists", NAMES)


def run(lists: Path, out: Path, *more: str) -> int:
    return build.main(["--indices", str(lists), "--out", str(out), *more])


def no_leftovers(out: Path) -> bool:
    return not out.exists() and not list(out.parent.glob(f".{out.name}*"))


def test_corpus_has_text_counts_checksums_and_provenance(lists: Path, tmp_path: Path) -> None:
    out = tmp_path / "corpus"
    assert run(lists, out, "--plain") == 0
    counts = json.loads((out / "counts.json").read_text(encoding="utf-8"))
    assert counts["release"]["Date"] == DATE
    assert counts["indices"]["main/i18n/Translation-de"] == hashlib.sha256(GERMAN.encode()).hexdigest()
    assert counts["descriptions"] == 2
    assert counts["translated_descriptions"] == 1
    sources = (out / "train.en").read_text(encoding="utf-8").splitlines()
    targets = (out / "train.de").read_text(encoding="utf-8").splitlines()
    assert dict(zip(sources, targets))["Ogg bitstream library development files"] == (
        "Bibliothek für Ogg-Bitstreams - Entwicklungsdateien"
    )
    assert counts["files"]["train.en"]["lines"] == len(sources) == len(targets)
    checked = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=out, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_a_language_with_a_region_is_found_under_the_name_that_apt_gives_its_index(tmp_path: Path) -> None:
    texts = {name: text for name, text in NAMES.items() if not name.endswith("-de")}
    brazilian = GERMAN.replace("Description-de", "Description-pt_BR")
    folder = make_lists(tmp_path / "lists", {**texts, "main/i18n/Translation-pt_BR": brazilian})
    assert (folder / "archive.example_debian_dists_bookworm_main_i18n_Translation-pt%5fBR").is_file()
    out = tmp_path / "corpus"
    assert run(folder, out, "--lang", "pt_BR", "--plain") == 0
    assert "Bibliothek für Ogg-Bitstreams - Entwicklungsdateien\n" in (out / "train.pt_BR").read_text(encoding="utf-8")


def test_language_that_is_not_there_is_named_with_those_that_are(
    lists: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(lists, tmp_path / "corpus", "--lang", "tlh") == 1
    said = capsys.readouterr().err
    assert "no translations into 'tlh'" in said
    assert "de, en" in said
    assert no_leftovers(tmp_path / "corpus")


def test_truncated_index_is_named(lists: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = lists.glob("*Translation-de")
    path.write_bytes(path.read_bytes()[:100])
    assert run(lists, tmp_path / "corpus") == 1
    assert "main/i18n/Translation-de is truncated or damaged" in capsys.readouterr().err
    assert no_leftovers(tmp_path / "corpus")


def test_missing_index_is_named(lists: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    next(iter(lists.glob("*Packages"))).unlink()
    assert run(lists, tmp_path / "corpus") == 1
    assert "no file main_binary-amd64_Packages" in capsys.readouterr().err
    assert no_leftovers(tmp_path / "corpus")


def test_without_apt_the_snapshot_is_recommended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indices.shutil, "which", lambda name: None)
    assert build.main(["--out", str(tmp_path / "corpus")]) == 1
    said = capsys.readouterr().err
    assert "apt-get is not on this machine" in said
    assert "data-prep/debian/en-de" in said
    assert no_leftovers(tmp_path / "corpus")


def test_failing_download_passes_on_what_apt_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = []

    def apt(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 100, "", "E: Could not resolve 'archive.example'\n")

    monkeypatch.setattr(indices.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(indices.subprocess, "run", apt)
    arguments = ["--suite", "bookworm", "--mirror", "http://archive.example/debian", "--out", str(tmp_path / "corpus")]
    assert build.main(arguments) == 1
    said = capsys.readouterr().err
    assert "could not fetch the indices of bookworm" in said
    assert "Could not resolve 'archive.example'" in said
    assert "Acquire::Languages=en,de" in commands[0]
    assert no_leftovers(tmp_path / "corpus")


def test_full_disk_leaves_nothing_behind(
    lists: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, *_: object) -> None:
        (folder / "train.en.xz").write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device", str(folder / "train.en.xz"))

    monkeypatch.setattr(output, "write", full)
    assert run(lists, tmp_path / "corpus") == 1
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert "Free some space" in said
    assert no_leftovers(tmp_path / "corpus")


def test_existing_folder_is_not_overwritten(lists: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "corpus"
    out.mkdir()
    (out / "mine.txt").write_text("keep")
    assert run(lists, out) == 1
    assert "will not be overwritten" in capsys.readouterr().err
    assert (out / "mine.txt").read_text() == "keep"


def test_interrupted_build_leaves_nothing_behind(lists: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(output, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(lists, tmp_path / "corpus")
    assert no_leftovers(tmp_path / "corpus")
