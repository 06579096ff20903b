"""The flags of the task ``lmfusion_sentences``, as fairseq's commands read them, and those that a checkpoint holds."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.trainer import Trainer

from lmfusion.consumers.heads import HeadSpec
from lmfusion.errors import InputError
from lmfusion.training.sentence_data import Encoded, SentenceData
from lmfusion.training.sentences import SentencesConfig, SentencesTask

TASK = ["mood=x:same=y:near=z", "--task", "lmfusion_sentences", "--criterion", "sentence_tasks"]
NAMES = ("mood", "same", "near")


@cache
def configuration(*flags: str) -> Any:
    """fairseq-train's configuration."""
    words = [*TASK, "--arch", "lmfusion_heads", *flags]
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), words))


def flags_of(**given: Any) -> SentencesConfig:
    """The task's own flags: the defaults, but for these."""
    cfg = SentencesConfig(data=TASK[0], batch_size=None, seed=1)
    for name, value in given.items():
        setattr(cfg, name, value)
    return cfg


def sizes(task: Any) -> dict[str, int]:
    """The size of each task's largest batch in an epoch."""
    specs = [HeadSpec(name, "score", None) for name in NAMES]
    items = [[Encoded(number, (torch.tensor([0, 4, 2]),), torch.tensor(1.0))] * 20 for number in range(len(NAMES))]
    data = SentenceData(specs, items, 1, training=True)
    found: dict[str, int] = {}
    for batch in task.get_batch_iterator(data, epoch=1, grouped_shuffling=False).batch_sampler(data, 1):
        name = NAMES[data.items[batch[0]].task]
        found[name] = max(found.get(name, 0), len(batch))
    return found


def test_fairseq_train_needs_no_size_of_batches() -> None:
    """It refuses to begin where its own configuration has none."""
    cfg = configuration()
    assert cfg.dataset.batch_size == 8
    assert sizes(tasks.setup_task(cfg.task)) == {"mood": 8, "same": 8, "near": 8}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [8, 8, 8]),
        ({"batch_size": 5}, [5, 5, 5]),
        ({"task_batches": "mood=3,same=7,near=2"}, [3, 7, 2]),
        ({"task_batches": "same=7", "batch_size": 5}, [5, 7, 5]),
    ],
)
def test_a_batch_has_the_size_of_its_task_or_of_all(given: dict[str, Any], expected: list[int]) -> None:
    assert sizes(SentencesTask(flags_of(**given))) == dict(zip(NAMES, expected))


def test_validation_takes_the_size_of_batches_in_training_where_none_is_given() -> None:
    """fairseq-validate puts what is given in the place of what the checkpoint holds."""
    parsers = [options.get_validation_parser() for _ in range(2)]
    words = ([*TASK], [*TASK, "--batch-size", "3"])
    given = [options.parse_args_and_arch(*each, suppress_defaults=True) for each in zip(parsers, words)]
    assert [getattr(args, "batch_size", None) for args in given] == [None, 3]


def trainer_of(make_heads: Any, folder: Path, *flags: str) -> Any:
    """What fairseq's trainer makes iterators of, with a task of 20 sentences for training and 20 for validation."""
    for name in ("mytrain", "valid"):
        rows = "".join(f"w{number % 7} w{number}\t{number % 2}\n" for number in range(20))
        (folder / f"{name}.tsv").write_text(f"sentence\tlabel\n{rows}", encoding="utf-8")
    words = [f"mood={folder}", *TASK[1:], "--arch", "lmfusion_heads", "--train-subset", "mytrain", *flags]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), words))
    task = tasks.setup_task(cfg.task)
    task.model = make_heads(task.head_specs())
    alone = {"data_parallel_world_size": 1, "data_parallel_rank": 0, "tpu": False, "reset_dummy_batch": lambda _: None}
    return SimpleNamespace(cfg=cfg, task=task, model=SimpleNamespace(max_positions=lambda: None), **alone)


def seen(iterator: Any) -> list[list[int]]:
    """The numbers of the examples of each batch in an epoch."""
    return [list(batch) for batch in iterator.batch_sampler(iterator.dataset, iterator.next_epoch_idx)]


