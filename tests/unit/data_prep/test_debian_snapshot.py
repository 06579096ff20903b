"""The frozen English-German corpus: whole, parallel, within its size, and as clean as its README says."""

from __future__ import annotations

import hashlib
import json
import lzma
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "data-prep" / "debian"))
SNAPSHOT = ROOT / "data-prep" / "debian" / "en-de"

BITEXT = [f"{split}.{lang}" for split in ("train", "valid", "test") for lang in ("en", "de")]
MONO = [f"mono.{split}.{lang}" for split in ("train", "valid") for lang in ("en", "de")]
SYNOPSIS = [f"synopsis.{split}.{side}" for split in ("train", "valid", "test") for side in ("description", "synopsis")]


@cache
def lines_of(name: str) -> list[str]:
    return lzma.decompress((SNAPSHOT / f"{name}.xz").read_bytes()).decode("utf-8").split("\n")[:-1]


def test_folder_holds_what_it_should_in_less_than_ten_megabytes() -> None:
    texts = {f"{name}.xz" for name in BITEXT + MONO + SYNOPSIS}
    assert {path.name for path in SNAPSHOT.iterdir()} == texts | {"counts.json", "SHA256SUMS", "README.md"}
    assert sum(path.stat().st_size for path in SNAPSHOT.iterdir()) < 10_000_000


def test_checksums_and_counts_are_those_of_the_files() -> None:
    for row in (SNAPSHOT / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        digest, name = row.split()
        assert hashlib.sha256((SNAPSHOT / name).read_bytes()).hexdigest() == digest, name
    counts = json.loads((SNAPSHOT / "counts.json").read_text(encoding="utf-8"))["files"]
    assert set(counts) == set(BITEXT + MONO + SYNOPSIS)
    for name, count in counts.items():
        text = lzma.decompress((SNAPSHOT / f"{name}.xz").read_bytes())
        assert hashlib.sha256(text).hexdigest() == count["sha256"], name
        assert text.count(b"\n") == count["lines"], name


@pytest.mark.parametrize("names", [BITEXT[:2], BITEXT[2:4], BITEXT[4:], SYNOPSIS[:2], SYNOPSIS[2:4], SYNOPSIS[4:]])
def test_both_sides_have_a_line_for_every_line(names: list[str]) -> None:
    first, second = map(lines_of, names)
    assert len(first) == len(second) > 900
    assert all(first)
    assert all(second)


@pytest.mark.parametrize("name", BITEXT + MONO + SYNOPSIS)
def test_lines_are_clean(name: str) -> None:
    lines = lines_of(name)
    assert not [line for line in lines if line != " ".join(line.split())]
    assert not [line for line in lines if line.startswith(("* ", "- ", "• ")) or "<trans>" in line or "\ufffd" in line]
    assert max(len(line.split()) for line in lines) <= 100


def test_held_out_text_is_nowhere_in_training_text_as_it_stands() -> None:
    train = {line for name in BITEXT + MONO + SYNOPSIS if "train" in name.split(".") for line in lines_of(name)}
    held = {line for name in BITEXT + MONO + SYNOPSIS if "train" not in name.split(".") for line in lines_of(name)}
    assert len(train) > 200_000
    assert not train & held


@pytest.mark.slow
def test_no_held_out_text_has_a_near_duplicate_in_training_text() -> None:
    import check_split

    assert check_split.main([str(SNAPSHOT)]) == 0
