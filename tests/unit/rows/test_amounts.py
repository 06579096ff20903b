"""Numbers by the amount of text, at the borders of the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion.rows import amounts
from lmfusion.text.prepared import SUMMARIZATION, TRANSLATION, Prepared


@pytest.mark.parametrize(
    ("pairs", "updates"),
    [(2_500, 2_000), (2_501, 3_000), (200_000, 20_000), (1_000_000, 50_000), (1_000_001, 100_000)],
)
def test_a_row_of_the_table_holds_for_its_most_pairs_too(pairs: int, updates: int) -> None:
    assert amounts.amount(pairs).updates == updates


@pytest.mark.parametrize(
    ("kind", "pairs", "tokenizers", "second"),
    [
        (TRANSLATION, 20_000, {}, "lstm"),
        (TRANSLATION, 20_001, {}, "src_elmo_shdemb"),
        (TRANSLATION, 20_000, {"en": "0" * 64}, "src_elmo_shdemb"),
        (SUMMARIZATION, 20_000, {}, "denoising"),
        (SUMMARIZATION, 20_001, {}, "src_elmo_shdemb"),
        (SUMMARIZATION, 20_000, {"en": "0" * 64}, "src_elmo_shdemb"),
    ],
)
def test_lstms_are_for_few_translations_and_denoisers_for_few_summaries(
    tmp_path: Path, kind: str, pairs: int, tokenizers: dict[str, str], second: str
) -> None:
    rows = amounts.rows(Prepared(tmp_path, "en", "fr", kind, pairs=pairs, tokenizers=tokenizers)).split(",")
    assert rows[:2] == ["baseline", second]


@pytest.mark.parametrize(("pairs", "lines"), [(50_000, "100000"), (150_000, "200000")])
def test_two_lines_a_pair_are_back_translated_and_not_more_than_200_000(tmp_path: Path, pairs: int, lines: str) -> None:
    assert amounts.numbers(Prepared(tmp_path, "en", "fr", TRANSLATION, pairs=pairs))["MADE_UP"] == lines
