"""What the figures are drawn from, and what becomes of a drawing."""

from __future__ import annotations

import math
import re

import pytest

from lmfusion.report.page import curves, mixes
from lmfusion.report.page.colours import DARK, INK, styles
from lmfusion.report.page.curves import Curve, curve_figures
from lmfusion.report.page.difference_figure import difference_figures, differences, published_figure
from lmfusion.report.page.figure import drawing, finish, legend_below, plain_numbers
from lmfusion.report.page.find import Found
from lmfusion.report.page.notices import Notices
from lmfusion.report.page.read_run import read_run
from lmfusion.report.page.significance import Significance
from lmfusion.report.page.strategy import PAPER_ORDER

LAYERS = ("embedding", "layer 1", "layer 2", "context", "joined")


def read(path) -> Curve:
    """A run to be drawn."""
    run = read_run(Found(path, path.name), Notices())
    return Curve(run, run.name, run.strategy)


def labels(svg: str) -> list[str]:
    """The text in a figure."""
    return re.findall(r"<text[^>]*>([^<]+)</text>", svg)


def test_figure_1_is_the_difference_of_means_to_the_baseline_of_the_same_size(maker, compared) -> None:
    for size, base in ((2500, 4.0), (5000, 10.0)):
        for seed in (1, 2):
            maker.run(f"base-{size}-{seed}", bleu=base + seed, size=size, seed=seed)
            maker.run(f"elmo-{size}-{seed}", "src_elmo", bleu=base + 4 * seed, size=size, seed=seed)
    maker.run("ft", "src_ft", bleu=10.5, size=5000)
    maker.run("seed 3", "tgt_elmo", bleu=20.0, size=5000, seed=3)
    maker.run("other size", "tgt_ft", bleu=50.0, size=20000)
    ((comparison,), _) = compared(maker.folder)
    baseline, elmo, ft, alone, other = (differences(comparison, row, "BLEU") for row in comparison.rows)
    assert [point[:2] for point in baseline] == [(2500, 0.0), (5000, 0.0)]
    # means 10 and 5.5, 16 and 11.5; two seeds 4 apart have a deviation of 4 / sqrt(2)
    assert elmo == [(2500, 4.5, pytest.approx(math.sqrt(8))), (5000, 4.5, pytest.approx(math.sqrt(8)))]
    assert ft == [(5000, -0.5, 0.0)], "seed 1 beside seed 1 of the baseline, which has 11"
    assert alone == [(5000, 8.5, 0.0)], "no seed in common: beside the mean of all, 11.5"
    assert other == [], "there is no baseline of that size"
    (figure,) = difference_figures(comparison, Significance())
    assert figure.name == "difference"
    drawn = labels(figure.svg)
    assert {"baseline", "SRC-ELMO", "SRC-FT", "2.5K", "5K", "BLEU difference to baseline"} <= set(drawn)
    assert "TGT-FT" not in drawn
    assert "standard deviation" in figure.caption


def test_figure_1_of_one_size_has_a_bar_for_each_strategy_but_the_baseline(maker, compared) -> None:
    for strategy, rouge in (("baseline", 0.3), ("src_ft", 0.4), ("tgt_ft", 0.2)):
        maker.run(strategy, strategy, scores={"test": maker.rouge(rouge, rouge / 2, rouge)})
    ((comparison,), _) = compared(maker.folder)
    figures = difference_figures(comparison, Significance())
    assert [figure.name for figure in figures] == [f"difference-rouge-{each}" for each in ("1", "2", "l")]
    drawn = labels(figures[0].svg)
    assert {"SRC-FT", "TGT-FT"} <= set(drawn)
    assert "baseline" not in drawn


def test_without_a_baseline_or_a_rival_there_is_no_figure_1(maker, compared) -> None:
    path = maker.run("ft", "src_ft", bleu=1.0)
    ((alone,), _) = compared(path)
    assert difference_figures(alone, Significance()) == []
    ((baseline,), _) = compared(maker.run("base", bleu=1.0))
    assert difference_figures(baseline, Significance()) == []


