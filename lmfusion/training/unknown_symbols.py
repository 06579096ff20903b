"""Refuse training data of which most is unknown to its dictionary: another BPE model has segmented it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
from fairseq.data import DenoisingDataset, Dictionary, LanguagePairDataset, MonolingualDataset

from lmfusion.errors import InputError
from lmfusion.training.span_pairs import SpanPairs

logger = logging.getLogger(__name__)

SENTENCES = 10_000
"""Number of sentences of a split that are looked at."""
MOST = 0.5
"""Share (0..1) of unknown symbols above which a run is refused."""


def unknown_share(texts: Any, dictionary: Dictionary, sentences: int = SENTENCES) -> float:
    """Return the share (0..1) of <unk> among the symbols of a sample of sentences, without </s> and padding.

    Args:
        texts: sequence of sentences, each of T token ids.
        dictionary: the one that the ids belong to.
        sentences: size of the sample, which is the same one every time.
    """
    chosen = np.arange(len(texts))
    if len(texts) > sentences:
        chosen = np.sort(np.random.default_rng(0).choice(len(texts), sentences, replace=False))
    unknown = total = 0
    for index in chosen:
        ids = texts[int(index)]
        total += int((ids.ne(dictionary.eos()) & ids.ne(dictionary.pad())).sum())
        unknown += int(ids.eq(dictionary.unk()).sum())
    return unknown / total if total else 0.0


class _Sources:
    """The sentences of a data set for language modeling, as a sequence."""

    def __init__(self, dataset: MonolingualDataset) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: int) -> Any:
        return self._dataset[index]["source"]


def _sides(dataset: Any, task: Any) -> Iterator[tuple[str, Any, Dictionary]]:
    """Yield name, sentences and dictionary of each text in a data set of one of the tasks that are checked."""
    if isinstance(dataset, LanguagePairDataset):
        yield f"{task.cfg.source_lang} (source)", dataset.src, dataset.src_dict
        if dataset.tgt is not None:
            yield f"{task.cfg.target_lang} (target)", dataset.tgt, dataset.tgt_dict
    elif isinstance(dataset, MonolingualDataset):
        yield "text", _Sources(dataset), dataset.vocab
    elif isinstance(dataset, SpanPairs):
        yield "text", dataset.text.lines, dataset.vocab
    elif isinstance(dataset, DenoisingDataset):
        yield "text", dataset.dataset, dataset.vocab


def check_unknown_symbols(task: Any) -> None:
    """Log the share of unknown symbols in every split that a task has loaded.

    Args:
        task: of translation, language modeling, BERT's pretraining or denoising; others are not checked.

    Raises:
        InputError: if more than half of the symbols of a text are unknown.
    """
    for split, dataset in task.datasets.items():
        for side, texts, dictionary in _sides(dataset, task):
            share = unknown_share(texts, dictionary)
            logger.info(f"unknown symbols (<unk>) in {split}, {side}: {share:.2%}")
            if share > MOST:
                raise InputError(
                    f"{share:.1%} of the symbols in the data set {split}, {side}, are unknown (<unk>): its text was "
                    f"segmented by another BPE model than its dictionary is of. Prepare the data again with the BPE "
                    f"model and the dictionary that belong together."
                )
