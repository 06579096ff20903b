"""Which runs may stand in one table: those scored on the same text in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmfusion.report.page import published
from lmfusion.report.page.notices import Notices
from lmfusion.report.page.runs import Run


@dataclass(frozen=True)
class Task:
    """A test set and how it is scored."""

    data_set: str
    language_pair: tuple[str, str]
    reference_sha256: str | None
    """None where the scores do not say against which text they are."""
    signature: str

    @property
    def title(self) -> str:
        """Return test set and languages in words."""
        source, target = self.language_pair
        return f"{self.data_set} ({source}-{target})" if source and target else self.data_set


@dataclass(frozen=True)
class TaskGroup:
    """A task, or the average of several, with the runs that are scored on it or would be if they had come so far."""

    task: Task
    data_sets: tuple[str, ...]
    runs: list[Run]


def task_of(run: Run, data_set: str) -> Task:
    """Return the task that one of a run's scores is of."""
    entry = run.scores[data_set]
    reference = entry.get("reference_sha256")
    return Task(data_set, run.language_pair, reference, str(entry.get("signature", "")))


def runs_by_task(runs: Sequence[Run], notices: Notices) -> list[TaskGroup]:
    """Return every task with its runs.

    Scores of another reference text, or computed in another way, are another task; that is noted.
    """
    members: dict[Task, list[Run]] = {}
    for run in runs:
        for data_set in run.scores if not run.state else ():
            members.setdefault(task_of(run, data_set), []).append(run)
    pending = [(run, task) for run in runs if run.state for task in _would_be_of(run, members)]
    _note_differences(members, notices)
    for run, task in pending:
        members[task].append(run)
    return [TaskGroup(task, (task.data_set,), list(group)) for task, group in members.items()]


def with_averages(groups: Sequence[TaskGroup]) -> list[TaskGroup]:
    """Return the same after the averages of a language pair's newstests, which Figure 1 and Table 4 show."""
    by_pair: dict[tuple[tuple[str, str], str], list[TaskGroup]] = {}
    for group in groups:
        if published.year_of(group.task.data_set):
            by_pair.setdefault((group.task.language_pair, group.task.signature), []).append(group)
    averages = []
    for (pair, signature), several in by_pair.items():
        names = sorted({group.task.data_set for group in several})
        if len(names) > 1 and len(names) == len(several):
            runs = list({run.name: run for group in several for run in group.runs}.values())
            task = Task(f"average of {names[0]} to {names[-1]}", pair, None, signature)
            averages.append(TaskGroup(task, tuple(names), runs))
    return [*averages, *groups]


def _would_be_of(run: Run, members: dict[Task, list[Run]]) -> list[Task]:
    """Return tasks of runs on the same binarized test set; failing that, the only one of its languages."""
    same_languages = [task for task in members if task.language_pair == run.language_pair]
    hashes = run.data_hashes("test.")
    if hashes:
        same_data = [t for t in same_languages if any(other.data_hashes("test.") == hashes for other in members[t])]
        if same_data:
            return same_data
    return same_languages if len(same_languages) == 1 else []


def _note_differences(members: dict[Task, list[Run]], notices: Notices) -> None:
    alike: dict[str, list[Task]] = {}
    for task in members:
        alike.setdefault(task.title, []).append(task)
    for title, others in alike.items():
        if len(others) < 2:
            continue
        if len({task.reference_sha256 for task in others}) > 1:
            what = "different test sets are called"
            digests = [(task.reference_sha256 or "unknown")[:12] for task in others]
            said = "; ".join(f"{_names(members[t])}: reference {digest}" for t, digest in zip(others, digests))
        else:
            what = "scores were computed in different ways for"
            said = "; ".join(f"{_names(members[task])}: {task.signature}" for task in others)
        notices.warn(f"{what} '{title}' ({said}). They stand in tables of their own and are not compared.")


def _names(runs: Sequence[Run]) -> str:
    scored = [run.name for run in runs if not run.state]
    return ", ".join(scored[:4]) + (f" and {len(scored) - 4} more" if len(scored) > 4 else "")
