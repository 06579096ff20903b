"""The row that starts from a denoiser, among the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion.errors import InputError
from lmfusion.rows import scripts
from lmfusion.rows.train import Asked, check
from lmfusion.text.prepared import TRANSLATION, Prepared


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    for name in ("bitext-all", "lm.en", "lm.de"):
        (tmp_path / name).mkdir()
    return Prepared(tmp_path, "en", "de", TRANSLATION, pairs=9, symbols={"en": 90, "de": 90}, longest=9)


def test_it_needs_a_denoiser_of_both_languages_which_is_trained_before_it(prepared: Prepared) -> None:
    assert "denoising" in scripts.rows()
    assert "denoiser" not in scripts.rows()
    asked = Asked(prepared, ["baseline", "denoising", "src_elmo"], prepared.folder / "runs")
    assert asked.lms() == ["denoiser", "lm"]
    check(asked)
    assert [scripts.run_folder(script, prepared) for script in asked.lms()] == ["denoiser", "lm.en"]


def test_the_pieces_of_a_model_on_one_side_are_refused(prepared: Prepared) -> None:
    values = {**vars(prepared), "tokenizers": {"en": "0" * 64}}
    with pytest.raises(InputError, match="--rows denoising"):
        check(Asked(Prepared(**values), ["denoising"], prepared.folder / "runs"))
