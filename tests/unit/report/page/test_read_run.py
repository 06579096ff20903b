"""Run folders in every bad state become runs that say so; nothing raises, nothing is made up."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from lmfusion.errors import InputError
from lmfusion.report.page.find import Found, find_runs
from lmfusion.report.page.notices import BAD_INPUT, Notices
from lmfusion.report.page.read_run import read_run
from lmfusion.report.page.runs import Run


def read(path: Path) -> tuple[Run, list[str]]:
    """A run, and what is wrong with its folder."""
    notices = Notices()
    run = read_run(Found(path, path.name), notices)
    return run, [notice.text for notice in notices.of_kind(BAD_INPUT)]


def test_a_whole_run_is_read_without_complaint(maker) -> None:
    run, wrong = read(maker.run("run", "src_elmo", bleu=12.5, size=5000, seed=3, losses=(4.0, 3.0)))
    assert wrong == []
    assert (run.broken, run.state, run.lost_loss) == ("", "", "")
    assert (run.strategy, run.pairs, run.seed, run.loaded_pairs) == ("SRC-ELMO", 5000, 3, 4999)
    assert run.language_pair == ("en", "de")
    assert sorted(run.log.validation) == [10, 20]
    assert run.result("train")["best_valid_perplexity"] == 8.0


def test_without_a_number_in_the_data_folders_name_the_log_tells_the_size(maker) -> None:
    path = maker.run("run", bleu=1.0, size=5000)
    (path / "run.json").write_text((path / "run.json").read_text().replace("bitext-5000", "bitext-all"))
    assert read(path)[0].pairs == 4999


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"name": "run", "steps": {"train": {"sta', "is not JSON"),
        ("[1, 2]", "holds no JSON object"),
        ("{}", "no run.json"),
        ('{"name": "run"}', "has no steps"),
        ('{"name": "run", "steps": {}}', "has no steps"),
        ('{"steps": {"train": {"command": ["x"]}}}', "neither state nor command of its step 'train'"),
        ('{"steps": {"train": {"state": "finished", "command": ["x"], "seconds": 1}}}', "has no result of it"),
        ('{"seed": "x", "steps": {"train": {}}}', "seed is 'x'"),
        ('{"steps": {"train": {"result": {"tokens_per_second": "fast"}}}}', "tokens_per_second is 'fast'"),
        ('{"steps": {}, "model": {"mixes": [{"side": "source"}]}}', "shares is 'None'"),
    ],
)
def test_a_half_written_record_makes_the_run_unreadable_and_says_which_file(maker, content: str, said: str) -> None:
    path = maker.run("run", bleu=12.0)
    (path / "run.json").write_text(content)
    run, (wrong,) = read(path)
    assert said in wrong
    assert str(path) in wrong
    assert run.broken == wrong
    assert run.scores == {}


def test_a_log_without_a_record_is_a_run_folder_that_cannot_be_read(maker) -> None:
    path = maker.run("run", bleu=12.0)
    (path / "run.json").unlink()
    notices = Notices()
    assert [found.path for found in find_runs([str(path)], notices)] == [path]
    assert "there is a log, but no run.json" in read(path)[0].broken


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"bleu": 12.0},
        {"bleu": math.nan, "chrf": 1.0},
        {"rouge1": {"f1": {}}},
        {"rouge1": {"f1": {"mean": math.nan}}},
        "12.0",
    ],
)
def test_half_written_scores_and_scores_that_are_no_numbers_are_left_out(maker, entry: object) -> None:
    path = maker.run("run", bleu=12.0)
    (path / "scores.json").write_text(json.dumps({"test": entry, "other": maker.bleu(3.0)}))
    run, wrong = read(path)
    assert "the scores of 'test' in" in wrong[0]
    assert "Score the run again" in wrong[0]
    assert list(run.scores) == ["other"]


def test_a_truncated_score_file_leaves_the_run_unscored(maker) -> None:
    path = maker.run("run", bleu=12.0)
    (path / "scores.json").write_text('{"test": {"bleu": 12.')
    run, (wrong,) = read(path)
    assert "scores.json: is not JSON" in wrong
    assert run.state == "not scored"


def test_a_missing_or_empty_log_is_noted_and_the_scores_stay(maker) -> None:
    path = maker.run("run", bleu=12.0)
    (path / "train.log").write_text("nothing of use\n")
    run, (wrong,) = read(path)
    assert "has no figures, though its training finished" in wrong
    assert run.state == ""
    (path / "train.log").unlink()
    run, (wrong,) = read(path)
    assert "train.log is missing" in wrong
    assert run.scores


def test_output_that_is_missing_or_of_another_length_than_was_scored_is_noted(maker) -> None:
    path = maker.run("run", bleu=12.0)
    (path / "test.hyp").write_text("one line\n")
    assert "has 1 lines, but the score is of 3 sentences" in read(path)[1][0]
    (path / "test.hyp").unlink()
    assert "test.hyp is missing" in read(path)[1][0]


def test_a_damaged_checkpoint_is_noted_and_the_rest_is_read(maker) -> None:
    path = maker.run("run", bleu=12.0)
    (path / "checkpoints").mkdir()
    (path / "checkpoints" / "checkpoint_best.pt").write_bytes(b"cut off")
    run, (wrong,) = read(path)
    assert "checkpoint_best.pt" in wrong
    assert run.model == {}
    assert run.scores


def test_the_last_words_of_a_failed_run_are_kept(maker) -> None:
    path = maker.run("run")
    record = json.loads((path / "run.json").read_text())
    record["steps"]["generate"].update(state="failed", reason="    RuntimeError: out of memory\n    more")
    (path / "run.json").write_text(json.dumps(record))
    run, wrong = read(path)
    assert (run.state, run.reason, wrong) == ("generation failed", "RuntimeError: out of memory\nmore", [])


def test_a_language_model_needs_no_score(maker) -> None:
    path = maker.run("lm", generate=False)
    (path / "run.json").write_text((path / "run.json").read_text().replace('"translation"', '"language_modeling"'))
    run, wrong = read(path)
    assert (run.is_language_model, run.state, wrong) == (True, "", [])


def test_a_folder_of_run_folders_stands_for_these_under_their_shortest_different_names(maker) -> None:
    paths = [maker.run(f"{size}/{name}", bleu=1.0, size=size) for size in (100, 200) for name in ("a", "b")]
    (maker.folder / "100" / "data" / "text").mkdir(parents=True)
    found = find_runs([str(maker.folder)], Notices())
    assert [(each.path, each.name) for each in found] == list(zip(paths, ["100/a", "100/b", "200/a", "200/b"]))
    assert [each.name for each in find_runs([str(paths[0]), str(paths[1])], Notices())] == ["a", "b"]
    assert len(find_runs([str(paths[0]), str(maker.folder)], Notices())) == 4, "none twice"


def test_run_folders_are_found_at_any_depth_and_a_link_upwards_ends(maker) -> None:
    maker.run("results/cpu/bitext-100/row/seed-1", bleu=1.0)
    (maker.folder / "results" / "again").symlink_to(maker.folder, target_is_directory=True)
    (found,) = find_runs([str(maker.folder)], Notices())
    assert found.name == "seed-1"


@pytest.mark.parametrize(
    ("name", "said"),
    [("nowhere", "there is no such folder"), ("a-file", "is a file, not a run folder"), ("empty", "no run folder")],
)
def test_what_is_no_run_folder_is_named(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "a-file").write_text("")
    (tmp_path / "empty").mkdir()
    notices = Notices()
    assert find_runs([str(tmp_path / name)], notices) == []
    (notice,) = notices.of_kind(BAD_INPUT)
    assert said in notice.text
    assert str(tmp_path / name) in notice.text


def test_a_row_without_a_folder_is_an_error() -> None:
    with pytest.raises(InputError, match="ROW=FOLDER with both parts"):
        find_runs(["row="], Notices())
