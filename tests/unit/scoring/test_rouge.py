"""ROUGE against what ROUGE-1.5.5.pl itself printed, pair by pair and on average (see rouge-1.5.5/README.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmfusion.errors import InputError
from lmfusion.scoring import rouge
from lmfusion.scoring.irregular_words import read_exceptions

FOLDER = Path(__file__).parent / "rouge-1.5.5"
MEASURES = ("recall", "precision", "f1")


def read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / f"rouge_{name}.json").read_text(encoding="utf-8"))
    return content


def score(pairs: list[dict[str, Any]]) -> rouge.RougeScore:
    return rouge.score([pair["hypothesis"] for pair in pairs], [pair["reference"] for pair in pairs])


@pytest.mark.parametrize(
    "pair", [pair for name in ("descriptions", "properties") for pair in read(name)["pairs"]], ids=lambda p: p["what"]
)
def test_equals_the_script(pair: dict[str, Any]) -> None:
    (ours,) = score([pair]).per_pair
    for metric in rouge.METRICS:
        assert {measure: getattr(ours[metric], measure) for measure in MEASURES} == pair[metric], metric


def test_the_fixture_is_there() -> None:
    assert len(read("descriptions")["pairs"]) == 36


@pytest.mark.parametrize("name", ["descriptions", "properties"])
def test_averages_and_intervals_equal_the_script(name: str) -> None:
    expected = read(name)
    ours = score(expected["pairs"])
    for metric in rouge.METRICS:
        for measure in MEASURES:
            printed = expected["averages"][metric][measure]
            assert getattr(ours.script_averages[metric], measure) == printed["average"]
            assert getattr(ours.intervals[metric], measure) == (printed["low"], printed["high"])


def test_means_are_those_of_the_pairs() -> None:
    ours = score(read("descriptions")["pairs"])
    f1 = [pair["rouge2"].f1 for pair in ours.per_pair]
    assert ours.means["rouge2"].f1 == pytest.approx(sum(f1) / 36, abs=1e-12)
    assert 0 < abs(ours.means["rouge2"].f1 - ours.script_averages["rouge2"].f1) < 0.01


def test_an_empty_hypothesis_counts_as_zero() -> None:
    ours = rouge.score(["the cat", ""], ["the cat", "a dog"])
    assert [pair["rougeL"].f1 for pair in ours.per_pair] == [1.0, 0.0]
    assert ours.means["rougeL"].f1 == 0.5


def test_one_summary_has_an_interval_of_no_width() -> None:
    assert rouge.score(["a b"], ["a c"]).intervals["rouge1"].recall == (0.5, 0.5)


def test_different_numbers_are_an_error_naming_both() -> None:
    with pytest.raises(InputError, match="There are 2 hypotheses, but 3 references"):
        rouge.score(["a", "b"], ["a", "b", "c"])


def test_nothing_to_score_is_an_error() -> None:
    with pytest.raises(InputError, match="there are no summaries"):
        rouge.score([], [])


# "d" lies in the first sentence, "b" in the second: only the splitting lets rougeL find both.
HYPOTHESIS, REFERENCE = "d{0}b", "b{0}d"


@pytest.mark.parametrize(
    ("marker", "text", "f1", "split"),
    [
        ("\n", "\n", 1.0, "newline"),
        ("<q>", "<q>", 1.0, "<q>"),
        (" <q> ", " <q> ", 1.0, " <q> "),
        (None, "\n", 0.5, "none"),
        ("<q>", "\n", 0.5, "<q>"),
    ],
)
def test_splitting_matters_and_is_in_the_signature(marker: str | None, text: str, f1: float, split: str) -> None:
    ours = rouge.score([HYPOTHESIS.format(text)], [REFERENCE.format(text)], sentence_marker=marker)
    assert ours.per_pair[0]["rougeL"].f1 == f1
    assert f"|split:{split}|" in ours.signature
    assert ours.hypothesis_sentences == (2 if f1 == 1 else 1)


def test_empty_marker_is_an_error() -> None:
    with pytest.raises(InputError, match="marker is empty"):
        rouge.score(["a"], ["a"], sentence_marker="")


@pytest.mark.parametrize("given", [{"words": "asci"}, {"like": "rouge"}])
def test_a_misspelled_choice_is_no_choice(given: dict[str, str]) -> None:
    with pytest.raises(InputError, match=next(iter(given.values()))):
        rouge.score(["a"], ["a"], **given)


def test_signature_names_everything_that_the_numbers_depend_on() -> None:
    fields = dict(field.split(":", 1) for field in score(read("descriptions")["pairs"]).signature.split("|")[1:])
    assert list(fields) == "like refs stem exceptions split L F interval version".split()
    assert fields["stem"] == "porter-1.5.5"
    assert fields["exceptions"] == "none"
    assert fields["interval"] == "95%-bootstrap-1000-seeds-0-999"
    assert fields["version"].startswith("lmfusion-0")


def test_irregular_forms_are_replaced_where_a_list_is_given(tmp_path: Path) -> None:
    (tmp_path / "noun.exc").write_text("mice mouse\nchildren child\ndies die\n", encoding="utf-8")
    (tmp_path / "verb.exc").write_text("was be extra\ndies dying\n", encoding="utf-8")
    exceptions = read_exceptions([tmp_path / "noun.exc", tmp_path / "verb.exc"])
    assert exceptions == {"mice": "mouse", "children": "child", "was": "be", "dies": "dying"}
    without = rouge.score(["a mouse was"], ["Mice was"])
    given = rouge.score(["a mouse was"], ["Mice was"], exceptions=exceptions)
    assert without.per_pair[0]["rouge1"].recall == 0.5
    # The script stems what the list does not have, and only that: "mouse" itself becomes "mous" and "mice" does not.
    assert given.per_pair[0]["rouge1"].recall == 0.5
    assert rouge.score(["child"], ["children"], exceptions=exceptions).per_pair[0]["rouge1"].f1 == 1.0
    assert rouge.score(["child"], ["children"]).per_pair[0]["rouge1"].f1 == 0.0
    assert "|exceptions:4-" in given.signature
    assert given.signature != rouge.score(["a"], ["a"], exceptions={**exceptions, "was": "is"}).signature


def test_line_of_exceptions_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "noun.exc").write_text("mice mouse\n\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"noun\.exc, line 2, has no two words"):
        read_exceptions([tmp_path / "noun.exc"])


def test_to_dict_survives_json() -> None:
    values = score(read("descriptions")["pairs"]).to_dict()
    assert json.loads(json.dumps(values)) == values
    assert values["rouge1"]["f1"].keys() == {"mean", "low", "high", "script_average"}
    assert values["summaries"] == 36
