"""Pairs of spans with masked words, as BERT is trained on (Devlin et al. 2019, section 3.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from fairseq.data import Dictionary, FairseqDataset, data_utils
from numpy.typing import NDArray
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.lm.bert import MASK, NEXT, RANDOM
from lmfusion.training.documents import Documents

CHOSEN, MASKED, REPLACED = 0.15, 0.8, 0.1
"""Share of pieces to be predicted; shares of those that become ``<mask>``, and another piece. The rest stay."""
SHORT = 0.1
"""Share of rows that are shorter than a row may be, as sentences in use are."""
_SHORTEST = 2  # pieces: one for each span


class Spans(NamedTuple):
    """Hold the positions of a row's spans, and whether the second one follows the first (:data:`NEXT`)."""

    start: int
    cut: int
    second: int
    end: int
    label: int

    @property
    def pieces(self) -> int:
        """Return the number of pieces in both spans."""
        return self.cut - self.start + self.end - self.second


class SpanPairs(FairseqDataset):
    """Rows ``<s> a </s> b </s>`` of documents, anew in each epoch; or ``<s> a </s>`` without pairs.

    A document is read from front to back. With probability 1/2 a row is a stretch of it, cut in two where a line ends
    (where it has one line, anywhere); else its second span is from another document, drawn at random, and the next row
    goes on behind the first. Of the pieces 15 % are chosen, none of them a special symbol: 80 % of these become
    ``<mask>``, 10 % another piece, 10 % stay. All of it depends on seed, epoch and row alone.

    Args:
        text: the documents.
        dictionary: of the text; ``<mask>`` is its last symbol.
        length: of the longest row, in tokens.
        pairs: False for single spans.
        seed: of all random choices.

    Raises:
        InputError: if there is one document only, or no row fits.
    """

    can_reuse_epoch_itr_across_epochs = False

    def __init__(self, text: Documents, dictionary: Dictionary, *, length: int, pairs: bool, seed: int) -> None:
        super().__init__()
        self.text, self.vocab, self.pairs, self.seed = text, dictionary, pairs, seed
        self._room = length - (3 if pairs else 2)
        if self._room < _SHORTEST:
            raise InputError(f"--tokens-per-sample {length} leaves no room for two spans: give more.")
        if pairs and len(text) < 2:
            raise InputError(
                "there is one document only, and the second span of a pair comes from another one: put empty lines "
                "between documents before fairseq-preprocess, or give --nsp-weight 0, masked words alone."
            )
        self._special = torch.tensor([*range(dictionary.nspecial), dictionary.index(MASK)])
        self._drawn = np.array([number for number, symbol in enumerate(dictionary.symbols) if self._is_piece(symbol)])
        self._epoch: int | None = None
        self.set_epoch(1)

    def _is_piece(self, symbol: str) -> bool:
        """Return False for special symbols and those by which fairseq fills a dictionary up."""
        number = self.vocab.index(symbol)
        return number >= self.vocab.nspecial and symbol != MASK and not symbol.startswith("madeupword")

    def set_epoch(self, epoch: int) -> None:
        """Make the rows of an epoch; the same ones each time."""
        if epoch != self._epoch:
            self._epoch = epoch
            self.rows = np.array(list(self._spans(np.random.default_rng([self.seed, epoch]))), dtype=np.int64)
            if not len(self.rows):
                raise InputError(f"no document has the {_SHORTEST} pieces that a row needs.")
            starts, cuts, seconds, ends, _ = self.rows.T
            self._lengths = cuts - starts + ends - seconds + (3 if self.pairs else 2)

    def _spans(self, rng: np.random.Generator) -> Iterator[Spans]:
        for number, (start, end) in enumerate(self.text.bounds.tolist()):
            while end - start >= (_SHORTEST if self.pairs else 1):
                short = rng.random() < SHORT
                room = int(rng.integers(_SHORTEST, self._room + 1)) if short else self._room
                stop = self._stop(start, min(start + room, end), end)
                if not self.pairs:
                    yield Spans(start, stop, stop, stop, NEXT)
                    start = stop
                    continue
                lines = self.text.line_ends(start, stop)
                cut = int(rng.choice(lines)) if len(lines) else int(rng.integers(start + 1, stop))
                if rng.random() < 0.5:
                    yield Spans(start, cut, cut, stop, NEXT)
                    start = stop
                else:
                    second, stop = self._elsewhere(rng, number, room - (cut - start), at_line=len(lines) > 0)
                    yield Spans(start, cut, second, stop, RANDOM)
                    start = cut

    def _stop(self, start: int, stop: int, end: int) -> int:
        """Return the last end of a line up to ``stop``, or that where there is none; a row has two pieces or more."""
        if stop == end:
            return stop
        lines = self.text.line_ends(start + _SHORTEST - 1, stop + 1)
        return int(lines[-1]) if len(lines) else stop

    def _elsewhere(self, rng: np.random.Generator, number: int, room: int, *, at_line: bool) -> tuple[int, int]:
        """Return a span of at most ``room`` pieces of another document than the one of that number.

        It begins where a line does if the span that it replaces would (``at_line``): its beginning tells nothing.
        """
        other = int(rng.integers(len(self.text) - 1))
        start, end = self.text.bounds[other + (other >= number)].tolist()
        if at_line:
            start = int(rng.choice(np.append(self.text.line_ends(start, end), start)))
        else:
            start = int(rng.integers(start, end))
        return start, self._stop(start, min(start + room, end), end)

    def __getitem__(self, index: int) -> dict[str, Any]:
        spans = Spans(*self.rows[index].tolist())
        first, second = self.text.read(spans.start, spans.cut), self.text.read(spans.second, spans.end)
        ends = torch.tensor([self.vocab.eos()])
        parts = [torch.tensor([self.vocab.bos()]), first, ends, *((second, ends) if self.pairs else ())]
        tokens = torch.cat(parts)
        rng = np.random.default_rng([self.seed, self._epoch or 0, index])
        source, target = self._mask(rng, tokens)
        return {"id": index, "source": source, "target": target, "pair": spans.label}

    def _mask(self, rng: np.random.Generator, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return a row with masks, and what is to be predicted: the piece where one was chosen, else padding."""
        pieces = (~torch.isin(tokens, self._special)).nonzero().squeeze(1).numpy()
        # Rounded up or down at random, so that the share is right in the mean of rows of any length.
        chosen = rng.choice(pieces, int(CHOSEN * len(pieces) + rng.random()), replace=False)
        fate = rng.random(len(chosen))
        masks, others = chosen[fate < MASKED], chosen[(fate >= MASKED) & (fate < MASKED + REPLACED)]
        source, target = tokens.clone(), torch.full_like(tokens, self.vocab.pad())
        target[chosen] = tokens[chosen]
        source[masks] = self.vocab.index(MASK)
        source[others] = torch.from_numpy(rng.choice(self._drawn, len(others)))
        return source, target

    def collater(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        """Make a batch of rows: B x T tokens and targets (padding where none), B classes of pairs."""
        if not samples:
            return {}
        pad = self.vocab.pad()
        source, target = (
            data_utils.collate_tokens([row[name] for row in samples], pad) for name in ("source", "target")
        )
        lengths = torch.tensor([len(row["source"]) for row in samples])
        return {
            "id": torch.tensor([row["id"] for row in samples]),
            "nsentences": len(samples),
            "ntokens": int(lengths.sum()),
            "net_input": {"src_tokens": source, "src_lengths": lengths, "masked": target.ne(pad)},
            "target": target,
            "pair": torch.tensor([row["pair"] for row in samples]),
        }

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Return the lengths of the rows as fairseq counts a sentence, without ``<s>``."""
        return self._lengths - 1

    def size(self, index: int) -> int:
        """Return the length of a row without ``<s>``, by which fairseq leaves out what is too long."""
        return int(self._lengths[index]) - 1

    def num_tokens(self, index: int) -> int:
        """Return the number of tokens of a row."""
        return int(self._lengths[index])

    def num_tokens_vec(self, indices: Any) -> Any:
        """Return the numbers of tokens of several rows."""
        return self._lengths[indices]

    def ordered_indices(self) -> NDArray[np.int64]:
        """Return the rows by length, those of a length in random order; fairseq shuffles the batches."""
        return np.lexsort([np.random.permutation(len(self)), self._lengths])
