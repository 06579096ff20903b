"""Labelled sentences of several tasks as one data set, and the order of their batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data import FairseqDataset
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lmfusion.consumers.heads import CONCAT, IGNORED, HeadSpec
from lmfusion.errors import InputError
from lmfusion.lm.interface import PretrainedLM
from lmfusion.text.labelled import BINARY, SCORE, TAGS, Example


@dataclass(frozen=True)
class Encoded:
    """One example as the model takes it.

    Attributes:
        task: number of its task.
        rows: one or two of T ids of the LM, with their frame.
        target: a class's number or a score (no dimension), tags of T positions; None without a label.
    """

    task: int
    rows: tuple[Tensor, ...]
    target: Tensor | None

    def labels(self) -> int:
        """Return how many labels the loss is a mean over: one, of tags one a word."""
        return 1 if self.target is None or not self.target.dim() else int(self.target.ne(IGNORED).sum())


class Encoder:
    """Turns examples of a task into ids of a language model.

    Args:
        lm: the language model.
        spec: of the task's head.
        number: of the task.
        path: of the file, for messages.
        truncate: cut texts that are longer than the LM takes; the longer one of a pair first.
    """

    def __init__(self, lm: PretrainedLM, spec: HeadSpec, number: int, path: Path, *, truncate: bool) -> None:
        self.lm, self.spec, self.number, self.path, self.truncate = lm, spec, number, path, truncate
        self.classes = {name: index for index, name in enumerate(spec.classes)}
        self.cut = 0

    def __call__(self, example: Example) -> Encoded:
        """Encode an example.

        Raises:
            InputError: naming file and line, if it has other texts than the head reads, is too long, or has a label
                that is none of the head's classes.
        """
        place = f"{self.path}, line {example.line}"
        if len(example.texts) != (1 if self.spec.pair is None else 2):
            wanted = "one text" if self.spec.pair is None else "two texts"
            raise InputError(f"{place}: has {len(example.texts)}, and {self.spec.name} reads {wanted} a line.")
        try:
            return self._tagged(example) if self.spec.kind == TAGS else self._encoded(example)
        except InputError as error:
            raise InputError(f"{place}: {error}") from error

    def _encoded(self, example: Example) -> Encoded:
        words = [self._words(text) for text in example.texts]
        if self.spec.pair == CONCAT:
            first, second = self._fitted(words)
            rows: tuple[Tensor, ...] = (self.lm.vocabulary.pair(first, second),)
        else:
            rows = tuple(self._row(*self._fitted([each])) for each in words)
        return Encoded(self.number, rows, self._target(example.label))

    def _words(self, text: str) -> Tensor:
        """Return the ids of a text without frame."""
        return self.lm.encode(text)[0, len(self.lm.vocabulary.opening) : -1]

    def _row(self, words: Tensor) -> Tensor:
        vocabulary = self.lm.vocabulary
        return torch.cat([words.new_tensor(vocabulary.opening), words, words.new_tensor([vocabulary.closing])])

    def _fitted(self, words: list[Tensor]) -> list[Tensor]:
        """Cut texts so that together, with all closing symbols, they are no longer than the LM takes."""
        room = self.lm.max_positions() - 1 - (len(words) - 1) * self.lm.vocabulary.separators
        lengths = [len(each) for each in words]
        if sum(lengths) <= room:
            return words
        if not self.truncate:
            raise InputError(
                f"{sum(lengths)} symbols are more than the {room} that the language model takes here: shorten it, or "
                f"add --truncate-texts."
            )
        self.cut += 1
        if len(words) == 1:
            return [words[0][:room]]
        short = min(*lengths, room // 2)
        limits = [short if length == min(lengths) else room - short for length in lengths]
        return [each[:limit] for each, limit in zip(words, limits)]

    def _target(self, label: str | None) -> Tensor | None:
        if label is None:
            return None
        if self.spec.kind == SCORE:
            # fairseq turns float32 into half precision (--fp16, --bf16), in which 3.8 is 3.797.
            return torch.tensor(float(label), dtype=torch.float64)
        if label not in self.classes:
            raise InputError(f"the label {label!r} is none of the classes {', '.join(self.spec.classes)}.")
        return torch.tensor(float(label) if self.spec.kind == BINARY else self.classes[label])

    def _tagged(self, example: Example) -> Encoded:
        """Encode words one by one; the first symbol of each carries its tag."""
        pieces = [self._words(word) for word in example.texts[0].split()]
        if any(not len(piece) for piece in pieces):
            raise InputError("the language model's tokenizer makes nothing of one of its words.")
        (words,) = self._fitted([torch.cat(pieces)])
        row = self._row(words)
        starts = np.cumsum([0, *(len(piece) for piece in pieces[:-1])]) + len(self.lm.vocabulary.opening)
        target = torch.full_like(row, IGNORED)
        tags = [None] * len(pieces) if example.label is None else example.label.split()
        for start, tag in zip(starts, tags):
            if start < len(row) - 1:
                found = None if tag is None else self._target(tag)
                target[start] = 0 if found is None else found
        return Encoded(self.number, (row,), target)


class SentenceData(FairseqDataset):
    """Encoded examples of all tasks, one task after another.

    Args:
        specs: of the tasks' heads.
        examples: of each task.
        padding_idx: of the LM.
        training: whether batches are drawn anew in every epoch.
    """

    def __init__(
        self, specs: Sequence[HeadSpec], examples: Sequence[Sequence[Encoded]], padding_idx: int, *, training: bool
    ) -> None:
        self.specs, self.padding_idx, self.training = specs, padding_idx, training
        self.items = [item for task in examples for item in task]
        ends = np.cumsum([len(task) for task in examples])
        self.ranges = [np.arange(end - len(task), end) for end, task in zip(ends, examples)]
        self.labels = [sum(item.labels() for item in task) for task in examples]

    def __getitem__(self, index: int) -> Encoded:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def num_tokens(self, index: int) -> int:
        """Return the number of ids of an example."""
        return sum(len(row) for row in self.items[index].rows)

    def size(self, index: int) -> int:
        """Return the number of ids of an example's longest row."""
        return max(len(row) for row in self.items[index].rows)

    def collater(self, samples: Sequence[Encoded]) -> dict[str, Any]:
        """Make a batch.

        Returns:
            ``tasks``: by name of the task ``rows``, one or two of B x T, and ``target``, B or B x T; the counts that
            fairseq logs; and of data for validation ``shares``: the part of each task that the batch is.
        """
        tasks, shares = {}, {}
        for number, spec in enumerate(self.specs):
            chosen = [sample for sample in samples if sample.task == number]
            if chosen:
                tasks[spec.name] = batch(chosen, self.padding_idx)
                shares[spec.name] = sum(sample.labels() for sample in chosen) / max(1, self.labels[number])
        tokens = sum(len(row) for sample in samples for row in sample.rows)
        made = {"tasks": tasks, "nsentences": len(samples), "ntokens": tokens} if samples else {}
        return {**made, "shares": shares} if samples and not self.training else made


