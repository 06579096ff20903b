"""The corpus as a study reads it."""

from __future__ import annotations

import json
import lzma
import re
import sys
from pathlib import Path

import pytest
from study import layout, step
from study.budget import CPU_OTHERS, OTHERS, PROTOCOL
from study.plan import Cell, Plan
from study.results import SYNTHETIC, Results
from study.search import Setting
from study.task import AFTER, DECODED_ONLY, TASKS, read_lines

from lmfusion.errors import InputError
from lmfusion.rows.scripts import REVERSE, is_back_translated

sys.path.insert(0, str(Path(__file__).parents[4] / "data-prep"))
from lmfusion.text import corpus

RECIPES = Path(__file__).parents[4] / "recipes"
TEXT = "Das\u00a0ist  gut.\r\n\tZwei\u2028W\u00f6rter \n\nDrei.\n"


@pytest.mark.parametrize("packed", [False, True])
def test_it_reads_the_lines_that_data_prep_makes(tmp_path: Path, packed: bool) -> None:
    """Runs are scored against data-prep's text; the report finds them by the text they were scored against."""
    file = tmp_path / ("test.de.xz" if packed else "test.de")
    file.write_bytes(lzma.compress(TEXT.encode()) if packed else TEXT.encode())
    lines = read_lines(tmp_path, "test.de")
    assert lines == ["Das ist gut.", "Zwei W\u00f6rter", "", "Drei."]
    assert corpus.unpack(file, tmp_path / "clean") == 4
    assert (tmp_path / "clean").read_text(encoding="utf-8") == "".join(f"{line}\n" for line in lines)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"test\.de: no such file, nor test\.de\.xz\. Set CORPUS"):
        read_lines(tmp_path, "test.de")


def test_a_row_that_only_decodes_is_done_when_the_model_it_decodes_with_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its script, told to train only, leaves no run folder of its own."""
    texts = {row: (RECIPES / "debian_ende" / f"{row}.sh").read_text(encoding="utf-8") for row in OTHERS}
    assert {row for row, text in texts.items() if not re.search(r"(?m)^row\b", text)} == set(DECODED_ONLY)
    plan = Plan(tmp_path, TASKS["debian_ende"], CPU_OTHERS, OTHERS, Results(None))
    monkeypatch.setattr(step, "script", lambda words, settings: None)
    for row in DECODED_ONLY:
        assert set(AFTER[row]) == {"baseline"}
        step.row(plan, Cell(row, 10000), Setting(0.2, 0.0), train_only=True)
        with pytest.raises(InputError, match="left no score"):
            step.row(plan, Cell(row, 10000), Setting(0.2, 0.0), train_only=False)
    with pytest.raises(InputError, match="left no training"):
        step.row(plan, Cell("baseline", 10000), Setting(0.2, 0.0), train_only=True)


def test_a_row_waits_for_the_language_model_that_its_script_would_pretrain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes at a time cannot train it in one folder."""
    monkeypatch.delenv("EARLIER", raising=False)
    plan = Plan(tmp_path, TASKS["debian_ende"], CPU_OTHERS, OTHERS, Results(None))
    for row in OTHERS:
        text = (RECIPES / "debian_ende" / f"{row}.sh").read_text(encoding="utf-8")
        kinds = re.findall(r"(?m)^earlier_lm (\w+)$", text)
        marks = [str(tmp_path / "done" / f"language-model-earlier-{kind}") for kind in kinds]
        assert plan.language_models(row) == marks, row
        folder = layout.row_settings(plan, Cell(row, 10000), Setting(0.2, 0.0), True).get("EARLIER")
        assert folder == (str(tmp_path / "earlier") if kinds else None)


def test_a_row_that_trains_another_rows_model_first_waits_for_that_row(tmp_path: Path) -> None:
    """Two processes at a time cannot train it in one folder."""
    texts = {row: (RECIPES / "debian_ende" / f"{row}.sh").read_text(encoding="utf-8") for row in OTHERS}
    trains = {
        "src_elmo_bert": re.compile(r"^bert_lm\b", re.MULTILINE),
        "baseline": re.compile(r"^(second_stage|shallow_row|train_seq2seq baseline)\b", re.MULTILINE),
        "src_elmo_shdemb": re.compile(r"^train_seq2seq src_elmo_shdemb\b", re.MULTILINE),
        "back_translation": re.compile(r"^back_translated\b", re.MULTILINE),
    }
    plan = Plan(tmp_path, TASKS["debian_ende"], CPU_OTHERS, OTHERS, Results(None))
    for other, is_trained in trains.items():
        mark = plan.mark("train", Cell(other, 10000, 2))
        waiting = {row for row in OTHERS if mark in plan.before_training(row, 10000, 2)}
        assert waiting == {row for row, text in texts.items() if is_trained.search(text)} - {other} != set()


