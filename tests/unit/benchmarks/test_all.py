"""All benchmarks into one folder, and the pages made from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Module = Callable[[str], Any]


def result(command: list[str]) -> str:
    """What a benchmark writes."""
    table = {"title": "Training", "columns": ["", "time / baseline"], "rows": [["SRC-ELMO", "1.53×"]]}
    return json.dumps({"command": command, "machine": {"cpu": "a CPU", "gpu": None}, "tables": [table]})


def test_a_page_gets_the_tables_of_the_json(module: Module, tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "training.json").write_text(result(["training", "--tokens", "720"]), encoding="utf-8")
    page = tmp_path / "RESULTS.md"
    page.write_text(
        "Before\n<!-- table cpu/training.json -->\nold\n<!-- end -->\nBetween\n"
        "<!-- table gpu/training.json -->\nas it was\n<!-- end -->\n",
        encoding="utf-8",
    )
    for _ in range(2):  # filling in again changes nothing
        module("render").main([str(tmp_path), "--into", str(page)])
    text = page.read_text(encoding="utf-8")
    assert "| SRC-ELMO | 1.53× |" in text
    assert "`lmfusion bench training --tokens 720`" in text
    assert text.count("cpu a CPU") == 1
    assert "old" not in text
    assert "as it was" in text, "what was not measured stays"


def test_a_table_without_an_end_is_refused_and_the_page_stays(module: Module, tmp_path: Path) -> None:
    (tmp_path / "training.json").write_text(result(["training"]), encoding="utf-8")
    page = tmp_path / "RESULTS.md"
    for rest in ("By hand.\n", "By hand.\n<!-- table other.json -->\n<!-- end -->\n"):
        page.write_text("<!-- table training.json -->\n" + rest, encoding="utf-8")
        with pytest.raises(SystemExit, match=r"error: the table training\.json has no line `<!-- end -->`"):
            module("render").main([str(tmp_path), "--into", str(page)])
        assert page.read_text(encoding="utf-8").endswith(rest)


def test_an_empty_folder_is_refused(module: Module, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        module("render").main([str(tmp_path)])
    assert "has no JSON of a benchmark in it" in capsys.readouterr().err


def test_every_plan_names_benchmarks_and_options_there_are(
    module: Module, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nobody has a GPU for each change: at least its plan's options are parsed."""
    options, plan = module("options"), module("plan")

    class Parsed(Exception):  # noqa: N818  no error
        pass

    original = options.parse

    def parse(*arguments: Any) -> Any:
        original(*arguments)
        raise Parsed

    for run in (*plan.CPU, *plan.GPU, *plan.REHEARSAL):
        script = module(run.benchmark)
        monkeypatch.setattr(script, "parse", parse)
        with pytest.raises(Parsed):
            script.main([*run.options, "--json", str(tmp_path / "x.json")])


def test_what_is_there_is_not_measured_again(
    module: Module, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of two is there; the other fails once, and the folder's tables are written all the same."""
    everything = module("all")
    options = next(run.options for run in module("plan").REHEARSAL if run.name == "limits")
    (tmp_path / "limits.json").write_text(result(["limits", *options]), encoding="utf-8")
    started = []

    class Done:
        returncode = 1

    def run(command: list[str], **_: Any) -> Done:
        started.append(Path(command[1]).stem)
        return Done()

    monkeypatch.setattr(everything.subprocess, "run", run)
    arguments = ["--out", str(tmp_path), "--rehearse", "--only", "limits", "rouge_speed"]
    with pytest.raises(SystemExit, match=r"these failed.*: rouge_speed"):
        everything.main(arguments)
    assert started == ["rouge_speed"]
    error = capsys.readouterr().err
    assert "[1/1] rouge_speed: about" in error
    assert "min left in all" in error
    assert "| SRC-ELMO | 1.53× |" in (tmp_path / "tables.md").read_text(encoding="utf-8")


def test_figures_of_a_rehearsal_do_not_pass_for_a_measurement(module: Module, tmp_path: Path) -> None:
    options = next(run.options for run in module("plan").REHEARSAL if run.name == "limits")
    (tmp_path / "limits.json").write_text(result(["limits", *options]), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"limits\.json holds the figures of another run .*choose another --out"):
        module("all").main(["--out", str(tmp_path), "--only", "limits"])


@pytest.mark.slow
def test_the_rehearsal_runs_every_benchmark(module: Module, tmp_path: Path) -> None:
    module("all").main(["--out", str(tmp_path), "--rehearse", "--threads", "1"])
    names = {run.name for run in module("plan").REHEARSAL}
    assert {path.stem for path in tmp_path.glob("*.json")} == names
    assert list(tmp_path.glob("growth_*.svg"))
    text = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert all(f"## {name}" in text for name in names)
