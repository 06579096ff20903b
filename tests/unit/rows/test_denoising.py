"""The rows that start from a denoiser, among the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion.errors import InputError
from lmfusion.rows import scripts
from lmfusion.rows.asked import Asked, check
from lmfusion.text.prepared import TRANSLATION, Prepared


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    for name in ("bitext-all", "lm.en", "lm.de"):
        (tmp_path / name).mkdir()
    return Prepared(tmp_path, "en", "de", TRANSLATION, pairs=9, symbols={"en": 90, "de": 90}, longest=9)


@pytest.mark.parametrize(("row", "denoiser"), scripts.DENOISERS.items())
def test_it_needs_a_denoiser_of_both_languages_which_is_trained_before_it(
    row: str, denoiser: str, prepared: Prepared
) -> None:
    assert row in scripts.rows()
    assert denoiser not in scripts.rows()
    asked = Asked(prepared, ["baseline", row, "src_elmo"], prepared.folder / "runs")
    assert sorted(asked.lms()) == sorted([denoiser, "lm"])
    check(asked)
    assert {scripts.run_folder(script, prepared) for script in asked.lms()} == {denoiser, "lm.en"}


@pytest.mark.parametrize("row", scripts.DENOISERS)
def test_the_pieces_of_a_model_on_one_side_are_refused(row: str, prepared: Prepared) -> None:
    values = {**vars(prepared), "tokenizers": {"en": "0" * 64}}
    with pytest.raises(InputError, match=f"--rows {row}"):
        check(Asked(Prepared(**values), [row], prepared.folder / "runs"))
