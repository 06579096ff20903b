"""Whether a difference is more than chance: what is bold, thick and said, and against which baseline."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion.cli import main
from lmfusion.report.page.difference_figure import difference_figures
from lmfusion.report.page.significance import Significance, verdict
from lmfusion.report.verdict import Verdict
from lmfusion.scoring import bleu


def test_what_is_no_more_than_chance_is_neither_bold_nor_thick_and_is_said(systems) -> None:
    nearly = [systems.references[0], *systems.damaged(4)[1:]]
    systems.add("base", "baseline", 4)
    systems.add("nearly", "src_ft", nearly)
    found = systems.examined()
    said = found.verdict()
    assert said.p_values[0] > 0.05
    assert not said.holds
    assert "no more than chance" in said.text
    assert found.bold() == []
    (figure,) = difference_figures(found.comparison, found.significance)
    low, high = found.significance.interval(found.comparison.rows[1], 2500, "BLEU")
    assert low <= 0 <= high
    assert said.difference == pytest.approx(bleu.score(nearly, systems.references).bleu - systems.score(4))
    systems.add("clearly", "tgt_ft", 2)
    found = systems.examined()
    said = found.verdict()
    assert (said.name, said.holds) == ("TGT-FT", True)
    assert f"{said.difference:.1f} BLEU above the baseline" in said.text
    assert f"{systems.count} sentences" in said.text
    assert found.bold() == [f"{systems.score(2):.2f}"], "chrF is not tested"
    (with_both,) = difference_figures(found.comparison, found.significance)
    assert "fill: none" in figure.svg
    assert "fill: #c2410c" not in figure.svg
    assert "fill: #c2410c" in with_both.svg, "the colour of TGT-FT"


def test_a_row_is_more_than_chance_only_with_every_seed(systems) -> None:
    nearly = [systems.references[0], *systems.damaged(4)[1:]]
    for seed, rival in ((1, 2), (2, nearly)):
        systems.add(f"base-{seed}", "baseline", 4, seed=seed)
        systems.add(f"ft-{seed}", "src_ft", rival, seed=seed)
    found = systems.examined()
    said = found.verdict()
    assert [p < 0.05 for p in said.p_values] == [True, False]
    assert not said.holds
    assert "1 of 2 seeds" in said.text
    assert found.bold() == []
    one, two = (each.difference for each in found.significance.lines if each.row == "SRC-FT")
    assert said.difference == pytest.approx((one + two) / 2)


def test_a_worse_system_is_below(systems) -> None:
    systems.add("base", "baseline", 2)
    systems.add("worse", "src_ft", 7)
    found = systems.examined()
    said = found.verdict()
    assert said.difference < 0
    assert " below the baseline" in said.text
    assert "-" not in said.text.partition("(")[0].replace("SRC-FT", "")
    assert found.bold() == [], "the best is the baseline itself"


def test_there_is_no_verdict_without_a_baseline_or_a_rival(systems, compared) -> None:
    for name, strategy in (("ft", "src_ft"), ("base", "baseline")):
        ((comparison,), _) = compared(systems.add(name, strategy, 6))
        assert verdict(comparison, 2500, Significance()) is None


def report(folder: Path, out: Path) -> str:
    """The page in Markdown of the command over a folder of runs."""
    assert main(["report", str(folder), "--out", str(out), "--examples", "0"]) == 0
    return (out / "report.md").read_text(encoding="utf-8")


def test_an_lstm_with_a_language_model_is_told_against_the_plain_one_too(maker, systems, tmp_path) -> None:
    systems.add("base", "baseline", 8)
    systems.add("lstm", "lstm", 4)
    systems.add("fused", "lstm_src_elmo", 2)
    page = report(maker.folder, tmp_path / "out")
    for words, base in ((8, "the baseline"), (4, "LSTM")):
        difference = systems.score(2) - systems.score(words)
        assert f"LSTM+SRC-ELMO is {difference:.1f} BLEU above {base}, more than chance" in page
    lstms = (tmp_path / "out" / "lstm-significance.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert [line.split(",")[0] for line in lstms] == ["LSTM", "LSTM+SRC-ELMO"]


def test_without_a_baseline_differences_are_to_the_plain_lstm(maker, systems, tmp_path) -> None:
    systems.add("lstm", "lstm", 6)
    systems.add("fused", "lstm_src_elmo", 2)
    found = systems.examined()
    assert found.comparison.of_lstms() is None, "they are all there is"
    said = found.verdict()
    assert (said.name, said.baseline) == ("LSTM+SRC-ELMO", "LSTM")
    assert said.holds
    before_speed = report(maker.folder, tmp_path / "out").split("## Speed")[0]
    assert "baseline" not in before_speed.replace("no baseline among", "")


@pytest.mark.parametrize("others", [["lstm"], ["lstm_src_elmo"], ["src_elmo"]])
def test_a_plain_lstm_that_is_not_there_or_alone_is_compared_with_nothing(systems, others: list[str]) -> None:
    systems.add("base", "baseline", 6)
    for name in others:
        systems.add(name, name, 4)
    assert systems.examined().comparison.of_lstms() is None


def test_the_size_is_named_where_there_are_several(systems) -> None:
    for size in (2500, 5000):
        systems.add(f"base-{size}", "baseline", 6, size=size)
        systems.add(f"ft-{size}", "src_ft", 2, size=size)
    found = systems.examined()
    assert "5K pairs" in found.verdict(5000).text
    assert found.bold()


def test_the_sentence_has_the_p_value_and_the_number_of_sentences() -> None:
    text = Verdict("SRC-ELMO", "baseline", "BLEU", 1.3, [0.001], 1145).text
    for part in ("SRC-ELMO", "1.3 BLEU", "the baseline", "more than chance", "0.0010", "1,145"):
        assert part in text
    assert "0.04 BLEU" in Verdict("A", "B", "BLEU", -0.04, [0.8], 10).text, "no difference is rounded to none"
    assert Verdict("A", "B", "BLEU", 9.0, [], untested="Not tested.").text.endswith("Not tested.")
    assert not Verdict("A", "B", "BLEU", 9.0, []).holds
    assert not Verdict("A", "B", "BLEU", 9.0, [0.05]).holds
