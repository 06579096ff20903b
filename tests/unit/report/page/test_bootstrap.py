"""What is kept of a paired bootstrap is taken again for the same texts and samples alone."""

from __future__ import annotations

import pytest
import sacrebleu

from lmfusion.report.page.bootstrap import BASELINE, Bootstrap

SIGNATURE = "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
REFERENCES = ["das ist ein kleines Haus", "das sind zwei alte Bäume", "das sind drei grüne Vögel"]
OTHERS = ["dies ist ein kleines altes Haus", "dort sind zwei alte Bäume", "dort sind drei sehr grüne Vögel"]
OURS, THEIRS = ["das ist ein Haus", *REFERENCES[1:]], [*REFERENCES[:2], "das sind drei Vögel"]


def test_against_other_references_it_is_computed_again() -> None:
    bootstrap = Bootstrap(None)
    for references in (REFERENCES, OTHERS):
        found = bootstrap.test(OURS, {"mix": THEIRS}, references, SIGNATURE)
        scores = {name: results[0].score for name, results in found.items()}
        expected = {BASELINE: OURS, "mix": THEIRS}
        for name, lines in expected.items():
            assert scores[name] == pytest.approx(sacrebleu.corpus_bleu(lines, [references]).score, abs=1e-4)


def test_with_another_seed_other_samples_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    bootstrap = Bootstrap(None)
    for seed in ("7", "8"):
        monkeypatch.setenv("SACREBLEU_SEED", seed)
        found = bootstrap.test(OURS, {"mix": THEIRS}, REFERENCES, SIGNATURE)
        assert f"|seed:{seed}|" in found["mix"][0].signature
