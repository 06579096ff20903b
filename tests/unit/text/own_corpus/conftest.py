"""A person's own text: pairs of the embedded corpus, as files of the test's own and as the corpus folder of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lmfusion.text import textio
from lmfusion.text.own_corpus import Request, Summary, build

CORPUS = Path(__file__).resolve().parents[4] / "data-prep/debian/en-de"
EN, DE = (list(textio.read_lines(CORPUS / f"valid.{language}.xz")) for language in ("en", "de"))
NOTHING: dict[str, Any] = {
    **dict.fromkeys(("pairs", "tsv", "jsonl", "tmx", "fields", "text_language", "valid", "test")),
    "text": (),
    "held_out": 20,
    "seed": 1,
    "source": "en",
    "target": "de",
}


@dataclass
class Own:
    """Writes text into a folder and makes corpora of it, beside it."""

    folder: Path
    english, german = EN, DE
    pairs = list(dict.fromkeys(zip(EN, DE)))[:400]

    def put(self, name: str, lines: list[str]) -> Path:
        """A file of these lines."""
        path = self.folder / name
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return path

    def files(self, pairs: list[tuple[str, str]], name: str = "own") -> tuple[Path, Path]:
        """Two files of these pairs."""
        return self.put(f"{name}.en", [x for x, _ in pairs]), self.put(f"{name}.de", [x for _, x in pairs])

    def request(self, **given: Any) -> Request:
        """What is asked: of the pairs in two files, or of the text given."""
        asked = {**NOTHING, **given}
        if not {"pairs", "tsv", "jsonl", "tmx"} & set(given):
            asked["pairs"] = self.files(self.pairs)
        return Request(**asked)

    def build(self, out: str = "out", longest: int | None = None, **given: Any) -> Summary:
        """The corpus of what is asked, in a folder of this name."""
        return build(self.request(**given), self.folder / out, longest)

    def lines(self, name: str) -> list[str]:
        """The lines of a file that was made."""
        return (self.folder / name).read_text(encoding="utf-8").split("\n")[:-1]

    def made(self, split: str, out: str = "out", sides: tuple[str, str] = ("en", "de")) -> list[tuple[str, str]]:
        """The pairs of a split that was made."""
        return list(zip(*(self.lines(f"{out}/{split}.{side}") for side in sides), strict=True))

    def mono(self, language: str, out: str = "out") -> list[str]:
        """The monolingual lines that were made, for training and validation."""
        return [line for split in ("train", "valid") for line in self.lines(f"{out}/mono.{split}.{language}")]


@pytest.fixture
def own(tmp_path: Path) -> Own:
    """Text in a folder of the test's own."""
    return Own(tmp_path)
