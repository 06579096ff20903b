"""A folder of prepared text: what lies where in it, and what has to be known to train on it."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from lmfusion.errors import InputError
from lmfusion.text import textio
from lmfusion.text.json_text import parse
from lmfusion.text.tokenize_text import MOSES, NO_TOKENIZER

FILE = "data.json"
NAME = re.compile(r"[\w@-]+")
"""Name of a side or a language, which stands in names of files and commands."""
TRANSLATION, SUMMARIZATION = "translation", "summarization"


@dataclass(frozen=True)
class Prepared:
    """Describe a folder that ``lmfusion data`` filled.

    Attributes:
        folder: the folder.
        source: name of the source side in file names and flags, ``en`` or ``text``.
        target: the same of the target side, ``fr`` or ``summary``.
        kind: ``translation`` (scored with BLEU) or ``summarization`` (scored with ROUGE).
        pairs: number of training pairs, after filtering.
        text_language: the language of both sides, where these are not named by languages; else None.
        symbols: number of BPE symbols of the text that a language model of a side can train on, by the side's language.
        longest: most symbols in a sentence of any split, on either side or in the plain text.
        source_limit: symbols after which texts to be summarized are cut, those to train on as those of a user; or None.
        tokenizer: what splits words before the BPE: ``moses``, or ``none``, which any text comes back from unchanged.
        tokenizers: SHA-256 of the tokenizers of Hugging Face models by which sides are encoded, by side; see
            :attr:`lmfusion.text.huggingface.PieceTokenizer.hash`.
        origin: what the data were made from, for the model card: file names, SHA-256, licence where told.
    """

    folder: Path
    source: str
    target: str
    kind: str
    pairs: int
    text_language: str | None = None
    symbols: dict[str, int] = field(default_factory=dict)
    longest: int = 0
    source_limit: int | None = None
    tokenizer: str = MOSES
    tokenizers: dict[str, str] = field(default_factory=dict)
    origin: dict[str, Any] = field(default_factory=dict)

    @property
    def bitext(self) -> Path:
        """Return the folder of binarized pairs, for ``fairseq-train --task translation``."""
        return self.folder / "bitext-all"

    @property
    def bpe_model(self) -> Path:
        """Return the sentencepiece model."""
        return self.folder / "spm.model"

    @property
    def dictionary(self) -> Path:
        """Return the dictionary that the sides with a BPE of their own and their language models share."""
        return self.folder / "dict.txt"

    def dictionary_of(self, side: str) -> Path:
        """Return the dictionary of the side named ``side``."""
        return self.folder / f"dict.{side}.txt" if side in self.tokenizers else self.dictionary

    def pieces(self, side: str) -> Path | None:
        """Return the file of the tokenizer by which a side is encoded; None if it has a BPE of its own."""
        return self.folder / f"pieces.{side}.json" if side in self.tokenizers else None

    def language(self, side: str) -> str:
        """Return the language of the side named ``side``."""
        return self.text_language or side

    def plain_text(self, language: str) -> Path:
        """Return the folder of binarized text of one language, for ``fairseq-train --task language_modeling``."""
        return self.folder / f"lm.{language}"

    def text(self, split: str, side: str) -> Path:
        """Return the raw text of a split's side: what is translated, and what scores compare with."""
        return self.folder / "text" / f"{split}.{side}"

    def save(self) -> None:
        """Write the folder's ``data.json``."""
        content = {name: value for name, value in asdict(self).items() if name != "folder"}
        with textio.writing(self.folder / FILE) as stream:
            json.dump(content, stream, indent=2, sort_keys=True)
            stream.write("\n")


def read(folder: Path) -> Prepared:
    """Read the description of a folder that ``lmfusion data`` filled.

    Raises:
        InputError: there is none, or it is damaged.
    """
    path = folder / FILE
    if folder.is_file():
        raise InputError(f"{folder} is a file: give the folder that `lmfusion data … --out FOLDER` has filled.")
    if not path.is_file():
        raise InputError(f"{folder}: has no {FILE}. Give a folder that `lmfusion data … --out {folder}` has filled.")
    try:
        content = parse(path.read_text(encoding="utf-8"))
        known = {each.name for each in fields(Prepared)} - {"folder"}
        found = Prepared(folder=folder, **{name: value for name, value in content.items() if name in known})
        _check(found)
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: is damaged ({error}). Delete it, and run `lmfusion data` again with the flags that made {folder}."
        ) from error
    return found


def _check(found: Prepared) -> None:
    """Refuse values of other types, and names of sides and languages that are none: they become names of files.

    Raises:
        ValueError: naming the value.
    """
    names = {"source": found.source, "target": found.target, "text_language": found.text_language or found.source}
    wrong = [name for name, value in names.items() if type(value) is not str or not NAME.fullmatch(value)]
    counts = {"pairs": found.pairs, "longest": found.longest, "source_limit": found.source_limit or 0}
    wrong += [name for name, value in counts.items() if type(value) is not int or value < 0]
    kinds = {"kind": (TRANSLATION, SUMMARIZATION), "tokenizer": (MOSES, NO_TOKENIZER)}
    wrong += [name for name, values in kinds.items() if getattr(found, name) not in values]
    for name, kind in (("symbols", int), ("tokenizers", str)):
        values = getattr(found, name)
        if type(values) is not dict or not all(type(value) is kind for value in values.values()):
            wrong.append(name)
    if wrong or type(found.origin) is not dict:
        raise ValueError(f"its {(wrong or ['origin'])[0]} is none")
