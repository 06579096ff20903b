"""The environment that a row's script is started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion.rows import scripts
from lmfusion.text.prepared import SUMMARIZATION, TRANSLATION, Prepared


def test_threads_are_those_of_the_place_unless_the_user_says_how_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Prepared(tmp_path, "en", "de", TRANSLATION, pairs=9)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert scripts.environment(data, tmp_path, {}, 3)["OMP_NUM_THREADS"] == "3"
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert scripts.environment(data, tmp_path, {}, 3)["OMP_NUM_THREADS"] == "1"


def test_numbers_of_the_users_shell_do_not_reach_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("S2S_UPDATES", "LSTM_LAYERS"):
        monkeypatch.setenv(name, "77")
    found = scripts.environment(Prepared(tmp_path, "en", "de", TRANSLATION, pairs=9), tmp_path, {"LSTM_LAYERS": "2"}, 1)
    assert (found.get("S2S_UPDATES"), found["LSTM_LAYERS"]) == (None, "2")


@pytest.mark.parametrize(
    ("kind", "limit", "numbers", "symbols"),
    [
        (SUMMARIZATION, 400, {}, "401"),  # fairseq counts </s>
        (SUMMARIZATION, 400, {"MAX_SOURCE": "300"}, "300"),
        (SUMMARIZATION, None, {}, None),
        (TRANSLATION, 400, {}, None),
    ],
)
def test_articles_are_read_up_to_where_they_are_cut(
    tmp_path: Path, kind: str, limit: int | None, numbers: dict[str, str], symbols: str | None
) -> None:
    data = Prepared(tmp_path, "text", "summary", kind, pairs=9, source_limit=limit)
    assert scripts.environment(data, tmp_path, numbers, 1).get("MAX_SOURCE") == symbols
