"""Raw text in, raw text out: fairseq-interactive and load_model(…).translate, with tokenizer and BPE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lmfusion


def interactive(commands: Any, checkpoint: Path, text: Path, *flags: object) -> list[object]:
    """fairseq-interactive on a file of raw text."""
    words = ["fairseq-interactive", commands.bitext, "--path", checkpoint, "--input", text, "-s", "en", "-t", "de"]
    words += ["--beam", 2, "--max-len-b", 10, "--buffer-size", 8, "--batch-size", 8, *commands.text_flags]
    return [*words, "--user-dir", lmfusion.USER_DIR, "--cpu", *flags]


@pytest.mark.slow
def test_raw_text_gives_what_generate_gives(
    commands: Any, decode: Any, cells: Any, full_pass: Any, tmp_path: Path, cell: str
) -> None:
    raw = (commands.prepared / "text" / "test.en").read_text(encoding="utf-8").splitlines()
    (tmp_path / "raw.en").write_text("\n".join(raw), encoding="utf-8")
    generated = decode(*commands.generation(cells[cell], *commands.text_flags))
    answers = decode(*interactive(commands, cells[cell], tmp_path / "raw.en"))
    assert len(answers) == len(generated) == len(raw) == 25
    for number, sentence in answers.items():
        assert (sentence.hypotheses, sentence.texts) == (generated[number].hypotheses, generated[number].texts)
        assert sentence.scores[0] == pytest.approx(generated[number].scores[0], abs=1e-3)
    translated = full_pass.model.translate(raw, beam=2, max_len_b=10)
    assert translated == [sentence.texts[0] for sentence in generated.values()]


@pytest.mark.slow
def test_constraints_stand_in_the_translation(
    commands: Any, decode: Any, cells: Any, full_pass: Any, tmp_path: Path, cell: str
) -> None:
    """In the order given; a sentence may have none."""
    lines = ["A small library.\tDatei", "This package contains files.\tBibliothek\tund", "It is a tool."]
    (tmp_path / "raw.en").write_text("\n".join(lines), encoding="utf-8")
    sentences = decode(*interactive(commands, cells[cell], tmp_path / "raw.en", "--constraints", "--beam", 4))
    full_pass.check(sentences)
    assert [len(sentence.constraints) for sentence in sentences.values()] == [1, 2, 0]
    for sentence in sentences.values():
        places = [f" {sentence.hypotheses[0]} ".find(f" {words} ") for words in sentence.constraints]
        assert -1 not in places
        assert places == sorted(places)
