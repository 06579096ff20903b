"""The tokenizer of a Hugging Face model, and its pieces as symbols of fairseq's text formats.

fairseq's dictionaries begin with four symbols of its own, and its text files separate symbols by white space. So the
pieces of a tokenizer become symbols in this order: the pieces in the roles of ``<s>``, ``<pad>``, ``</s>`` and
``<unk>`` under these names, then all others by their number. White space, backslashes and those four names inside a
piece are written as ``\\3c;`` (:mod:`lmfusion.text.piece_symbols`), so that no two pieces have the same symbol.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmfusion.errors import InputError
from lmfusion.text.import_transformers import import_transformers, quiet
from lmfusion.text.model_settings import read_settings
from lmfusion.text.piece_symbols import symbols_of
from lmfusion.text.tokenizers_errors import ROLES, TokenizersErrors, check_table, first_line

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MOST_PIECES = 10_000_000
"""Greater numbers are a damaged file's: writing a tokenizer takes time and memory by the greatest."""
_HUB_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?(?<!\.pt)")


def check_folder(folder: str | Path) -> Path:
    """Return the path of a folder with a model of Hugging Face.

    Raises:
        InputError: if it is none; with the command that downloads a model if it looks like the name of one.
    """
    path = Path(folder)
    if (path / "config.json").is_file():
        return path
    if path.exists():
        raise InputError(
            f"{path} holds no model of Hugging Face: give a folder with config.json, model.safetensors and "
            f"tokenizer.json, as save_pretrained and `hf download` write it."
        )
    raise InputError(f"{path} does not exist. {how_to_download(str(folder))}".strip())


def how_to_download(name: str) -> str:
    """Return how to get a model of this name as a folder; an empty text if it is no name of Hugging Face's."""
    if not _HUB_NAME.fullmatch(name):
        return ""
    folder = Path(name).name
    return (
        f"If it is the name of a model of Hugging Face, download that and give its folder: hf download {name} "
        f"--local-dir {folder}"
    )


@dataclass
class PieceTokenizer:
    """A tokenizer whose pieces are symbols of a fairseq dictionary.

    Attributes:
        tokenizer: of the package tokenizers; it takes special tokens in a text for text.
        symbols: in the order of the dictionary, :data:`ROLES` first.
        ids: of each symbol in the model; two roles may have the same.
        opening: symbols that the tokenizer puts in front of a sentence.
        closes: True if it puts the piece of ``</s>`` behind one.
    """

    tokenizer: Tokenizer
    symbols: list[str]
    ids: list[int]
    opening: tuple[str, ...] = ()
    closes: bool = False

    def __post_init__(self) -> None:
        self.tokenizer.encode_special_tokens = True
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self._id_of = dict(zip(self.symbols, self.ids))
        self._symbol_of = {number: symbol for symbol, number in reversed(self._id_of.items())}
        self._symbol_of[self._id_of[ROLES[3]]] = ROLES[3]  # of GPT-2, whose one symbol has all four roles

    @classmethod
    def from_folder(cls, folder: str | Path) -> PieceTokenizer:
        """Read the tokenizer of a folder as transformers reads it, with code of transformers alone.

        Raises:
            InputError: if there is none, it is a slow one, or its frame around a sentence is not one symbol a side.
        """
        path = check_folder(folder)
        with TokenizersErrors(f"{path} has no tokenizer that works"):
            return _with_roles(path, _loaded(path))

    @classmethod
    def from_text(cls, text: str, symbols: Sequence[str], ids: Sequence[int], opening: Sequence[str]) -> PieceTokenizer:
        """Build a tokenizer from the text of its file (:meth:`to_text`) and a table of its symbols.

        Raises:
            InputError: if the text is no tokenizer, or the table is none of its pieces.
        """
        from tokenizers import Tokenizer

        with TokenizersErrors("the tokenizer in this checkpoint cannot be read"):
            tokenizer = Tokenizer.from_str(text)
        check_table(tokenizer, symbols, ids, opening)
        return cls(tokenizer, list(symbols), list(ids), tuple(opening))

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> PieceTokenizer:
        """Build a tokenizer from :meth:`to_values`; see :meth:`from_text`."""
        return cls.from_text(values["tokenizer"], values["symbols"], values["ids"], values["opening"])

    def to_values(self) -> dict[str, Any]:
        """Return all that makes ids of a text, as plain values."""
        return {"tokenizer": self.to_text(), "symbols": self.symbols, "ids": self.ids, "opening": list(self.opening)}

    def to_text(self) -> str:
        """Return the content of the tokenizer's file, JSON."""
        text: str = self.tokenizer.to_str()
        return text

    def encode(self, text: str) -> list[str]:
        """Split text into symbols, without the frame around a sentence.

        A name like ``<s>`` in the text is text. Where the tokenizer's model has it as a piece (XLM-R), it is unknown: a
        beginning, an end or padding inside a sentence would be taken for what it says.
        """
        with TokenizersErrors("the tokenizer cannot split this text"):
            found = self.tokenizer.encode(text, add_special_tokens=False).ids
        symbols = [self._symbol_of.get(number, ROLES[3]) for number in found]
        return [ROLES[3] if symbol in ROLES else symbol for symbol in symbols]

    def decode(self, symbols: Sequence[str]) -> str:
        """Join symbols to text in one line; those that are none of the model's stay as they are."""
        hidden = {self._id_of[role] for role in ROLES[:3]}
        parts: list[str] = []
        run: list[int] = []
        for symbol in [*symbols, None]:
            number = None if symbol == ROLES[3] or symbol is None else self._id_of.get(symbol)
            if number is not None:
                run += [] if number in hidden else [number]
                continue
            parts += [self._joined(run)] if run else []
            parts += [] if symbol is None else [symbol]
            run = []
        return " ".join(" ".join(parts).splitlines())

    def _joined(self, run: list[int]) -> str:
        with TokenizersErrors("the tokenizer cannot join these pieces"):
            text: str = self.tokenizer.decode(run, skip_special_tokens=True)
        return text

    @property
    def hash(self) -> str:
        """Return the SHA-256 (hex) of all that makes ids of a text: its file, merges included, and the symbols."""
        values = {**self.to_values(), "tokenizer": json.loads(self.to_text())}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    @property
    def keeps_case(self) -> bool:
        """Return False if the tokenizer turns capitals into small letters, which cannot be undone."""
        normalizer = self.tokenizer.normalizer
        with TokenizersErrors("the tokenizer does not work"):
            return normalizer is None or "A" in normalizer.normalize_str("A")

    @property
    def has_segments(self) -> bool:
        """Return whether it gives the second text of a pair another segment than the first, as BERT's does."""
        return 1 in self.tokenizer.encode("a", "a").type_ids

    @property
    def separators(self) -> int:
        """Return how many symbols for the end it puts between the texts of a pair, at least one: RoBERTa's puts two."""
        framed = self.tokenizer.encode("a", "a")
        of_text = framed.sequence_ids
        between = framed.ids[len(of_text) - of_text[::-1].index(0) : of_text.index(1)]
        return max(1, between.count(self._id_of[ROLES[2]]))

    def dictionary_text(self) -> str:
        """Return the content of fairseq's dict.txt: each symbol behind the four of fairseq, with a count of 1."""
        return "".join(f"{symbol} 1\n" for symbol in self.symbols[len(ROLES) :])


