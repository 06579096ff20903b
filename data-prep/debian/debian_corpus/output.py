"""The corpus folder: texts, counts, checksums. Written whole or not at all, the same bytes for the same indices."""

from __future__ import annotations

import hashlib
import json
import lzma
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tqdm import tqdm  # type: ignore[import-untyped]

from .errors import CorpusError
from .split import Corpus
from .text import count_words

CHECKSUMS = "SHA256SUMS"


def texts(corpus: Corpus, lang: str) -> dict[str, list[str]]:
    """File name (without .xz) -> lines."""
    forms = {
        "bitext": ("", ("en", lang)),
        "synopsis": ("synopsis.", ("description", "synopsis")),
        "mono.en": ("mono.", ("en",)),
        "mono.target": ("mono.", (lang,)),
    }
    files: dict[str, list[str]] = {}
    for task, (prefix, sides) in forms.items():
        for split, units in corpus[task].items():
            for index, side in enumerate(sides):
                files[f"{prefix}{split}.{side}"] = [unit[index] for unit in units]
    return files


@contextmanager
def whole_folder(final: Path) -> Iterator[Path]:
    """A temporary folder next to `final` that takes its name when all went well, and disappears otherwise."""
    if final.exists() and (not final.is_dir() or any(final.iterdir())):
        raise CorpusError(f"{final} is there already and will not be overwritten: remove it or choose another --out")
    final.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{final.name}.partial-", dir=final.parent))
    try:
        yield partial
        partial.chmod(0o755)
        partial.replace(final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write(folder: Path, files: dict[str, list[str]], provenance: dict[str, Any], plain: bool) -> None:
    """All texts (as .xz unless `plain`), counts.json and SHA256SUMS."""
    counts: dict[str, Any] = {**provenance, "files": {}}
    for name, lines in tqdm(sorted(files.items()), desc="writing", unit=" files", disable=None):
        data = "".join(f"{line}\n" for line in lines).encode("utf-8")
        counts["files"][name] = {
            "lines": len(lines),
            "words": sum(map(count_words, lines)),
            "sha256": hashlib.sha256(data).hexdigest(),  # of the text itself: xz versions may pack differently
        }
        if plain:
            (folder / name).write_bytes(data)
        else:
            (folder / f"{name}.xz").write_bytes(lzma.compress(data, preset=9))
    (folder / "counts.json").write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(folder.iterdir())]
    (folder / CHECKSUMS).write_text("".join(sums), encoding="utf-8")
