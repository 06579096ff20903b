"""The rows with back-translation, among the others."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmfusion.errors import InputError
from lmfusion.rows import plan, scripts
from lmfusion.rows.asked import Asked, check
from lmfusion.text.prepared import SUMMARIZATION, TRANSLATION, Prepared

ROWS = {"back_translation": [], "lstm_back_translation": [], "back_translation_src_elmo_shdemb": ["lm"]}


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    for name in ("bitext-all", "lm.en", "lm.de"):
        (tmp_path / name).mkdir()
    return Prepared(tmp_path, "en", "de", TRANSLATION, pairs=9, symbols={"en": 90, "de": 90}, longest=9)


@pytest.mark.parametrize(("row", "lms"), ROWS.items())
def test_it_needs_the_other_direction_which_is_trained_before_it(row: str, lms: list[str], prepared: Prepared) -> None:
    assert row in scripts.rows()
    assert "reverse" not in scripts.rows()
    asked = Asked(prepared, ["baseline", row], prepared.folder / "runs")
    assert asked.lms() == sorted(["reverse", *lms])
    check(asked)


def test_the_minutes_that_are_asked_for_leave_time_to_translate(prepared: Prepared) -> None:
    (prepared.folder / "data.json").write_text("{}", encoding="utf-8")
    wanted = plan.new(replace(prepared, pairs=20_000, symbols={"en": 4_000_000, "de": 4_000_000}), 1, {}, {})
    seconds = {"lm": 0.2, "reverse": 3.0, "lstm_back_translation": 4.0}
    with pytest.raises(InputError) as refused:
        plan.within(wanted, 1, 0, seconds, 1)
    (minutes,) = re.findall(r"(\d+) minutes at least", str(refused.value))
    found = plan.within(wanted, int(minutes), 0, seconds, 1).numbers
    assert int(found["S2S_UPDATES"]) >= plan.LEAST
    assert int(found["MADE_UP"]) > 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tokenizers": {"en": "0" * 64}}, "one BPE"),
        ({"kind": SUMMARIZATION}, "translation"),
        ({"symbols": {"en": 90}}, "plain text of de"),
    ],
)
@pytest.mark.parametrize("row", ROWS)
def test_it_is_refused_without_plain_text_or_a_way_back(
    row: str, change: dict[str, Any], said: str, prepared: Prepared
) -> None:
    with pytest.raises(InputError, match=f"--rows {row}: .*{said}"):
        check(Asked(Prepared(**{**vars(prepared), **change}), [row], prepared.folder / "runs"))
