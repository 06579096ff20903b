"""sacreBLEU's metrics without their memory of every line: a million lines take gigabytes otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.base import Metric


class Streaming(Metric):
    """A metric of sacreBLEU that forgets the n-grams of a line's references when the line is scored.

    sacreBLEU collects those of all lines first, which takes up to 30 KB a line.
    """

    def _cache_references(self, references: Sequence[Sequence[str | None]]) -> Any:
        """Iterate over what there is to know of each line's references, of which some may be None."""
        numbers = set()
        for lines in zip(*references):
            given = [self._preprocess_segment(line) for line in lines if line is not None]
            numbers.add(len(given))
            self.num_refs = len(given) if len(numbers) == 1 else -1  # sacreBLEU's number of a varying one
            yield self._extract_reference_info(given)


class StreamingBleu(Streaming, BLEU):
    """BLEU with little memory."""


class StreamingChrF(Streaming, CHRF):
    """chrF with little memory."""
