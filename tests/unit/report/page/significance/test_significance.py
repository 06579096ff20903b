"""Paired tests of every run that has its texts, against the baseline of its seed, and what is kept of them."""

from __future__ import annotations

import json

import pytest

from lmfusion.cli import main
from lmfusion.report.page import bootstrap as bootstrap_module
from lmfusion.report.page.bootstrap import FILE, Bootstrap
from lmfusion.report.page.significance import significance_table
from lmfusion.scoring import bleu, rouge_significance


def test_each_seed_is_tested_against_the_baseline_of_its_own(systems) -> None:
    outputs = {seed: (systems.damaged(6, seed + 10), systems.damaged(3, seed + 10)) for seed in (1, 2)}
    for seed, (base, rival) in outputs.items():
        systems.add(f"base-{seed}", "baseline", base, seed=seed)
        systems.add(f"ft-{seed}", "src_ft", rival, seed=seed)
    found = systems.examined()
    table = significance_table(found.comparison, found.significance)
    rows = [[cell.text for cell in row] for row in table.rows]
    assert [row[:4] for row in rows] == [
        [name, "2.5K", seed, "BLEU"] for seed in "12" for name in ("baseline", "SRC-FT")
    ]
    for row, (base, rival) in zip(rows[1::2], outputs.values()):
        ours, theirs = bleu.paired_bootstrap(base, {"ft": rival}, systems.references)
        assert row[4] == f"{theirs.bleu:.2f}"
        assert row[5] == f"{theirs.mean - theirs.ci:.2f} to {theirs.mean + theirs.ci:.2f}"
        assert row[6] == f"+{theirs.bleu - ours.bleu:.2f}"
        assert row[8] == f"{theirs.p_value:.4f}"
        assert theirs.signature in table.notes[0]
    assert rows[0][6:] == ["", "", ""]
    assert found.significance.p_values(found.comparison.rows[1], 2500, "BLEU") == [pytest.approx(1 / 1001)] * 2


def test_summaries_are_tested_in_each_metric_of_rouge_and_against_lead(maker, systems) -> None:
    worse, better = systems.damaged(6), systems.damaged(4)
    lead = {"steps": {"generate": maker.step("python data-prep/lead.py texts --sentences 1", {"sentences": 3}, 2500)}}
    systems.add("base", "baseline", worse, "rouge")
    systems.add("ft", "src_ft", better, "rouge")
    systems.add("lead", "lead", systems.sentences(9), "rouge", **lead)
    found = systems.examined()
    table = significance_table(found.comparison, found.significance)
    rows = {(row[0].text, row[3].text): [cell.text for cell in row[4:]] for row in table.rows}
    expected = rouge_significance.paired_bootstrap(worse, {"SRC-FT": better}, systems.references, None)
    for base, ours in zip(expected[:3], expected[3:]):
        metric = f"ROUGE-{ours.metric[5:]}"
        assert rows["baseline", metric][0] == f"{base.f1:.2f}"
        assert rows["SRC-FT", metric][0] == f"{ours.f1:.2f}"
        assert rows["SRC-FT", metric][2] == f"{ours.f1 - base.f1:+.2f}"
        assert rows["SRC-FT", metric][4] == f"{ours.p_value:.4f}"
    assert len(rows) == 9, "lead too"
    assert found.verdict().name == "SRC-FT", "lead is no rival, it learns nothing"


def test_without_the_text_that_was_scored_nothing_is_tested_and_the_verdict_says_so(maker, systems) -> None:
    systems.add("base", "baseline", 6)
    systems.add("ft", "src_ft", 2)
    (maker.folder / "reference").unlink()
    found = systems.examined()
    assert significance_table(found.comparison, found.significance) is None
    assert not found.verdict().holds
    assert "--reference" in found.verdict().text
    assert found.bold() == []


def test_without_outputs_nothing_is_tested(systems) -> None:
    systems.add("base", "baseline", 6)
    (systems.add("ft", "src_ft", 2) / "test.hyp").unlink()
    found = systems.examined()
    assert list(found.significance.lines) == []
    assert ".hyp" in found.verdict().text


def test_scores_that_cannot_be_repeated_here_are_no_reason_to_have_no_report(systems) -> None:
    for name, strategy, words in (("base", "baseline", 4), ("ft", "src_ft", 2)):
        path = systems.add(name, strategy, words, "rouge")
        text = (path / "scores.json").read_text()
        (path / "scores.json").write_text(text.replace("exceptions:none", "exceptions:0123456789abcdef"))
    found = systems.examined()
    assert list(found.significance.lines) == []
    assert "exceptions" in found.verdict().text


@pytest.mark.slow
def test_a_second_report_computes_only_what_is_new(maker, systems, tmp_path, capsys, monkeypatch) -> None:
    computed: list[int] = []
    compute = bootstrap_module._compute

    def counted(ours, theirs, references, signature):
        computed.append(len(theirs))
        return compute(ours, theirs, references, signature)

    monkeypatch.setattr(bootstrap_module, "_compute", counted)
    systems.add("base", "baseline", 6)
    changing = systems.add("ft", "src_ft", 4)
    systems.add("elmo", "src_elmo", 3)
    words = ["report", str(maker.folder), "--out", str(tmp_path / "out")]
    assert main(words) == 0
    first = (tmp_path / "out" / "significance.csv").read_text()
    assert main(words) == 0
    assert computed == [2]
    assert (tmp_path / "out" / "significance.csv").read_text() == first
    (changing / "test.hyp").write_text("".join(f"{line}\n" for line in systems.damaged(1)), encoding="utf-8")
    assert main(words) == 0
    assert computed == [2, 1], "only the system whose output is another"
    assert (tmp_path / "out" / "significance.csv").read_text() != first
    assert main([*words, "--no-significance"]) == 0
    assert "--no-significance" in capsys.readouterr().out


@pytest.mark.parametrize("content", ["{", "[]", '{"a": [{"metric": "BLEU"}]}', '{"a": 1}'])
def test_what_is_kept_of_tests_is_computed_again_if_it_is_damaged(systems, tmp_path, content: str) -> None:
    systems.add("base", "baseline", 6)
    systems.add("ft", "src_ft", 4)
    first = Bootstrap(None)
    significance = systems.examined(first).significance
    damaged_values = json.loads(first.to_json())
    for results in damaged_values.values():
        results[0]["score"] = "high"
    for text in (content, json.dumps(damaged_values)):
        (tmp_path / FILE).write_text(text)
        assert systems.examined(Bootstrap(tmp_path / FILE)).significance == significance
