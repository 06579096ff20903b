"""Documents in binarized text, read as one row of pieces: an empty line stands between two of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lmfusion.errors import InputError


class Documents:
    """Pieces of a text by their position in it, ``</s>`` left out, and where lines and documents begin.

    Args:
        lines: sequence of the text's lines, each of token ids with ``</s>`` at its end.
        sizes: of the lines, ``</s>`` included.
        what: name of the text for messages.

    Attributes:
        lines: as given.
        line_starts: position of each line's first piece, and the end of the text behind them.
        bounds: D x 2, the positions of each document's first piece and of its end.
        lines_are_documents: True if the text has no empty line, so that each line counts as a document.

    Raises:
        InputError: if there is no text.
    """

    def __init__(self, lines: Any, sizes: NDArray[Any], what: str) -> None:
        self.lines = lines
        pieces = np.asarray(sizes, dtype=np.int64) - 1
        self.line_starts: NDArray[np.int64] = np.concatenate([[0], pieces.cumsum()])
        empty = pieces == 0
        self.lines_are_documents = not empty.any()
        # A position at which a document may end is that of an empty line; several of them in a row make no document.
        ends = self.line_starts[1:] if self.lines_are_documents else self.line_starts[:-1][empty]
        marks = np.unique(np.concatenate([[0], ends, self.line_starts[-1:]]))
        if len(marks) < 2:
            raise InputError(f"{what} has no text: binarize documents with empty lines between them.")
        self.bounds = np.stack([marks[:-1], marks[1:]], axis=1)

    def __len__(self) -> int:
        return len(self.bounds)

    def line_ends(self, start: int, end: int) -> NDArray[np.int64]:
        """Return the positions strictly between two of one document at which a line ends and another begins."""
        first = np.searchsorted(self.line_starts, start, side="right")
        return np.unique(self.line_starts[first : np.searchsorted(self.line_starts, end, side="left")])

    def read(self, start: int, end: int) -> Tensor:
        """Return the pieces from one position up to another: T ids."""
        if start >= end:
            return torch.empty(0, dtype=torch.long)
        first = int(np.searchsorted(self.line_starts, start, side="right")) - 1
        last = int(np.searchsorted(self.line_starts, end, side="left"))
        text = torch.cat([self.lines[number][:-1] for number in range(first, last)]).long()
        return text[start - int(self.line_starts[first]) :][: end - start]
