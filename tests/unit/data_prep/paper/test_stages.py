"""Stages: skipped when done, told in a dry run, refused without the disk space or with other settings."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from paper_corpora import cnn_dm, fetch, newscrawl, sources, stages, wmt18_ende, wmt18_entr
from paper_corpora.workspace import SCALES, SUBSET_NAMES, Workspace

from lmfusion.text import textio


def make_stage(workspace: Workspace, name: str, made: list[str]) -> stages.Stage:
    """A stage that writes one file and notes that it ran."""
    path = workspace.folder("corpus") / name

    def make() -> stages.Outcome:
        made.append(name)
        path.write_text("x", encoding="utf-8")
        return stages.Outcome("made", {"lines": 1})

    return stages.Stage("corpus", name, (path,), make, disk=10)


def test_what_is_done_is_not_done_again(
    workspace: Callable[..., Workspace], capsys: pytest.CaptureFixture[str]
) -> None:
    here, made = workspace(), []
    plan = [make_stage(here, name, made) for name in ("a", "b")]
    stages.run(here, plan[:1])
    stages.run(here, plan)
    assert made == ["a", "b"]
    capsys.readouterr()
    stages.run(here, plan)
    assert made == ["a", "b"]
    assert capsys.readouterr().out == f"{here.data}: everything is there (2 stages)\n"


def test_too_little_disk_space_is_refused_before_anything_is_done(
    workspace: Callable[..., Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, made = workspace(), []
    monkeypatch.setattr(fetch, "free_space", lambda folder: 3_000_000_000)
    big = dataclasses.replace(make_stage(here, "a", made), disk=5_000_000_000)
    with pytest.raises(textio.DataError, match=r"3\.0 GB free, but about 5\.0 GB needed\. Free some space"):
        stages.run(here, [big])
    assert made == []


@pytest.mark.parametrize("corpus", ["newscrawl", "wmt18_ende", "cnn_dm"])
def test_the_scripts_say_what_the_plan_needs(corpus: str, tmp_path: Path) -> None:
    """The gigabytes of the header against those of the full scale, all sources missing."""
    here = Workspace(tmp_path / "data", SCALES["full"], sources.read_table(sources.TABLE))
    plans = {
        "newscrawl": [newscrawl.stages(here, lang) for lang in ("en", "de")],
        "wmt18_ende": [wmt18_ende.stages(here, list(SUBSET_NAMES), list(SUBSET_NAMES))],
        "cnn_dm": [cnn_dm.stages(here)],
    }
    script = Path(stages.__file__).parents[1] / f"{corpus}.sh"
    said = [int(number) for number in re.findall(r"(\d+) GB", script.read_text("utf-8"))]
    assert said == [pytest.approx(stages.disk_need(here, plan) / 1e9, rel=0.05) for plan in plans[corpus]]


def test_other_settings_in_the_same_folder_are_refused(workspace: Callable[..., Workspace]) -> None:
    here, made = workspace(), []
    stages.run(here, [make_stage(here, "a", made)])
    for change, name in (({"seed": 2}, "seed"), ({"scale": SCALES["full"]}, "scale")):
        other = dataclasses.replace(here, **change)
        with pytest.raises(textio.DataError, match=rf"was prepared with {name} = .* Choose another --out"):
            stages.run(other, [make_stage(other, "b", made)])
    assert made == ["a"]


def test_a_damaged_record_of_counts_is_named_and_can_be_deleted(workspace: Callable[..., Workspace]) -> None:
    here, made = workspace(), []
    plan = [make_stage(here, "a", made)]
    stages.run(here, plan)
    record = here.folder("corpus") / "prepare.json"
    record.write_text("{", encoding="utf-8")
    with pytest.raises(textio.DataError, match=r"corpus/prepare\.json: is damaged .*Delete it"):
        stages.run(here, plan)
    record.unlink()
    stages.run(here, plan)
    assert made == ["a"]


def test_a_failed_stage_leaves_the_finished_ones(workspace: Callable[..., Workspace]) -> None:
    here, made = workspace(), []

    def fail() -> stages.Outcome:
        raise textio.DataError("no")

    good, bad = make_stage(here, "a", made), dataclasses.replace(make_stage(here, "b", made), make=fail)
    with pytest.raises(textio.DataError, match="no"):
        stages.run(here, [good, bad])
    assert good.done()
    stages.run(here, [good, make_stage(here, "b", made)])
    assert made == ["a", "b"]


def test_a_dry_run_tells_everything_and_writes_nothing(
    workspace: Callable[..., Workspace], capsys: pytest.CaptureFixture[str]
) -> None:
    here = workspace()
    plan = wmt18_ende.stages(here, list(SUBSET_NAMES), ["160K"])
    stages.tell(here, plan)
    said = capsys.readouterr().out
    assert not here.data.exists()
    assert all(f"{stage.title}: to do" in said for stage in plan)
    assert all(here.source(name).url in said for name in wmt18_ende.ENDE.bitext)
    assert f"make  {here.data}/wmt18_ende/bitext-5186K" in said


def test_each_file_is_made_by_one_stage_after_those_it_needs(workspace: Callable[..., Workspace]) -> None:
    here = workspace()
    for plan in (wmt18_ende.stages(here, list(SUBSET_NAMES), list(SUBSET_NAMES)), wmt18_entr.stages(here)):
        outputs: list[Path] = [path for stage in plan for path in stage.outputs]
        assert len(outputs) == len(set(outputs))
        names = [stage.title for stage in plan]
        assert names.index("newscrawl/tok.en") < names.index("wmt18_ende/spm.model") < names.index(names[-1])
