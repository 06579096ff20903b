"""Defaults of a model's flags that the task's flags of the same name give."""

from __future__ import annotations

from typing import Any


def task_value(name: str, otherwise: int | None = None) -> Any:
    """Return a default that OmegaConf resolves to the task's value.

    Unlike ``II("task.…")`` it is no error of OmegaConf's where the task has no such flag, so that a model can refuse
    the task in its own words.

    Args:
        name: the task's flag.
        otherwise: the value where the task has none.
    """
    return f"${{oc.select:task.{name},{'null' if otherwise is None else otherwise}}}"
