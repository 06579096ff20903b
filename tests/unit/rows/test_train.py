"""What ``lmfusion train`` does around the scripts: one command a folder, and a report of all that is in it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from lmfusion.errors import InputError
from lmfusion.rows import scripts, train
from lmfusion.rows.asked import Asked
from lmfusion.runs.run_folder import RunFolder
from lmfusion.text.prepared import Prepared


@pytest.fixture
def asked(data: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """A command whose scripts are done at once."""
    for name in ("bitext-all", "lm.en", "lm.fr"):
        (data.folder / name).mkdir()
    monkeypatch.setattr(train, "_run", lambda asked, names, *rest, **more: [])
    return Asked(data, ["baseline"], tmp_path / "runs")


def test_a_second_command_in_the_folder_is_refused_while_the_first_is_at_work(asked: Asked) -> None:
    first = RunFolder(asked.out)
    first.lock()
    with pytest.raises(InputError, match="still at work"):
        train.train(asked)
    assert not list(asked.out.glob("*.json"))
    del first
    assert train.train(asked) == []


@pytest.mark.parametrize("lms", [["lm.en"], []])
def test_the_report_has_the_rows_of_earlier_commands_and_those_language_models_that_are_there(
    lms: list[str], asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []

    def run(words: list[str], check: bool) -> SimpleNamespace:
        reported.extend(Path(word).name for word in words[words.index("report") + 1 : words.index("--out")])
        return SimpleNamespace(returncode=0)

    for row in ("baseline", "src_elmo", *lms):
        (asked.out / row).mkdir(parents=True)
        (asked.out / row / "scores.json").write_text("{}", encoding="utf-8")
    (asked.out / "shared").mkdir()  # not scored yet
    monkeypatch.setattr("lmfusion.rows.train.subprocess.run", run)
    train.train(asked)
    assert reported == ["baseline", "src_elmo", *lms]


@pytest.mark.parametrize(("given", "meant"), [("lstn", "lstm"), ("LSTM", "lstm"), ("src-elmo", "src_elmo")])
def test_a_row_that_is_misspelled_is_told_with_the_nearest(given: str, meant: str) -> None:
    with pytest.raises(InputError, match=rf"--rows {given}: .* mean {meant}\?"):
        scripts.check_rows([given])
