"""The flags of the task ``lmfusion_sentences``, as fairseq's commands read them, and those that a checkpoint holds."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

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
    for batch in task.get_batch_iterator(data, epoch=1).batch_sampler(data, 1):
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
