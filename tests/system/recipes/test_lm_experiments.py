"""lm_quality.sh and perplexity_by_text.sh in one piece, really trained for a few updates on a slice of the corpus."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Callable

import pytest


@pytest.mark.slow
def test_the_gain_is_set_against_the_perplexity_of_each_lm(run: Callable[..., str], tmp_path: Path) -> None:
    own = {"OUT": str(tmp_path), "LM_UPDATES_TRIED": "2 4"}
    shown = run("debian_ende/lm_quality.sh", **own)
    table = [line.strip("|").split("|") for line in shown.splitlines() if line.startswith("|")][2:]
    rows = [[cell.strip() for cell in line] for line in table]
    assert [row[0] for row in rows] == ["none: baseline", "2", "4"]
    assert float(rows[2][1]) < float(rows[1][1]), "two more updates of so small a model lower its perplexity"
    baseline = float(rows[0][2])
    for row in rows[1:]:
        assert float(row[5]) == pytest.approx(float(row[2]) - baseline, abs=0.011)
    assert (tmp_path / "lm-quality.svg").exists()

    again = run("debian_ende/lm_quality.sh", **own)
    assert again.count("finished before") == 6, "three models were trained and have translated"
    assert again.endswith(shown[shown.index("| cloze LM, updates") :])


@pytest.mark.slow
def test_perplexity_is_told_for_each_amount_of_text(
    run: Callable[..., str], small_corpus: Path, tmp_path: Path
) -> None:
    corpus, more = tmp_path / "corpus", tmp_path / "more"
    corpus.mkdir()
    more.mkdir()
    for file in small_corpus.iterdir():
        (corpus / f"{file.name}.xz").write_bytes(lzma.compress(file.read_bytes()))
    (more / "mono.more.de").write_text("Zeigt die Handbuchseite zu einem Befehl an.\n" * 9, encoding="utf-8")
    shown = run("perplexity_by_text.sh", "causal", str(tmp_path / "out"), CORPUS=str(corpus), MORE_TEXT=str(more))
    table = (tmp_path / "out" / "causal.tsv").read_text(encoding="utf-8")
    assert shown.endswith(table)
    assert [line.split("\t")[1] for line in table.splitlines()[1:]] == ["150", "300", "600", "609"]