def test_published_differences_are_dotted_beside_ours_only_on_the_papers_test_sets(maker, compared) -> None:
    for size in (160_000, 320_000):
        for strategy in ("baseline", "src_ft"):
            scores = {
                name: maker.bleu(20.0, name, name, sentences)
                for name, sentences in (("newstest2018", 2998), ("newstest2017", 2998), ("test", 2998))
            }
            maker.run(f"{strategy}-{size}", strategy, scores=scores, size=size)
    figures = [difference_figures(comparison, Significance())[0] for comparison in compared(maker.folder)[0]]
    titles = [figure.title for figure in figures if "SRC-FT, published" in labels(figure.svg)]
    assert len(figures) == 4, "the average, too"
    assert titles == ["BLEU difference to the baseline, newstest2018 (en-de)"], "newstest2017 has 3,004 sentences"


def test_the_papers_own_figure_has_its_seven_lines() -> None:
    assert set(PAPER_ORDER) - {"baseline"} <= set(labels(published_figure().svg))


def test_learning_curves_are_drawn_of_what_the_logs_have(maker) -> None:
    chosen = [read(maker.run("a", losses=(8.0, 6.0, 5.0))), read(maker.run("b", "src_ft", losses=(7.0, 4.0)))]
    figures = curve_figures(chosen, "curve", "two runs")
    assert [figure.name for figure in figures] == ["curve-loss", "curve-perplexity"]
    assert {"a", "b"} <= set(labels(figures[0].svg))


def test_names_of_runs_are_no_formulas_and_none_is_left_out(maker) -> None:
    runs = [read(maker.run("a$b$frac$")), read(maker.run("_trial", "src_ft"))]
    figure, _ = curve_figures(runs, "curve", "two runs")
    assert {"a$b$frac$", "_trial"} <= {text.strip() for text in labels(figure.svg)}


def test_validation_bleu_has_a_curve_where_it_was_computed(maker) -> None:
    path = maker.run("a")
    log = (path / "train.log").read_text()
    (path / "train.log").write_text(log.replace('"valid_ppl"', '"valid_bleu": "21.5", "valid_ppl"'))
    curve = read(path)
    assert curve.run.log.validation[10].bleu == 21.5
    assert [figure.name for figure in curve_figures([curve], "x", "a")] == ["x-loss", "x-perplexity", "x-bleu"]


@pytest.mark.parametrize("lost", [math.nan, math.inf])
def test_a_curve_breaks_where_the_loss_is_no_number_and_the_caption_says_whose(maker, lost: float) -> None:
    chosen = [read(maker.run("whole")), read(maker.run("lost", losses=(8.0, 7.5, lost, 7.0, 6.5)))]
    figure = curve_figures(chosen, "curve", "two runs")[0]
    paths = re.findall(r'<path d="([^"]*)"[^>]*stroke: #5b6470; stroke-width: 1.6', figure.svg)
    assert sorted(path.count("M") for path in paths[:2]) == [1, 2], "one whole line, one in two pieces"
    assert figure.caption.endswith("Broken where the loss is no number: lost.")


def test_a_run_that_never_had_a_loss_is_drawn_as_nothing(maker) -> None:
    figures = curve_figures([read(maker.run("lost", losses=(math.nan, math.nan)))], "curve", "a run")
    assert "lost" in figures[0].caption
    assert curves.curve_figures([], "curve", "nothing") == []


def with_mix(shares: list[float], gamma: float) -> dict:
    """Facts of a model with this mix on its source side."""
    return {"mixes": [{"side": "source", "gamma": gamma, "shares": dict(zip(LAYERS, shares))}], "language_models": []}


def test_mixing_weights_are_means_over_seeds(maker, compared) -> None:
    facts = {"trainable": 1, "frozen": 1}
    for seed, shares, gamma in ((1, [0.5, 0.2, 0.1, 0.1, 0.1], 1.0), (2, [0.3, 0.4, 0.1, 0.1, 0.1], 2.0)):
        maker.run(f"elmo-{seed}", "src_elmo", bleu=1.0, seed=seed, model={**facts, **with_mix(shares, gamma)})
    ((comparison,), _) = compared(maker.folder)
    found = mixes.mixes_by_side(comparison)
    assert list(found) == ["source"]
    (mix,) = found["source"]
    assert mix.shares.to_list() == pytest.approx([0.4, 0.3, 0.1, 0.1, 0.1])
    table = mixes.mix_table("source", found["source"], "")
    assert [cell.text for cell in table.rows[0]] == ["γ", "1.500 ± 0.707"]
    assert [cell.text for cell in table.rows[1]] == ["embedding", "0.400 ± 0.141"]
    assert [row[0].text for row in table.rows[1:]] == list(LAYERS)
    (figure,) = mixes.mix_figures("source", found["source"], "")
    assert {"embedding", "1", "2", "context", "joined"} <= set(labels(figure.svg))


