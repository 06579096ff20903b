"""Runs that are resumed after the first epoch see the batches that the unbroken run sees."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary, LanguagePairDataset, ListDataset
from fairseq.tasks.fairseq_task import FairseqTask

SENTENCES, EPOCHS = 40, 3


class Task(FairseqTask):
    """With sentences of one to four words, so that many have the same length."""

    def __init__(self, dictionary: Dictionary, **flags: Any) -> None:
        super().__init__(SimpleNamespace(**flags))
        rows = [torch.tensor([*[4 + number % 20] * (1 + number % 4), 2]) for number in range(SENTENCES)]
        sizes = [len(row) for row in rows]
        self.data = LanguagePairDataset(ListDataset(rows, sizes), sizes, dictionary)

    def batches(self, epoch: int = 1, **flags: Any) -> Any:
        """As fairseq's trainer asks for them."""
        return self.get_batch_iterator(dataset=self.data, max_tokens=12, seed=1, epoch=epoch, **flags)


def sentences(epoch: Any) -> list[list[int]]:
    """Their numbers, batch by batch."""
    return [sorted(batch["id"].tolist()) for batch in epoch]


@pytest.fixture
def unbroken(dictionary: Dictionary) -> list[list[list[int]]]:
    """What a run of three epochs trains on."""
    task, epochs = Task(dictionary), []
    for number in range(1, EPOCHS + 1):
        epochs.append(sentences(task.batches(number).next_epoch_itr(shuffle=True)))
    assert all(sorted(number for batch in epoch for number in batch) == list(range(SENTENCES)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    return epochs


@pytest.mark.parametrize("epoch", [1, 2, 3])
@pytest.mark.parametrize("done", [0, 1, 5])
def test_resumed(dictionary: Dictionary, unbroken: list[list[list[int]]], epoch: int, done: int) -> None:
    batches = Task(dictionary).batches(epoch)
    batches.load_state_dict({"version": 2, "epoch": epoch, "iterations_in_epoch": done, "shuffle": True})
    assert batches.next_epoch_idx == epoch
    assert sentences(batches.next_epoch_itr(shuffle=True)) == unbroken[epoch - 1][done:]
    for number in range(epoch + 1, EPOCHS + 1):
        assert batches.next_epoch_idx == number
        assert sentences(batches.next_epoch_itr(shuffle=True)) == unbroken[number - 1]


def test_where_every_epoch_has_batches_of_its_own_nothing_changes(dictionary: Dictionary) -> None:
    """With --update-epoch-batch-itr, and so on."""

    def second_epoch(task: Task, **flags: Any) -> list[list[int]]:
        return sentences(task.batches(2, **flags).next_epoch_itr(shuffle=True))

    as_at_first = second_epoch(Task(dictionary))
    assert second_epoch(Task(dictionary), update_epoch_batch_itr=True) != as_at_first
    assert second_epoch(Task(dictionary), disable_iterator_cache=True) != as_at_first
    assert second_epoch(Task(dictionary, rebuild_batches=True)) != as_at_first
