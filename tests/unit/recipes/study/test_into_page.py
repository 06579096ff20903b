"""Tables of a study in a page: renewed from the report, everything else left as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion.errors import InputError

REPORT = """# Study

Written today.

### BLEU by pairs

|  | 10K |
|---|---:|
| baseline | 7.20 |

### Difference

![to the baseline](difference.svg)

#### Its note

Small.

### Runs

None.
"""
PAGE = """# Results

<!-- study ende cpu: BLEU by pairs -->
old
<!-- end -->
Kept.
<!-- study ende gpu: BLEU by pairs -->
another budget's
<!-- end -->
<!-- study ende cpu: Difference -->
<!-- end -->
"""


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path, Path]:
    """The page, the report's folder and that of committed results."""
    page, report, results = tmp_path / "RESULTS.md", tmp_path / "report", tmp_path / "recipes" / "results"
    report.mkdir()
    results.mkdir(parents=True)
    page.write_text(PAGE, encoding="utf-8")
    (report / "report.md").write_text(REPORT, encoding="utf-8")
    (report / "difference.svg").write_text("<svg/>", encoding="utf-8")
    return page, report, results


def test_its_parts_are_renewed_with_pictures_that_lie_in_the_repository(places: tuple[Path, Path, Path]) -> None:
    from study.into_page import fill

    page, _, results = places
    assert fill(*places, "ende", "cpu") == 2
    text = page.read_text(encoding="utf-8")
    table = "|  | 10K |\n|---|---:|\n| baseline | 7.20 |"
    assert f"<!-- study ende cpu: BLEU by pairs -->\n{table}\n<!-- end -->\nKept." in text
    assert "another budget's" in text
    assert "![to the baseline](recipes/results/difference.svg)\n\n#### Its note" in text
    assert "None." not in text
    assert (results / "difference.svg").read_text(encoding="utf-8") == "<svg/>"
    assert fill(*places, "ende", "cpu") == 2
    assert page.read_text(encoding="utf-8") == text, "a second time changes nothing"


def test_a_page_without_its_parts_or_with_an_unknown_one_is_refused_unchanged(places: tuple[Path, Path, Path]) -> None:
    from study.into_page import fill

    page = places[0]
    with pytest.raises(InputError, match="has no line `<!-- study synopsis cpu: HEADING -->`"):
        fill(*places, "synopsis", "cpu")
    page.write_text(PAGE.replace("Difference", "Gain"), encoding="utf-8")
    with pytest.raises(InputError, match="'Gain' is no heading of the report"):
        fill(*places, "ende", "cpu")
    assert "old" in page.read_text(encoding="utf-8")
    page.write_text(PAGE.replace("<!-- end -->\nKept.", "Kept."), encoding="utf-8")
    with pytest.raises(InputError, match="the part 'BLEU by pairs' has no line `<!-- end -->`"):
        fill(*places, "ende", "cpu")
    assert "Kept." in page.read_text(encoding="utf-8")
    page.write_text(PAGE.removesuffix("<!-- end -->\n"), encoding="utf-8")
    with pytest.raises(InputError, match="the part 'Difference' has no line `<!-- end -->`"):
        fill(*places, "ende", "cpu")
    page.unlink()
    with pytest.raises(InputError, match=r"RESULTS\.md: no such file"):
        fill(*places, "ende", "cpu")
