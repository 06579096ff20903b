"""A batch that does not fit is named, with the flags to change; a run in which nothing fits ends."""

from __future__ import annotations

import logging
import re
from typing import Any, Callable

import pytest
import torch

from lmfusion.errors import UserError
from lmfusion.fairseq_patches.failures import OOM_LIMIT

ADAM = ("--optimizer", "adam")
GPU_MESSAGE = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB"
CPU_MESSAGE = "[enforce fail at alloc_cpu.cpp:118] . DefaultCPUAllocator: can't allocate memory: you tried 9 B"


def limit_memory(trainer: Any, tokens: int, error: Exception) -> None:
    """From now on the model takes batches up to so many source tokens; what PyTorch raises is raised beyond."""

    def before(module: Any, args: Any, kwargs: dict[str, Any]) -> None:
        if kwargs["src_tokens"].numel() > tokens:
            raise error

    trainer.get_model().register_forward_pre_hook(before, with_kwargs=True)


@pytest.fixture
def small_gpu(make_trainer: Callable[..., Any]) -> Any:
    """A trainer on a machine with room for 40 source tokens."""
    trainer = make_trainer("baseline", *ADAM, "--batch-size", 8, "--update-freq", 2)
    limit_memory(trainer, 40, torch.OutOfMemoryError(GPU_MESSAGE))
    return trainer


def test_the_batch_is_named_and_left_out(
    small_gpu: Any, make_batch: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    assert small_gpu.train_step([make_batch("baseline", sentences=6, width=11)]) is None
    (said,) = [record.message for record in caplog.records if "did not fit" in record.message]
    assert "6 sentences, 6 x 11 source and 6 x 12 target tokens with padding" in said
    assert "numbers 0, 1, 2, 3, 4 … of the data set" in said
    assert "--max-tokens 200 --batch-size 4 --update-freq 4" in said  # half of 400 and 8, twice 2
    assert small_gpu.get_num_updates() == 0
    small_gpu.train_step([make_batch("baseline", sentences=4, width=9)])
    assert small_gpu.get_num_updates() == 1


def test_a_run_in_which_nothing_fits_ends(small_gpu: Any, make_batch: Callable[..., Any]) -> None:
    """fairseq would go through the data for ever without an update."""
    for _ in range(OOM_LIMIT - 1):
        small_gpu.train_step([make_batch("baseline", sentences=6)])
    with pytest.raises(UserError, match=rf"6 x 9 source.* nor did the {OOM_LIMIT - 1} batches before it: give --max-t"):
        small_gpu.train_step([make_batch("baseline", sentences=6)])


def test_batches_that_fit_in_between_let_it_go_on(small_gpu: Any, make_batch: Callable[..., Any]) -> None:
    for _ in range(2):
        for _ in range(OOM_LIMIT - 1):
            small_gpu.train_step([make_batch("baseline", sentences=6)])
        small_gpu.train_step([make_batch("baseline")])
    assert small_gpu.get_num_updates() == 2


def test_with_other_processes_waiting_the_job_ends(small_gpu: Any, make_batch: Callable[..., Any]) -> None:
    """DistributedDataParallel waits for gradients that this process will never send."""
    small_gpu.model  # noqa: B018  (wrapped before the configuration speaks of several processes)
    small_gpu.cfg.distributed_training.distributed_world_size = 2
    with pytest.raises(UserError, match=r"the other processes cannot go on.*--ddp-backend legacy_ddp"):
        small_gpu.train_step([make_batch("baseline", sentences=6)])


def test_a_validation_batch_is_named(small_gpu: Any, make_batch: Callable[..., Any]) -> None:
    with pytest.raises(UserError, match=r"out of memory with 6 sentences, 6 x 9 source.*--max-tokens-valid"):
        small_gpu.valid_step(make_batch("baseline", sentences=6))


def test_a_cpu_without_memory_is_told_so(make_trainer: Callable[..., Any], make_batch: Callable[..., Any]) -> None:
    trainer = make_trainer("cloze LM", *ADAM)
    limit_memory(trainer, 40, RuntimeError(CPU_MESSAGE))
    with pytest.raises(UserError, match=r"out of memory with 6 sentences, 6 x 9 source tokens with padding.*--max-tok"):
        trainer.train_step([make_batch("cloze LM", sentences=6)])


def test_other_errors_stay_what_they_are(make_trainer: Callable[..., Any], make_batch: Callable[..., Any]) -> None:
    trainer = make_trainer("baseline", *ADAM)
    limit_memory(trainer, 40, RuntimeError("The size of tensor a (3) must match the size of tensor b (4)"))
    with pytest.raises(RuntimeError, match=re.escape("tensor a (3)")):
        trainer.train_step([make_batch("baseline", sentences=6)])
