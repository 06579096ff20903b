"""Whether a difference is more than chance: what tests make bold, thick and said, and what is kept of them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from lmfusion.cli import main
from lmfusion.report.page import bootstrap as bootstrap_module
from lmfusion.report.page.bootstrap import FILE, Bootstrap
from lmfusion.report.page.difference_figure import difference_figures
from lmfusion.report.page.notices import Notices
from lmfusion.report.page.score_tables import score_tables
from lmfusion.report.page.significance import Significance, examine, significance_table, verdict
from lmfusion.report.page.texts import find_texts
from lmfusion.report.verdict import Verdict
from lmfusion.runs import provenance
from lmfusion.scoring import bleu, rouge_significance

WORDS = "Haus Baum Vogel Katze Hund Stadt Fluss Berg Tal Weg Licht Regen Wind Schnee Stein Brot".split()
COUNT = 60


def sentences(seed: int) -> list[str]:
    """As many sentences of twelve words as the test set has."""
    chosen = random.Random(seed)
    return [" ".join(chosen.choices(WORDS, k=12)) for _ in range(COUNT)]


REFERENCES = sentences(1)


def damaged(words: int, seed: int = 2, every: int = 1) -> list[str]:
    """The references with the last so many words of every n-th sentence replaced."""
    others = sentences(seed)
    return [
        " ".join(mine.split()[: 12 - words] + other.split()[12 - words :]) if number % every == 0 else mine
        for number, (mine, other) in enumerate(zip(REFERENCES, others))
    ]


def scored(maker, name: str, strategy: str, lines: Sequence[str], metric: str = "bleu", **facts) -> Path:
    """A run folder whose score and texts are those of its output."""
    reference = maker.folder / "reference"
    maker.folder.mkdir(parents=True, exist_ok=True)
    reference.write_text("".join(f"{line}\n" for line in REFERENCES), encoding="utf-8")
    value = bleu.score(lines, REFERENCES).bleu
    entry = maker.bleu(value) if metric == "bleu" else maker.rouge(value / 100, value / 100, value / 100)
    entry = {**entry, "reference": str(reference), "reference_sha256": provenance.hash_file(reference)}
    entry["summaries" if metric == "rouge" else "sentences"] = COUNT
    path = maker.run(name, strategy, scores={"test": entry}, **facts)
    (path / "test.hyp").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def examined(maker, compared, bootstrap: Bootstrap | None = None):
    """The comparison of all runs made so far, and its tests."""
    ((comparison,), _) = compared(maker.folder)
    texts = find_texts(comparison, None, None, Notices())
    return comparison, examine(comparison, texts, bootstrap or Bootstrap(None))


def bold(table) -> list[str]:
    return [cell.text for row in table.rows for cell in row if cell.best]


def test_each_seed_is_tested_against_the_baseline_of_its_own(maker, compared) -> None:
    outputs = {seed: (damaged(6, seed + 10), damaged(3, seed + 10)) for seed in (1, 2)}
    for seed, (base, rival) in outputs.items():
        scored(maker, f"base-{seed}", "baseline", base, seed=seed)
        scored(maker, f"ft-{seed}", "src_ft", rival, seed=seed)
    comparison, significance = examined(maker, compared)
    table = significance_table(comparison, significance)
    rows = [[cell.text for cell in row] for row in table.rows]
    assert [row[:4] for row in rows] == [
        [name, "2.5K", seed, "BLEU"] for seed in "12" for name in ("baseline", "SRC-FT")
    ]
    for row, (base, rival) in zip(rows[1::2], outputs.values()):
        ours, theirs = bleu.paired_bootstrap(base, {"ft": rival}, REFERENCES)
        assert row[4] == f"{theirs.bleu:.2f}"
        assert row[5] == f"{theirs.mean - theirs.ci:.2f} to {theirs.mean + theirs.ci:.2f}"
        assert row[6] == f"+{theirs.bleu - ours.bleu:.2f}"
        assert row[8] == f"{theirs.p_value:.4f}"
        assert theirs.signature in table.notes[0]
    assert rows[0][6:] == ["", "", ""]
    assert significance.p_values(comparison.rows[1], 2500, "BLEU") == [pytest.approx(1 / 1001)] * 2


def test_summaries_are_tested_in_each_metric_of_rouge_and_against_lead(maker, compared) -> None:
    worse, better = damaged(6), damaged(4)
    lead = {"steps": {"generate": maker.step("python data-prep/lead.py texts --sentences 1", {"sentences": 3}, 2500)}}
    scored(maker, "base", "baseline", worse, "rouge")
    scored(maker, "ft", "src_ft", better, "rouge")
    scored(maker, "lead", "lead", sentences(9), "rouge", **lead)
    comparison, significance = examined(maker, compared)
    rows = {(r[0].text, r[3].text): [c.text for c in r[4:]] for r in significance_table(comparison, significance).rows}
    expected = rouge_significance.paired_bootstrap(worse, {"SRC-FT": better}, REFERENCES, None)
    for base, ours in zip(expected[:3], expected[3:]):
        metric = f"ROUGE-{ours.metric[5:]}"
        assert rows["baseline", metric][0] == f"{base.f1:.2f}"
        assert rows["SRC-FT", metric][0] == f"{ours.f1:.2f}"
        assert rows["SRC-FT", metric][2] == f"{ours.f1 - base.f1:+.2f}"
        assert rows["SRC-FT", metric][4] == f"{ours.p_value:.4f}"
    assert len(rows) == 9, "lead too"
    assert verdict(comparison, 2500, significance).name == "SRC-FT", "lead is no rival, it learns nothing"


def test_what_is_no_more_than_chance_is_neither_bold_nor_thick_and_is_said(maker, compared) -> None:
    base, nearly = damaged(4), damaged(4)
    nearly[0] = REFERENCES[0]
    scored(maker, "base", "baseline", base)
    scored(maker, "nearly", "src_ft", nearly)
    comparison, significance = examined(maker, compared)
    said = verdict(comparison, 2500, significance)
    assert said.p_values[0] > 0.05
    assert not said.holds
    assert "no more than chance" in said.text
    assert bold(score_tables(comparison, significance)[0]) == []
    (figure,) = difference_figures(comparison, significance)
    low, high = significance.interval(comparison.rows[1], 2500, "BLEU")
    assert low <= 0 <= high
    assert said.difference == pytest.approx(bleu.score(nearly, REFERENCES).bleu - bleu.score(base, REFERENCES).bleu)
    scored(maker, "clearly", "tgt_ft", damaged(2))
    comparison, significance = examined(maker, compared)
    said = verdict(comparison, 2500, significance)
    assert (said.name, said.holds) == ("TGT-FT", True)
    assert f"{said.difference:.1f} BLEU above the baseline" in said.text
    assert f"{COUNT} sentences" in said.text
    best = bleu.score(damaged(2), REFERENCES).bleu
    assert bold(score_tables(comparison, significance)[0]) == [f"{best:.2f}"], "chrF is not tested"
    (with_both,) = difference_figures(comparison, significance)
    assert "fill: none" in figure.svg
    assert "fill: #c2410c" not in figure.svg
    assert "fill: #c2410c" in with_both.svg, "the colour of TGT-FT"


def test_a_row_is_more_than_chance_only_with_every_seed(maker, compared) -> None:
    nearly = damaged(4)
    nearly[0] = REFERENCES[0]
    for seed, rival in ((1, damaged(2)), (2, nearly)):
        scored(maker, f"base-{seed}", "baseline", damaged(4), seed=seed)
        scored(maker, f"ft-{seed}", "src_ft", rival, seed=seed)
    comparison, significance = examined(maker, compared)
    said = verdict(comparison, 2500, significance)
    assert [p < 0.05 for p in said.p_values] == [True, False]
    assert not said.holds
    assert "1 of 2 seeds" in said.text
    assert bold(score_tables(comparison, significance)[0]) == []
    one, two = (each.difference for each in significance.lines if each.row == "SRC-FT")
    assert said.difference == pytest.approx((one + two) / 2)


def test_a_worse_system_is_below(maker, compared) -> None:
    scored(maker, "base", "baseline", damaged(2))
    scored(maker, "worse", "src_ft", damaged(7))
    comparison, significance = examined(maker, compared)
    said = verdict(comparison, 2500, significance)
    assert said.difference < 0
    assert " below the baseline" in said.text
    assert "-" not in said.text.partition("(")[0].replace("SRC-FT", "")
    assert bold(score_tables(comparison, significance)[0]) == [], "the best is the baseline itself"


def test_without_the_text_that_was_scored_nothing_is_tested_and_the_verdict_says_so(maker, compared) -> None:
    scored(maker, "base", "baseline", damaged(6))
    scored(maker, "ft", "src_ft", damaged(2))
    (maker.folder / "reference").unlink()
    comparison, significance = examined(maker, compared)
    assert significance_table(comparison, significance) is None
    said = verdict(comparison, 2500, significance)
    assert not said.holds
    assert "--reference" in said.text
    assert bold(score_tables(comparison, significance)[0]) == []


def test_without_outputs_nothing_is_tested(maker, compared) -> None:
    scored(maker, "base", "baseline", damaged(6))
    (scored(maker, "ft", "src_ft", damaged(2)) / "test.hyp").unlink()
    comparison, significance = examined(maker, compared)
    assert list(significance.lines) == []
    assert ".hyp" in verdict(comparison, 2500, significance).text


def test_scores_that_cannot_be_repeated_here_are_no_reason_to_have_no_report(maker, compared) -> None:
    for name, strategy in (("base", "baseline"), ("ft", "src_ft")):
        path = scored(maker, name, strategy, damaged(len(name)), "rouge")
        text = (path / "scores.json").read_text()
        (path / "scores.json").write_text(text.replace("exceptions:none", "exceptions:0123456789abcdef"))
    comparison, significance = examined(maker, compared)
    assert list(significance.lines) == []
    assert "exceptions" in verdict(comparison, 2500, significance).text


def test_there_is_no_verdict_without_a_baseline_or_a_rival(maker, compared) -> None:
    path = scored(maker, "ft", "src_ft", damaged(6))
    ((comparison,), _) = compared(path)
    assert verdict(comparison, 2500, Significance()) is None
    ((comparison,), _) = compared(scored(maker, "base", "baseline", damaged(6)))
    assert verdict(comparison, 2500, Significance()) is None


def report(folder: Path, out: Path) -> str:
    """The page in Markdown of the command over a folder of runs."""
    assert main(["report", str(folder), "--out", str(out), "--examples", "0"]) == 0
    return (out / "report.md").read_text(encoding="utf-8")


def test_an_lstm_with_a_language_model_is_told_against_the_plain_one_too(maker, compared, tmp_path) -> None:
    scored(maker, "base", "baseline", damaged(8))
    scored(maker, "lstm", "lstm", damaged(4))
    scored(maker, "fused", "lstm_src_elmo", damaged(2))
    bleu_of = {words: bleu.score(damaged(words), REFERENCES).bleu for words in (8, 4, 2)}
    page = report(maker.folder, tmp_path / "out")
    for words, base in ((8, "the baseline"), (4, "LSTM")):
        assert f"LSTM+SRC-ELMO is {bleu_of[2] - bleu_of[words]:.1f} BLEU above {base}, more than chance" in page
    lstms = (tmp_path / "out" / "lstm-significance.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert [line.split(",")[0] for line in lstms] == ["LSTM", "LSTM+SRC-ELMO"]


def test_without_a_baseline_differences_are_to_the_plain_lstm(maker, compared, tmp_path) -> None:
    scored(maker, "lstm", "lstm", damaged(6))
    scored(maker, "fused", "lstm_src_elmo", damaged(2))
    comparison, significance = examined(maker, compared)
    assert comparison.of_lstms() is None, "they are all there is"
    said = verdict(comparison, 2500, significance)
    assert (said.name, said.baseline) == ("LSTM+SRC-ELMO", "LSTM")
    assert said.holds
    before_speed = report(maker.folder, tmp_path / "out").split("## Speed")[0]
    assert "baseline" not in before_speed.replace("no baseline among", "")


@pytest.mark.parametrize("others", [["lstm"], ["lstm_src_elmo"], ["src_elmo"]])
def test_a_plain_lstm_that_is_not_there_or_alone_is_compared_with_nothing(maker, compared, others: list[str]) -> None:
    scored(maker, "base", "baseline", damaged(6))
    for name in others:
        scored(maker, name, name, damaged(4))
    assert examined(maker, compared)[0].of_lstms() is None


def test_the_size_is_named_where_there_are_several(maker, compared) -> None:
    for size in (2500, 5000):
        scored(maker, f"base-{size}", "baseline", damaged(6), size=size)
        scored(maker, f"ft-{size}", "src_ft", damaged(2), size=size)
    comparison, significance = examined(maker, compared)
    assert "5K pairs" in verdict(comparison, 5000, significance).text
    assert all(bold(table) for table in score_tables(comparison, significance)[:1])


@pytest.mark.slow
def test_a_second_report_computes_only_what_is_new(maker, tmp_path, capsys, monkeypatch) -> None:
    computed: list[int] = []
    compute = bootstrap_module._compute

    def counted(ours, theirs, references, signature):
        computed.append(len(theirs))
        return compute(ours, theirs, references, signature)

    monkeypatch.setattr(bootstrap_module, "_compute", counted)
    scored(maker, "base", "baseline", damaged(6))
    changing = scored(maker, "ft", "src_ft", damaged(4))
    scored(maker, "elmo", "src_elmo", damaged(3))
    words = ["report", str(maker.folder), "--out", str(tmp_path / "out")]
    assert main(words) == 0
    first = (tmp_path / "out" / "significance.csv").read_text()
    assert main(words) == 0
    assert computed == [2]
    assert (tmp_path / "out" / "significance.csv").read_text() == first
    (changing / "test.hyp").write_text("".join(f"{line}\n" for line in damaged(1)), encoding="utf-8")
    assert main(words) == 0
    assert computed == [2, 1], "only the system whose output is another"
    assert (tmp_path / "out" / "significance.csv").read_text() != first
    assert main([*words, "--no-significance"]) == 0
    assert "--no-significance" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["{", "[]", '{"a": [{"metric": "BLEU"}]}', '{"a": 1}'])
def test_what_is_kept_of_tests_is_computed_again_if_it_is_damaged(maker, compared, tmp_path, content: str) -> None:
    scored(maker, "base", "baseline", damaged(6))
    scored(maker, "ft", "src_ft", damaged(4))
    first = Bootstrap(None)
    _, significance = examined(maker, compared, first)
    damaged_values = json.loads(first.to_json())
    for results in damaged_values.values():
        results[0]["score"] = "high"
    for text in (content, json.dumps(damaged_values)):
        (tmp_path / FILE).write_text(text)
        assert examined(maker, compared, Bootstrap(tmp_path / FILE))[1] == significance


def test_the_sentence_has_the_p_value_and_the_number_of_sentences() -> None:
    text = Verdict("SRC-ELMO", "baseline", "BLEU", 1.3, [0.001], 1145).text
    for part in ("SRC-ELMO", "1.3 BLEU", "the baseline", "more than chance", "0.0010", "1,145"):
        assert part in text
    assert "0.04 BLEU" in Verdict("A", "B", "BLEU", -0.04, [0.8], 10).text, "no difference is rounded to none"
    assert Verdict("A", "B", "BLEU", 9.0, [], untested="Not tested.").text.endswith("Not tested.")
    assert not Verdict("A", "B", "BLEU", 9.0, []).holds
    assert not Verdict("A", "B", "BLEU", 9.0, [0.05]).holds