def test_with_several_sizes_each_row_has_a_mix_figure_of_its_own(maker, compared) -> None:
    for size in (100, 200):
        for strategy in ("src_elmo", "src_elmo_shdemb"):
            model = {"trainable": 1, "frozen": 1, **with_mix([0.2] * 5, 1.0)}
            maker.run(f"{strategy}-{size}", strategy, bleu=1.0, size=size, model=model)
    ((comparison,), _) = compared(maker.folder)
    figures = mixes.mix_figures("source", mixes.mixes_by_side(comparison)["source"], "")
    assert [figure.name for figure in figures] == ["mix-source-1", "mix-source-2"]
    assert {"SRC-ELMO, 100", "SRC-ELMO, 200"} <= set(labels(figures[0].svg))


@pytest.fixture
def two_figures():
    """Alike but for their name and colour."""
    figures = []
    for name, colour in (("one", "#1d4ed8"), ("two", "#b91c1c")):
        with drawing(1) as (canvas, axes):
            axes.plot([1, 2], [3, 4], color=colour, marker="o", label="<line> & more")
            legend_below(canvas, axes)
            figures.append(finish(canvas, name, f'Figure "{name}"', "A caption."))
    return figures


def test_a_figure_is_svg_with_text_and_png(two_figures) -> None:
    figure = two_figures[0]
    assert figure.svg.startswith("<?xml")
    assert "#1d4ed8" in figure.svg
    assert figure.png.startswith(b"\x89PNG")
    assert "&lt;line&gt; &amp; more" in figure.svg


def test_in_the_page_its_colours_are_the_pages_and_its_ids_its_own(two_figures) -> None:
    one, two = (figure.inline for figure in two_figures)
    assert one.startswith('<svg role="img" aria-label="Figure &quot;one&quot;"')
    assert "var(--c1d4ed8)" in one
    assert f"var(--c{INK[1:]})" in one
    assert not re.search(r"#[0-9a-f]{6}", one), "no colour that a dark page could not change"
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (one, two)]
    assert ids[0]
    assert not ids[0] & ids[1]
    for svg, own in zip((one, two), ids):
        used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
        assert used
        assert used <= own


def test_the_same_figure_is_the_same_file(two_figures, request: pytest.FixtureRequest) -> None:
    with drawing(1) as (canvas, axes):
        axes.plot([1, 2], [3, 4], color="#1d4ed8", marker="o", label="<line> & more")
        legend_below(canvas, axes)
        again = finish(canvas, "one", 'Figure "one"', "A caption.")
    assert again == two_figures[0]


def test_each_strategy_has_its_own_colour_and_mark_and_keeps_them() -> None:
    style = styles(["SRC-FT+SHDEMB", *PAPER_ORDER])
    colours, marks = zip(*style.values())
    assert len(set(colours)) == len(set(marks)) == len(PAPER_ORDER) + 1
    assert styles(["SRC-FT"])["SRC-FT"] == style["SRC-FT"]
    assert set(colours) <= set(DARK), "each has a twin for dark pages"


@pytest.mark.parametrize(("values", "shown"), [([300, 900], ["300", "400", "600"]), ([10, 20000], ["100", "1,000"])])
def test_a_logarithmic_axis_has_numbers_and_no_formulas(values: list[int], shown: list[str]) -> None:
    with drawing() as (canvas, axes):
        axes.plot([1, 2], values)
        axes.set_yscale("log")
        plain_numbers(axes.yaxis)
        written = labels(finish(canvas, "log", "Log", "").svg)
    assert set(shown) <= set(written)
    assert not [label for label in written if "$" in label]
