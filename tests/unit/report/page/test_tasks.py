"""Of which test sets an average is shown."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("references", "averages"),
    [(("a", "a"), ["average of newstest2012 to newstest2013 (en-de)"]), (("a", "b"), [])],
    ids=["one text", "two texts of one name"],
)
def test_test_sets_of_one_name_and_different_references_have_no_average(
    maker, compared, references: tuple[str, str], averages: list[str]
) -> None:
    for seed, reference in enumerate(references, start=1):
        sets = {"newstest2012": reference, "newstest2013": "another"}
        scores = {name: maker.bleu(10.0, name, text) for name, text in sets.items()}
        maker.run(f"base-{seed}", scores=scores, seed=seed)
    titles = [comparison.task.title for comparison in compared(maker.folder)[0]]
    assert [title for title in titles if "average" in title] == averages
    assert len(titles) == len(averages) + len(set(references)) + 1
