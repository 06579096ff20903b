"""Which row a verdict is about, and the interval that a figure shows of several seeds."""

from __future__ import annotations

from lmfusion.report.page.bootstrap import Result
from lmfusion.report.page.comparison import Row
from lmfusion.report.page.significance import Line, Significance, verdict


def test_what_learns_nothing_is_no_rival_even_where_it_is_the_best(maker, compared) -> None:
    lead = {"steps": {"generate": maker.step("python data-prep/lead.py texts --sentences 1", {"sentences": 3}, 2500)}}
    maker.run("base", scores={"test": maker.rouge(0.30, 0.1, 0.2)})
    maker.run("ft", "src_ft", scores={"test": maker.rouge(0.35, 0.1, 0.2)})
    maker.run("lead", "lead", scores={"test": maker.rouge(0.40, 0.1, 0.2)}, **lead)
    ((comparison,), _) = compared(maker.folder)
    values = {row.name: comparison.values(row.cell(2500), "ROUGE-1") for row in comparison.rows}
    assert values == {"Lead-1": [40.0], "baseline": [30.0], "SRC-FT": [35.0]}
    found = verdict(comparison, 2500, Significance())
    assert (found.name, round(found.difference, 6)) == ("SRC-FT", 5.0)


def test_the_interval_of_several_seeds_has_the_mean_of_their_ends() -> None:
    lines = [
        Line("SRC-FT", 2500, seed, Result("BLEU", 22.0, 22.0, 1.0, 0.01, low, high, "BLEU"), 2.0)
        for seed, low, high in ((1, -1.0, 3.0), (2, 2.0, 6.0))
    ]
    interval = Significance(lines).interval(Row("SRC-FT", "SRC-FT", {}), 2500, "BLEU")
    assert interval == (0.5, 4.5)