@pytest.mark.parametrize("epoch", [1, 2])
@pytest.mark.parametrize("name", ["valid", "mytrain"])
def test_data_are_shuffled_for_training_alone_whatever_their_name(
    make_heads: Any, tmp_path: Path, name: str, epoch: int
) -> None:
    """--batches-per-epoch asks for five passes over 20 examples in batches of 4; validation sees each once."""
    flags = ("--valid-subset", name, "--batch-size", "4", "--batches-per-epoch", "25")
    trainer = trainer_of(make_heads, tmp_path, *flags)
    trainer.task.load_dataset(name)
    training = Trainer.get_train_iterator(trainer, epoch)
    validation = Trainer.get_valid_iterator(trainer, name)
    drawn, evaluated = seen(training), seen(validation)
    assert Counter(index for batch in drawn for index in batch) == dict.fromkeys(range(20), 5)
    assert len({tuple(batch) for batch in drawn}) > 5
    assert Counter(index for batch in evaluated for index in batch) == dict.fromkeys(range(20), 1)
    assert "shares" not in training.first_batch
    assert validation.first_batch["shares"] == {"mood": pytest.approx(0.2)}


def test_validation_of_a_checkpoint_on_its_training_data_sees_each_example_once(
    make_heads: Any, tmp_path: Path
) -> None:
    given = trainer_of(make_heads, tmp_path, "--batch-size", "4", "--batches-per-epoch", "25")
    task = tasks.setup_task(given.cfg.task, from_checkpoint=True)
    task.model = given.task.model
    task.load_dataset("mytrain")
    made = task.get_batch_iterator(task.dataset("mytrain"), max_sentences=8, epoch=1)
    assert sorted(index for batch in seen(made) for index in batch) == list(range(20))


def test_a_number_of_tokens_is_said_to_be_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    cfg = configuration("--max-tokens", "400")
    assert sizes(tasks.setup_task(cfg.task)) == sizes(tasks.setup_task(configuration().task))
    assert "--max-tokens 400" in caplog.text
    assert "--batch-size (8)" in caplog.text
    caplog.clear()
    tasks.setup_task(cfg.task, from_checkpoint=True)
    assert caplog.text == ""


def test_what_a_checkpoint_holds_of_tasks_that_are_not_asked_for_is_passed_over() -> None:
    given = {"task_pairs": "near=cos,same=uv", "task_kinds": "mood=class", "task_batches": "mood=3,same=5"}
    cfg = flags_of(data="same=y", schedule="joint", gradients="pcgrad", **given)
    made = SentencesTask.setup_task(cfg, from_checkpoint=True)
    assert (made.kinds, made.pairs, made.sizes) == ({}, {"same": "uv"}, {"same": 5})


@pytest.mark.parametrize(
    "given", [{"task_pairs": "sane=uv"}, {"task_kinds": "sane=binary"}, {"task_batches": "sane=4"}]
)
def test_a_misspelled_task_is_refused_in_training(given: dict[str, str]) -> None:
    with pytest.raises(InputError, match="there is no task 'sane'; there are mood, same, near"):
        SentencesTask.setup_task(flags_of(**given))


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), [5, 5, 5, 5]),
        (("--batch-size-valid", "10"), [10, 10]),
        (("--task-batches", "mood=4"), [4, 4, 4, 4, 4]),
        (("--task-batches", "mood=4", "--batch-size-valid", "10"), [10, 10]),
    ],
)
def test_validation_in_training_has_batches_of_its_own_size(
    make_heads: Any, tmp_path: Path, flags: tuple[str, ...], expected: list[int]
) -> None:
    trainer = trainer_of(make_heads, tmp_path, "--batch-size", "5", *flags)
    trainer.task.load_dataset("valid")
    assert [len(batch) for batch in seen(Trainer.get_valid_iterator(trainer, "valid"))] == expected
    size = 4 if "--task-batches" in flags else 5
    assert {len(batch) for batch in seen(Trainer.get_train_iterator(trainer, 1))} == {size}


def test_a_number_of_tokens_in_validation_is_said_to_be_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    tasks.setup_task(configuration("--max-tokens-valid", "300").task)
    assert "--max-tokens-valid 300" in caplog.text
    assert "--batch-size-valid" in caplog.text
