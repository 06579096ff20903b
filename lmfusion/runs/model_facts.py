"""What a run's trained model is (size, language models inside, mixing weights), kept in run.json.

Kept, because checkpoints are large and get deleted, and a report is still wanted then.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lmfusion.errors import interruptions_wait
from lmfusion.runs import checkpoints
from lmfusion.runs.run_folder import RunFolder


def record(run: RunFolder) -> None:
    """Write the facts of a run's best checkpoint into run.json; nothing where it has no such checkpoint.

    Raises:
        InputError: the checkpoint is damaged or unsafe.
    """
    found = _inspect(run.checkpoints / checkpoints.BEST)
    if found:
        run.set_model(found)


def read(run: RunFolder) -> dict[str, Any]:
    """Return the facts as run.json has them or, for a run of before they were kept, as its best checkpoint has them.

    Returns:
        lmfusion.inspection.Inspection as a dictionary; empty where neither is there.

    Raises:
        InputError: the checkpoint is damaged or unsafe, or a link to it leads out of the run folder.
    """
    kept: dict[str, Any] = run.record.get("model") or {}
    return kept or _inspect(run.file(f"{run.checkpoints.name}/{checkpoints.BEST}"))


def _inspect(best: Path) -> dict[str, Any]:
    if not best.is_file():
        return {}
    with interruptions_wait():
        from lmfusion.inspection import inspect_checkpoint  # loads torch and fairseq, which most reports need not

    facts = inspect_checkpoint(best).to_dict()
    return {**facts, "path": best.name}
