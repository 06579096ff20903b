"""The tables of recipes/sentences come from the logs: test figures at the epoch that the validation sets choose."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

REPORT = runpy.run_path(str(Path(__file__).parents[3] / "recipes" / "sentences" / "report.py"))


def log(folder: Path, epochs: list[tuple[float, dict[str, float]]], done: bool = True) -> None:
    """A training's log: of each epoch the validation average, and measures of the test set."""
    folder.mkdir(parents=True)
    lines = ["some other line"]
    for epoch, (average, test) in enumerate(epochs, start=1):
        entries: list[tuple[str, dict[str, Any]]] = [
            ("valid", {"average": average}),
            ("test", {"average": 0.9, **test}),
        ]
        for name, values in entries:
            shown = {"epoch": epoch, **{f"{name}_{key}": str(value) for key, value in values.items()}}
            lines.append(f"2026 | INFO | {name} | {json.dumps(shown)}")
        lines.append(f"2026 | INFO | train | {json.dumps({'epoch': epoch, 'train_train_wall': '7'})}")
    (folder / "train.log").write_text("\n".join(lines), encoding="utf-8")
    if done:
        (folder / "done").touch()


def three(first: float) -> dict[str, float]:
    return {"section_accuracy": first, "synopsis_accuracy": 0.5, "similarity_r": 0.3}


def test_means_and_spreads_over_seeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sections = {1: 0.4, 2: 0.5, 3: 0.9}
    for seed, section in sections.items():
        log(tmp_path / "multi" / f"seed-{seed}" / "all", [(0.1, three(0.0)), (0.3, three(section)), (0.2, three(1.0))])
        log(tmp_path / "pair" / f"seed-{seed}" / "synopsis", [(0.3, {"synopsis_accuracy": 0.25})])
    words = [str(tmp_path), "--title", "regimes", "--rows", "multi", "pair", "--seeds", "1", "2", "3", "--save"]
    assert REPORT["main"]([*words, str(tmp_path / "t")]) == 0
    lines = capsys.readouterr().out.splitlines()
    spread = stdev(sections.values())
    averages = [mean([value, 0.5, 0.3]) for value in sections.values()]
    wanted = f"| multi | 0.600 ± {spread:.3f} | 0.500 ± 0.000 | 0.300 ± 0.000 | {mean(averages):.3f} ±"
    assert lines[2].startswith(wanted)
    assert lines[3] == "| pair |  | 0.250 ± 0.000 |  |  |"
    saved = [line.split("\t") for line in (tmp_path / "t" / "figures.tsv").read_text(encoding="utf-8").splitlines()]
    assert ["multi", "2", "section_accuracy", "0.5", "2", "21"] in saved


@pytest.mark.parametrize(("row", "message"), [("none", "no training with seed 1"), ("broken", "has not ended")])
def test_a_training_that_is_missing_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], row: str, message: str
) -> None:
    log(tmp_path / "broken" / "seed-1" / "all", [(0.1, three(0.0))], done=False)
    words = [str(tmp_path), "--title", "probing", "--rows", row, "--seeds", "1", "--save", str(tmp_path / "t")]
    assert REPORT["main"](words) == 2
    assert message in capsys.readouterr().err