def test_where_settings_are_searched_all_back_translation_reads_what_one_model_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows of a comparison learn from the same made-up pairs, and later seeds from those that are committed."""
    rows = [row for row in PROTOCOL.rows if is_back_translated(row)]
    plan = Plan(tmp_path / "out", TASKS["debian_ende"], PROTOCOL, PROTOCOL.rows, Results(tmp_path / "results"), True)
    waits = plan.mark("train", Cell(REVERSE, 10000, 1))
    reverse = Setting(0.3, 0.0, 8000, 0.003, bpe=2000)
    monkeypatch.setattr(Plan, "setting", lambda self, cell: reverse)
    made = layout.run_folder(plan, plan.reverse(10000), reverse)
    assert len(rows) == 3
    for row in PROTOCOL.rows:
        for seed in (1, 2):
            assert (waits in plan.before_training(row, 10000, seed)) is (row in rows)
            told = layout.row_settings(plan, Cell(row, 10000, seed), Setting(0.2, 0.0), train_only=True)
            assert told.get("SYNTHETIC") == (str(made.file(SYNTHETIC)) if row in rows else None)
            assert told.get("SRC_LM_CACHE", "").endswith("-back-translated") is (row.startswith("back_translation_src"))

    made.path.mkdir(parents=True)
    made.file("run.json").write_text(f'{{"folder": "{plan.out.resolve()}/x"}}', encoding="utf-8")
    plan.results.add_synthetic(10000, made, plan.out)
    assert plan.results.synthetic(10000) is None, "it has translated nothing yet"
    made.file(SYNTHETIC).write_bytes(lzma.compress(b"a house\n"))
    plan.results.add_synthetic(10000, made, plan.out)
    committed = tmp_path / "results" / "bitext-10000" / "reverse"
    assert json.loads((committed / "run.json").read_text(encoding="utf-8")) == {"folder": "OUT/x"}
    assert lzma.decompress((committed / SYNTHETIC).read_bytes()) == b"a house\n"
    for row in rows:
        assert waits not in plan.before_training(row, 10000, 2)
        told = layout.row_settings(plan, Cell(row, 10000, 2), Setting(0.2, 0.0), train_only=True)
        assert told["SYNTHETIC"] == str(committed / SYNTHETIC)
        other_size = plan.mark("train", Cell(REVERSE, 2500, 1))
        assert other_size in plan.before_training(row, 2500, 2), "it has a model of its own"


def test_a_rows_script_is_told_its_cell_and_what_was_chosen_for_it(tmp_path: Path) -> None:
    """The budget has 2,000 updates, a dropout of 0.2 and a rate of 0.001 for this size, and the search has seed 1."""
    plan = Plan(tmp_path, TASKS["debian_ende"], PROTOCOL, PROTOCOL.rows, Results(None))
    told = layout.row_settings(plan, Cell("src_ft", 2500, 3), Setting(0.3, 0.2, 8000, 0.0015), train_only=False)
    expected = {"BITEXT_LINES": "2500", "SEED": "3", "S2S_UPDATES": "8000", "S2S_LR": "0.0015", "S2S_DROPOUT": "0.3"}
    expected.update(ELMO_DROPOUT="0.2", FT_DROPOUT="0.2")
    assert {name: told.get(name) for name in expected} == expected
    assert "TRAIN_ONLY" not in told


def test_the_first_studys_back_translation_has_a_model_of_its_own(tmp_path: Path) -> None:
    """Its committed figures come from the baseline of the other direction."""
    plan = Plan(tmp_path, TASKS["debian_ende"], CPU_OTHERS, OTHERS, Results(None))
    told = layout.row_settings(plan, Cell("back_translation", 10000), Setting(0.2, 0.0), train_only=True)
    assert "SYNTHETIC" not in told
