"""The order of a study's runs, and what each waits for."""

from __future__ import annotations

import dataclasses

import pytest
from study import plan
from study.budget import ALL, CPU, GPU, Budget
from study.task import TASKS

from lmfusion.errors import InputError

ENDE = TASKS["debian_ende"]
SMALL = Budget("custom", sizes=(10, 5), seeds=(1, 2), updates=((5, 100), (10, 200)))
ROWS = ("baseline", "src_elmo_shdemb", "src_ft")


def short(jobs: list[plan.Job]) -> list[str]:
    return [f"{job.row} {job.size} {job.seed}" for job in jobs]


def test_the_first_seeds_two_telling_rows_come_first_then_its_others_then_further_seeds() -> None:
    jobs = plan.make(SMALL, ENDE, ROWS, pairs=50)
    assert short(jobs[:6]) == [
        "baseline 10 1",
        "src_elmo_shdemb 10 1",
        "baseline 5 1",
        "src_elmo_shdemb 5 1",
        "src_ft 10 1",
        "src_ft 5 1",
    ]
    assert short(jobs[6:]) == [name[:-1] + "2" for name in short(jobs[:6])]


def test_every_row_has_the_same_updates_at_a_size() -> None:
    jobs = plan.make(SMALL, ENDE, ENDE.rows, pairs=50)
    assert {(job.size, job.updates) for job in jobs} == {(10, 200), (5, 100)}
    assert len(jobs) == 2 * 2 * len(ENDE.rows)


@pytest.mark.parametrize(("size", "updates"), [(2500, 2000), (2501, 3000), (10000, 4000), (20000, 6000), (38573, 8000)])
def test_a_size_has_the_updates_of_the_next_listed_one(size: int, updates: int) -> None:
    assert CPU.most_updates(size) == updates


def test_what_is_named_twice_is_run_once() -> None:
    twice = dataclasses.replace(SMALL, seeds=(1, 2, 1))
    assert plan.make(twice, ENDE, ["baseline", *ROWS], pairs=50) == plan.make(SMALL, ENDE, ROWS, pairs=50)


def test_all_pairs_are_as_many_as_the_corpus_has() -> None:
    jobs = plan.make(dataclasses.replace(SMALL, sizes=(ALL, 10, 50)), ENDE, ["baseline"], pairs=50)
    assert [job.size for job in jobs] == [50, 10, 50, 10], "a size is run once"
    with pytest.raises(InputError, match="--sizes 51: the corpus has 50 training pairs"):
        plan.make(dataclasses.replace(SMALL, sizes=(51,)), ENDE, ["baseline"], pairs=50)


def test_what_learns_nothing_is_run_once_and_first() -> None:
    jobs = plan.make(SMALL, TASKS["debian_synopsis"], ("baseline", "lead"), pairs=50)
    assert short(jobs)[:2] == ["lead 0 1", "baseline 10 1"]
    assert sum(job.row == "lead" for job in jobs) == 1


def test_dropouts_are_tried_with_the_first_seed_before_any_run_that_is_scored() -> None:
    budget = dataclasses.replace(SMALL, sizes=(10,), dropouts=(0.1, 0.3), representation_dropouts=(0.0, 0.2, 0.4))
    jobs = plan.make(budget, ENDE, ("baseline", "src_ft"), pairs=50)
    tried = [(job.kind, job.row, job.value, job.seed) for job in jobs if job.kind != plan.FINAL]
    assert tried == [
        *((plan.DROPOUT, "baseline", value, 1) for value in (0.1, 0.3)),
        *((plan.DROPOUT, "src_ft", value, 1) for value in (0.1, 0.3)),
        # the first value of this grid is what the other was tried with
        *((plan.REPRESENTATION, "src_ft", value, 1) for value in (0.2, 0.4)),
    ]
    for number, job in enumerate(jobs):
        assert set(job.needs) <= set(jobs[:number]), "nothing waits for what comes after it"
    scored = [job for job in jobs if job.kind == plan.FINAL and job.row == "src_ft"]
    assert [len(job.needs) for job in scored] == [4, 4]


def test_a_grid_for_representations_alone_is_tried_whole() -> None:
    budget = dataclasses.replace(SMALL, sizes=(10,), representation_dropouts=(0.0, 0.2))
    jobs = plan.make(budget, ENDE, ("baseline", "src_elmo"), pairs=50)
    assert [(job.row, job.value) for job in jobs if job.kind != plan.FINAL] == [("src_elmo", 0.0), ("src_elmo", 0.2)]


def test_rows_that_read_a_language_model_wait_for_those_that_are_pretrained() -> None:
    jobs = plan.make(GPU, ENDE, ("baseline", "src_ft", "tgt_ft"), pairs=38573)
    models = [job for job in jobs if job.kind == plan.LM]
    assert [job.row for job in models] == ["cloze", "causal"]
    for job in jobs:
        assert (set(models) <= set(job.needs)) == job.row.endswith("_ft")
    assert not [job for job in plan.make(GPU, ENDE, ("baseline", "shared"), pairs=38573) if job.kind == plan.LM]


def test_a_row_that_there_is_not_is_named() -> None:
    with pytest.raises(InputError, match=r"--rows src_bert: debian_ende has no such row\. It has: baseline, src_elmo"):
        plan.make(SMALL, ENDE, ("baseline", "src_bert"), pairs=50)
