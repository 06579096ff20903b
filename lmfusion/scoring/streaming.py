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

    def _cache_references(self, references: Sequence[Sequence[str]]) -> Any:
        """Iterate over what there is to know of each line's references."""
        self.num_refs = len(references)
        return (
            self._extract_reference_info([self._preprocess_segment(line) for line in lines])
            for lines in zip(*references)
        )


class StreamingBleu(Streaming, BLEU):
    """BLEU with little memory."""


class StreamingChrF(Streaming, CHRF):
    """chrF with little memory."""
