"""The search of recipes/PROTOCOL.md: which configurations there are, and what is chosen by them."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
from study import __main__ as study_main
from study import search, search_table, step
from study.budget import PROTOCOL
from study.plan import Cell, Plan
from study.results import Results
from study.search import Setting, Tried
from study.task import TASKS

ROWS = Path(__file__).parents[4] / "recipes" / "debian_ende"


def searched(row: str, bits: dict[int, float]) -> list[Setting]:
    """A row's configurations where the losses are those given by number, and 9 for all others."""
    found: list[Tried] = []
    for number in range(1, search.tries(row, 10000) + 1):
        before = found[: search.earlier(row, 10000, number)]
        found.append(Tried(search.configuration(row, 10000, number, before), bits.get(number, 9.0)))
    return [each.setting for each in found]


def test_later_configurations_are_steps_from_the_best_of_the_earlier() -> None:
    found = searched("src_elmo", {3: 2.0, 4: 1.5})
    assert found[:3] == [Setting(d, 0.0, u, 0.003) for u, d in ((4000, 0.2), (4000, 0.3), (8000, 0.3))]
    assert found[3:] == [Setting(0.4, 0.0, 8000, 0.003), Setting(0.4, 0.2, 8000, 0.003)]
    assert searched("baseline", {1: 1.0})[3:] == [
        Setting(0.1, 0.0, 4000, 0.003),
        Setting(0.2, 0.0, 4000, 0.003, bpe=2000),
    ]
    assert len({each.name for each in found}) == 5, "each has a folder of its own"


def test_of_equals_the_earlier_is_best_and_one_that_diverged_never_is() -> None:
    one, other, lost = (Tried(Setting(d, 0.0), b) for d, b in ((0.1, 2.0), (0.2, 2.0), (0.3, math.inf)))
    assert search.best([lost, one, other]) == one
    assert Tried.from_json(lost.to_json()) == lost


@pytest.mark.parametrize(
    ("size", "is_all", "updates", "dropouts"),
    [
        (2500, False, 2000, (0.3, 0.4)),
        (5000, False, 4000, (0.3, 0.4)),
        (20000, False, 4000, (0.3, 0.2)),
        (38573, True, 8000, (0.3, 0.2)),
    ],
)
def test_other_sizes_retune_dropout_alone(size: int, is_all: bool, updates: int, dropouts: tuple[float, ...]) -> None:
    chosen = [Tried(Setting(0.3, 0.2, 4000, 0.0015), 1.0)]
    found = [search.configuration("src_elmo", size, number, chosen, is_all) for number in (1, 2)]
    assert found == [Setting(dropout, 0.2, updates, 0.0015) for dropout in dropouts]
    assert search.tries("src_elmo", size) == 2


def test_every_script_follows_a_searched_row() -> None:
    names = [path.stem for path in ROWS.glob("*.sh") if path.stem not in ("all", "study", "_corpus")]
    assert len(names) > 20
    for name in names:
        others = [name]
        while not search.tries(others[-1], 10000):
            ((other, _),) = search.taken_from(others[-1], 10000)
            others.append(other)
        assert others[-1] in search.SEARCHED
    assert (search.closest("src_elmo_bert"), search.closest("tgt_deep")) == ("src_elmo", "tgt_ft")
    assert (search.closest("lstm_shdemb"), search.closest("lstm_src_elmo_shdemb")) == ("lstm", "lstm_src_elmo")
    assert (search.closest("shared_bitext_bpe"), search.closest("copied")) == ("shared", "baseline")


def test_rows_with_back_translation_follow_the_row_without_it() -> None:
    rows = ("shared_back_translation", "lstm_back_translation", "back_translation_src_elmo_shdemb", "back_translation")
    assert [search.closest(row) for row in rows] == ["shared", "lstm", "src_elmo_shdemb", "baseline"]
    assert search.closest("reverse") == "lstm"
    assert {search.tries(row, 10000) for row in (*rows, "reverse")} == {0}


def test_the_loss_is_that_of_the_best_checkpoint_without_smoothing() -> None:
    losses = [("6.0", "4.5"), ("5.0", "4.0"), ("5.5", "3.9"), ("nan", "nan")]
    lines = [{"valid_loss": loss, "valid_nll_loss": nll} for loss, nll in losses]
    log = "\n".join(f"2030-01-31 | INFO | valid | {json.dumps(line)}" for line in lines)
    assert search.nll_of_best(f"noise\n{log}\n") == 4.0
    assert search.nll_of_best("noise\n") == math.inf


def test_a_try_is_not_scored_and_its_loss_is_over_the_characters_of_the_validation_references(workplace: Any) -> None:
    workplace.set_losses({"baseline 4000 0.2 0.0": 2.0})
    plan = Plan(Path("out"), TASKS["debian_ende"], PROTOCOL, ("baseline",), Results(None))
    step.prepare(plan, 10000)
    tried = step.try_one(plan, Cell("baseline", 10000), 1)
    # 2 bits for each of 9 symbols (3 sentences of two words and an end), over 3 references of 8 characters
    assert tried == Tried(Setting(0.2, 0.0, 4000, 0.003), 2 * 9 / 24)
    assert workplace.calls() == ["10000 baseline 1 4000 0.2 0.0 0.003 1"], "TRAIN_ONLY=1"


def test_the_report_shows_what_was_tried_and_marks_what_was_chosen() -> None:
    four, eight = Setting(0.2, 0.0, 4000, 0.003), Setting(0.3, 0.2, 8000, 0.003, bpe=2000)
    tried = {
        ("shared", 10000, 1): Tried(four, 1.25),
        ("shared", 10000, 2): Tried(eight, 1.125),
        ("lstm", 10000, 1): Tried(four, math.inf),
        ("shared", 2500, 1): Tried(four, 3.0),
    }
    text = search_table.sections(tried, {("shared", 10000): tried["shared", 10000, 2]})
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    assert rows[0] == ["row", "1", "2"]
    assert rows[1] == ["shared", "3.000<br>4,000, 0.2", ""]
    assert rows[3] == ["lstm", "diverged<br>4,000, 0.2", "", "", "", ""]
    assert rows[4][:3] == ["shared", "1.250<br>4,000, 0.2", "**1.125**<br>8,000, 0.3, representation 0.2, BPE 2,000"]
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "## Search, 2,500 pairs",
        "## Search, 10,000 pairs",
    ]
    assert search_table.sections({}, {}) == ""


def test_a_report_of_a_search_alone_is_a_page_of_its_own(workplace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, bits in ((1, 2.0), (2, 1.5)):
        mark = Path(f"out/done/bitext-10000/seed-1/shared/try-{number}")
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.write_text(Tried(Setting(0.1 * number, 0.0, 4000, 0.003), bits).to_json(), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", "study debian_ende --budget protocol --out out --report-only".split())
    for _ in range(2):
        assert study_main.main() == 0
        page = Path("out/report/report.md").read_text(encoding="utf-8")
        assert page.count("## Search, 10,000 pairs") == 1
        assert "| shared | 2.000<br>4,000, 0.1 | 1.500<br>4,000, 0.2 |" in page
