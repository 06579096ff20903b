"""The trigram model: probabilities that add up, against the formula worked by hand, and the table of a folder."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
import trigram_perplexity
from trigram_perplexity import Trigrams

TEXT = [line.split() for line in ["a b a c", "a b b", "c a b", "b", "c c a", "d a b a", "a d", "b c d a"]]
SYMBOLS = ["a", "b", "c", "d", "</s>", "never"]


@pytest.mark.parametrize("context", [("<s>", "<s>"), ("<s>", "a"), ("a", "b"), ("b", "never"), ("never", "a")])
def test_probabilities_after_any_context_add_up_to_one(context: tuple[str, str]) -> None:
    model = Trigrams(TEXT, len(SYMBOLS))
    found = [model.probability(*context, symbol) for symbol in SYMBOLS]
    assert sum(found) == pytest.approx(1, abs=1e-12)
    assert min(found) > 0


def test_probability_by_hand() -> None:
    """Of "a b", once: each order's discount is 1/1 - 2 (1/1) 0 = 1, so all counts of one leave all to shorter ones."""
    model = Trigrams([["a", "b"]], 4)
    assert model.probability("<s>", "a", "b") == pytest.approx(1 / 4)
    # "a" twice at the beginning: D1 = 1 - 2 Y n2/n1 and D2 = 2 with Y = n1 / (n1 + 2 n2). Trigrams: <s> <s> a twice;
    # <s> a a, a a </s>, <s> a </s> once: Y = 3/5, D1 = 1 - 2/5 = 3/5, D2 = 2. Bigrams follow 1 symbol each (<s> a,
    # a a) or 2 (a </s>): Y = 2/4, D1 = 1/2, D2 = 2. Unigrams follow 2 (a) or 1 (</s>): Y = 1/3, D1 = 1/3, D2 = 2.
    model = Trigrams([["a", "a"], ["a"]], 4)
    unigram = (2 - 2 + (2 + 1 / 3) / 4) / 3
    bigram = (1 - 1 / 2 + (1 / 2 + 2) * unigram) / 3  # after a: a once, </s> twice
    assert model.probability("<s>", "a", "a") == pytest.approx((1 - 3 / 5 + 6 / 5 * bigram) / 2)


def test_perplexity_counts_the_end_of_each_sentence() -> None:
    model = Trigrams(TEXT, len(SYMBOLS))
    logs = [model.probability(*ngram) for ngram in (("<s>", "<s>", "b"), ("<s>", "b", "</s>"))]
    assert model.perplexity([["b"]]) == pytest.approx(math.prod(logs) ** -0.5)


def test_table_of_a_prepared_folder(tmp_path: Path) -> None:
    command = [sys.executable, trigram_perplexity.__file__, str(tmp_path), "--lang", "de"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "mono.valid.de: no such file. It is made by prepare.py" in done.stderr
    (tmp_path / "bpe").mkdir()
    lines = [" ".join(sentence) for sentence in TEXT]
    for name, text in {"valid": lines[:2], "train": lines[2:], "more": lines[:2]}.items():
        (tmp_path / "bpe" / f"mono.{name}.de").write_text("\n".join(text) + "\n")
    (tmp_path / "dict.txt").write_text("a 1\nb 1\nc 1\nd 1\nnever 0\n")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = dict(line.split("\t", 1) for line in done.stdout.splitlines()[1:])
    assert rows["all and more"].split("\t")[:2] == ["8", str(sum(len(sentence) + 1 for sentence in TEXT))]
    expected = Trigrams([*TEXT[2:], *TEXT[:2]], len(SYMBOLS)).perplexity(TEXT[:2])
    assert rows["all and more"].endswith(f"\t{expected:.2f}")
    assert list(rows) == ["a quarter", "a half", "all", "more alone", "all and half of more", "all and more"]