def _loaded(path: Path) -> Any:
    """Load the tokenizer of a folder by transformers."""
    transformers = import_transformers()
    read_settings(path)  # transformers reads them, too
    try:
        with quiet(transformers):
            loaded = transformers.AutoTokenizer.from_pretrained(
                str(path), local_files_only=True, trust_remote_code=False
            )
    except (OSError, ValueError, ImportError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{path} has no tokenizer that can be read ({first_line(error)}): its tokenizer.json is needed."
        ) from error
    if not getattr(loaded, "is_fast", False):
        raise InputError(
            f"{path} has the slow tokenizer {type(loaded).__name__}, whose rules are Python code: give a model with a "
            f"tokenizer.json, the file of fast ones (PreTrainedTokenizerFast, {type(loaded).__name__}Fast)."
        )
    return loaded


def _with_roles(path: Path, loaded: Any) -> PieceTokenizer:
    """Give the pieces of a tokenizer of transformers their symbols."""
    tokenizer = loaded.backend_tokenizer
    tokenizer.no_truncation()  # sentence encoders keep both in their file
    tokenizer.no_padding()
    framed = tokenizer.encode("a")
    inside = [place for place, special in enumerate(framed.special_tokens_mask) if not special]
    if not inside:
        raise InputError(f"{path}: its tokenizer has no piece for the letter a.")
    front, back = framed.ids[: inside[0]], framed.ids[inside[-1] + 1 :]
    if len(front) > 1 or len(back) > 1:
        raise InputError(
            f"{path}: its tokenizer puts {len(front)} symbols in front of a sentence and {len(back)} behind it; only "
            f"one on either side is supported."
        )
    closing = back[0] if back else loaded.eos_token_id if loaded.eos_token_id is not None else loaded.sep_token_id
    if closing is None:
        raise InputError(f"{path}: its tokenizer has no symbol for the end of a sentence (eos_token).")
    begin = loaded.bos_token_id if loaded.bos_token_id is not None else closing
    roles = [
        front[0] if front else begin,
        closing if loaded.pad_token_id is None else loaded.pad_token_id,
        closing,
        closing if loaded.unk_token_id is None else loaded.unk_token_id,
    ]
    numbers = tokenizer.get_vocab(True)
    if (most := max(numbers.values())) > MOST_PIECES:
        raise InputError(f"{path}: a piece of its tokenizer has the number {most:,}, and no model has as many.")
    pieces = sorted((number, piece) for piece, number in numbers.items() if number not in roles)
    symbols = [*ROLES, *symbols_of(tokenizer, [piece for _, piece in pieces])]
    opening = ROLES[:1] if front else ()
    return PieceTokenizer(tokenizer, symbols, [*roles, *(number for number, _ in pieces)], opening, bool(back))
