"""What is made of a finished log."""

from __future__ import annotations

from pathlib import Path

from lmfusion.runs.watchers import GenerationWatcher


def test_of_two_generations_in_a_log_the_last_one_counts(tmp_path: Path) -> None:
    log = tmp_path / "generate.log"
    log.write_text(
        "x | INFO | Translated 3 sentences (34 tokens) in 2.0s (1.50 sentences/s, 17.00 tokens/s)\n"
        "x | INFO | Translated 1,200 sentences (24,000 tokens) in 40.0s (30.00 sentences/s, 600.00 tokens/s)\n",
        encoding="utf-8",
    )
    found = GenerationWatcher("toy", 1200).result(log)
    assert found == {"sentences": 1200, "tokens": 24_000, "tokens_per_second": 600.0}