def batch(samples: Sequence[Encoded], padding_idx: int) -> dict[str, Any]:
    """Pad examples of one task: ``rows``, one or two of B x T, and ``target``, B or B x T (None without labels)."""
    rows = [
        pad_sequence([sample.rows[number] for sample in samples], batch_first=True, padding_value=padding_idx)
        for number in range(len(samples[0].rows))
    ]
    targets = [sample.target for sample in samples if sample.target is not None]
    if len(targets) < len(samples):
        return {"rows": rows, "target": None}
    if targets[0].dim():
        return {"rows": rows, "target": pad_sequence(targets, batch_first=True, padding_value=IGNORED)}
    return {"rows": rows, "target": torch.stack(targets)}


def task_batches(indices: np.ndarray, size: int, count: int, rng: np.random.Generator) -> list[list[int]]:
    """Draw batches of one task: shuffled passes over its examples, until there are enough.

    Args:
        indices: of the examples.
        size: of a batch, in examples.
        count: number of batches.
        rng: decides the order.
    """
    batches: list[list[int]] = []
    while len(batches) < count:
        order = rng.permutation(indices).tolist()
        batches += [order[start : start + size] for start in range(0, len(order), size)]
    return batches[:count]


def training_batches(
    data: SentenceData, sizes: Sequence[int], *, joint: bool, count: int | None, workers: int, seed: int
) -> list[list[int]]:
    """Return the batches of an epoch in order.

    Args:
        data: of all tasks.
        sizes: of each task's batches, in examples.
        joint: one batch of each task together make a batch; else they follow each other in turn, and in several
            processes all of these work on the same task at a time.
        count: batches of each task an epoch; None: as many as the largest task has in one pass.
        workers: number of processes.
        seed: of this epoch.

    Returns:
        Lists of examples' numbers; equally many batches of every task.
    """
    rng = np.random.default_rng(seed)
    passes = [-(-len(indices) // size) for indices, size in zip(data.ranges, sizes)]
    rounds = -(-(count or max(passes)) // workers) * workers
    drawn = [task_batches(indices, size, rounds, rng) for indices, size in zip(data.ranges, sizes)]
    if joint:
        return [[index for part in parts for index in part] for parts in zip(*drawn)]
    starts = range(0, rounds, workers)
    return [each for start in starts for batches in drawn for each in batches[start : start + workers]]


def evaluation_batches(data: SentenceData, sizes: Sequence[int]) -> list[list[int]]:
    """Return batches of one task each that hold every example once, those of like length together."""
    batches: list[list[int]] = []
    for indices, size in zip(data.ranges, sizes):
        order = sorted(indices.tolist(), key=data.size)
        batches += [order[start : start + size] for start in range(0, len(order), size)]
    return batches
