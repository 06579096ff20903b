"""What a model has no symbols for: said of the lines that it reads, and of its translations."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Callable, Iterable
from typing import Literal

from fairseq.hub_utils import GeneratorHubInterface

from lmfusion.text.opening import clean
from lmfusion.text.printable import printable, standing_alone

logger = logging.getLogger(__name__)

MOST, LONGEST = 5, 20
"""Unknown symbols of a line that are shown, and letters of one."""
NORMAL_FORMS: dict[Literal["NFC", "NFKC"], str] = {"NFC": "any-nfc", "NFKC": "any-nfkc"}
"""Forms of Unicode that may have fewer unknown symbols, and the rule of uconv that gives them."""


class UnknownSymbols:
    """Warns at the first line with unknown symbols, and at the end of how many there were.

    Args:
        symbols: splits a line into the symbols that the model reads.
        is_known: tells whether a symbol is one of the model's.
        word: what stands for unknown symbols in translations.
        cure: flags that keep it out of them, if there are any.
        is_dialogue: whether there is a person behind each line: then each is warned of, and nothing is said at the end.
    """

    def __init__(
        self,
        symbols: Callable[[str], list[str]],
        is_known: Callable[[str], bool],
        word: str,
        *,
        cure: str = "",
        is_dialogue: bool = False,
    ) -> None:
        self._symbols, self._is_known, self._word = symbols, is_known, word
        self._cure, self._is_dialogue = cure, is_dialogue
        self._sources = self._translations = 0

    def check_source(self, number: int, line: str, unknown: int) -> None:
        """Warn of a line to translate, if it is the first with unknown symbols.

        Args:
            number: of the line, from 1.
            line: its text.
            unknown: number of its symbols that the model does not know.
        """
        if not unknown:
            return
        self._sources += 1
        if self._is_dialogue or self._sources == 1:
            logger.warning(f"line {number}: {self._said(line)}")

    def encode(self, number: int, line: str) -> list[str]:
        """Split a line to translate into symbols; warn of it as :meth:`check_source` does."""
        symbols = self._symbols(line)
        self.check_source(number, line, self._unknown(symbols))
        return symbols

    def check_translation(self, number: int, texts: Iterable[str]) -> None:
        """Warn of a line's translations, if they are the first with the word for unknown symbols."""
        if not any(self._word in text for text in texts):
            return
        self._translations += 1
        if self._translations == 1:
            cure = f" ({self._cure}: never)" if self._cure else ""
            logger.warning(f"line {number}: {self._word} stands for what is no symbol of the model{cure}")

    def finish(self) -> None:
        """Say how many lines have been concerned, if it is more than the one that was named."""
        for what, count in (("source", self._sources), ("translation", self._translations)):
            if count > 1 and not self._is_dialogue:
                logger.warning(f"{self._word} in the {what} of {count:,} lines")

    def _unknown(self, symbols: Iterable[str]) -> int:
        return sum(not self._is_known(symbol) for symbol in symbols)

    def _said(self, line: str) -> str:
        symbols = self._symbols(line)
        unknown = [symbol for symbol in symbols if not self._is_known(symbol)]
        different = list(dict.fromkeys(map(_shown, unknown)))
        shown = ", ".join(different[:MOST]) + (", …" if len(different) > MOST else "")
        are = "symbol is" if len(symbols) == 1 else "symbols is" if len(unknown) == 1 else "symbols are"
        said = f"{len(unknown)} of {len(symbols)} {are} unknown to the model ({shown})"
        for form, rule in NORMAL_FORMS.items():
            normal = unicodedata.normalize(form, line)
            if normal != line and (fewer := self._unknown(self._symbols(normal))) < len(unknown):
                return f"{said}; in Unicode's form {form} {fewer or 'none'}: convert the text, uconv -x {rule}"
        return said


def of_model(model: GeneratorHubInterface, *, is_dialogue: bool = False) -> UnknownSymbols:
    """Return what warns of the symbols that a loaded model does not know."""

    def symbols(line: str) -> list[str]:
        return str(model.apply_bpe(model.tokenize(clean(line)))).split()

    def is_known(symbol: str) -> bool:
        return bool(model.src_dict.index(symbol) != model.src_dict.unk())

    word = model.tgt_dict.unk_word
    return UnknownSymbols(symbols, is_known, word, cure="--unkpen 100", is_dialogue=is_dialogue)


def _shown(symbol: str) -> str:
    """Return a symbol as it stands in text: without its BPE's mark, and an accent alone on a circle."""
    text = standing_alone(printable(symbol.strip("\u2581").removesuffix("@@")) or symbol)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
