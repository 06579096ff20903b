"""Processes: so many at a time, in order, on after a failure, ended with the study."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from study.budget import PRESETS
from study.estimate import Clock, in_words
from study.layout import Layout, Setting
from study.plan import FINAL, LM, Job
from study.runner import Runner, Start
from study.task import TASKS

from lmfusion.runs.live_line import LiveLine


class Terminal(io.StringIO):
    """Progress is shown at once."""

    def isatty(self) -> bool:
        return True


class Scripts:
    """Jobs as shell commands; each leaves a file of its row's name when it is done."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spent = 0.0
        self.shown = io.StringIO()
        self.commands: dict[str, str] = {}

    def start(self, job: Job) -> Start:
        result = self.folder / job.row
        body = self.commands.get(job.row, f"touch {result}")
        command = ["bash", "-c", f"echo {job.row} >>{self.folder}/calls; {body}"]
        log = self.folder / f"{job.row}.log"
        return Start(command, {"ROW": job.row}, log, result.exists, lambda: "fine", self.spent)

    def runner(self, jobs: Sequence[Job], at_a_time: int = 1) -> Runner:
        clock = Clock(dict.fromkeys(jobs, 10_000.0), at_a_time)
        return Runner(jobs, self.start, at_a_time, clock, LiveLine(self.shown))

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text(encoding="utf-8").split()


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path)


def job(row: str, *needs: Job) -> Job:
    return Job(FINAL, row, 10, 1, None, 5, needs)


def test_jobs_run_in_their_order_and_what_is_done_is_not_run_again(scripts: Scripts) -> None:
    jobs = [job("one"), job("two"), job("three")]
    (scripts.folder / "two").touch()
    runner = scripts.runner(jobs)
    runner.run()
    assert scripts.calls() == ["one", "three"]
    assert set(runner.done) == set(jobs)
    assert "10 pairs two seed 1: finished before (fine)" in scripts.shown.getvalue()

    scripts.runner(jobs).run()
    assert scripts.calls() == ["one", "three"], "the same study again does nothing"


def test_others_go_on_after_a_failed_job_but_what_needs_it_is_not_run(scripts: Scripts) -> None:
    model = Job(LM, "cloze")
    scripts.commands["cloze"] = "echo Traceback '(most recent call last)'; echo 'ValueError: no luck'; exit 3"
    scripts.commands["odd"] = "true"
    jobs = [model, job("fused", model), job("plain"), job("odd")]
    runner = scripts.runner(jobs)
    runner.run()
    assert scripts.calls() == ["cloze", "plain", "odd"]
    assert runner.done == [jobs[2]]
    assert "exit status 3" in runner.failed[model]
    assert "ValueError: no luck" in runner.failed[model]
    assert runner.failed[jobs[1]] == "not run, for it needs: cloze language model"
    assert runner.failed[jobs[3]].startswith("it ended well, but left no result")


def test_a_job_waits_for_what_it_needs_while_others_run(scripts: Scripts) -> None:
    first = job("first")
    scripts.commands["first"] = (
        f"while [ ! -e {scripts.folder}/other ]; do sleep 0.02; done; touch {scripts.folder}/first"
    )
    runner = scripts.runner([first, job("second", first), job("other")], at_a_time=2)
    runner.run()
    assert scripts.calls()[-1] == "second"
    assert not runner.failed


def test_no_more_run_at_a_time_than_the_machine_carries(scripts: Scripts) -> None:
    rows = [f"row{number}" for number in range(5)]
    for row in rows:
        work = scripts.folder / "running"
        scripts.commands[row] = (
            f"mkdir -p {work}; touch {work}/{row}; ls {work} | wc -l >>{scripts.folder}/counts; sleep 0.3; "
            f"rm {work}/{row}; touch {scripts.folder}/{row}"
        )
    scripts.runner([job(row) for row in rows], at_a_time=2).run()
    counts = [int(word) for word in (scripts.folder / "counts").read_text().split()]
    assert len(counts) == 5
    assert max(counts) <= 2


def test_a_study_that_is_interrupted_ends_its_processes(scripts: Scripts, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts.commands["long"] = f"echo $$ >{scripts.folder}/pid; exec sleep 600"
    runner = scripts.runner([job("long")])
    pid = scripts.folder / "pid"

    def interrupt_when_it_runs(_: float) -> None:
        time_out = os.times().elapsed + 60
        while not (pid.exists() and pid.read_text().strip()) and os.times().elapsed < time_out:
            os.sched_yield()
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt_when_it_runs)
    with pytest.raises(KeyboardInterrupt):
        runner.run()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert not runner.done


def test_the_time_left_follows_the_pace_of_what_has_finished() -> None:
    jobs = [job(f"row{number}") for number in range(4)]
    clock = Clock(dict.fromkeys(jobs, 100.0), at_a_time=2)
    assert clock.left(jobs[1:], {jobs[0]: 40.0}) == (60 + 300) / 2
    clock.finished(jobs[0], 200.0)
    assert clock.left(jobs[2:], {jobs[1]: 50.0}) == (150 + 400) / 2
    assert clock.left([], {jobs[3]: 20.0}) == 180, "one job is not shared"
    assert [in_words(seconds) for seconds in (0, 89, 91, 5399, 9000)] == [
        *("about 1 s", "about 89 s", "about 2 min", "about 90 min", "about 2.5 h"),
    ]


def test_what_was_spent_before_an_interruption_counts(scripts: Scripts) -> None:
    scripts.spent, scripts.shown = 7_000.0, Terminal()
    scripts.commands["first"] = f"sleep 0.5; touch {scripts.folder}/first"
    runner = scripts.runner([job("first")])
    runner.run()
    assert "0/1 done, about 50 min left" in scripts.shown.getvalue(), "10,000 seconds in all, less 7,000"
    assert runner.clock.pace == pytest.approx(0.7, abs=0.01)


def test_seconds_of_a_stopped_training_are_read_from_its_run_folder(tmp_path: Path) -> None:
    layout, setting = Layout(tmp_path, TASKS["debian_ende"], PRESETS["cpu"]), Setting(0.2, 0.0)
    assert layout.spent(job("baseline"), setting) == 0
    assert layout.spent(Job(LM, "cloze"), setting) == 0
    run = layout.run(job("baseline"), setting)
    run.lock()
    run.begin("train", ["fairseq-train"])
    run.add_seconds("train", 90)
    assert layout.spent(job("baseline"), setting) == 90
    run.finish("train", {})
    assert layout.spent(job("baseline"), setting) == 0, "what is left is its scoring"
