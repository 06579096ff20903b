"""fairseq-interactive on plain text, with what a trained checkpoint or a packed file holds."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lmfusion

BEAM = ("--beam", 2, "--max-len-b", 10)
Saved = Callable[..., Path]


def interactive(commands: Any, model: Path, text: Path, *flags: object, data: Path | None = None) -> list[str]:
    """What fairseq-interactive prints of each line, detokenized, and the rest of its output."""
    output: str = commands.ok(*interactive_words(commands, model, text, *flags, data=data))
    return output.splitlines()


def interactive_words(commands: Any, model: Path, text: Path, *flags: object, data: Path | None = None) -> list[object]:
    """Its command line."""
    words = ["fairseq-interactive", data or commands.bitext, "--path", model, "--input", text, "-s", "en", "-t", "de"]
    return [*words, *BEAM, "--buffer-size", 16, "--batch-size", 16, "--user-dir", lmfusion.USER_DIR, "--cpu", *flags]


def detokenized(output: list[str]) -> list[str]:
    """The D lines in the order of the input."""
    found = [line.split("\t") for line in output if line.startswith("D-")]
    return [" ".join(cells[2].split()) for cells in sorted(found, key=lambda cells: int(cells[0][2:]))]


@pytest.mark.slow
def test_interactive_takes_bpe_and_tokenizer_from_the_checkpoint(
    commands: Any, trained: Path, packed: Path, text: Path, translations: list[str]
) -> None:
    given = interactive(commands, trained, text, *commands.text_flags)
    assert detokenized(given) == [" ".join(line.split()) for line in translations]
    for model in (trained, packed):
        alone = interactive(commands, model, text)
        assert detokenized(alone) == detokenized(given)
        assert any("sentencepiece" in line and "from the checkpoint" in line for line in alone)


@pytest.mark.slow
def test_interactive_as_a_module_takes_them_too(
    commands: Any, packed: Path, text: Path, translations: list[str]
) -> None:
    """``python -m fairseq_cli.interactive`` runs another main than the command does."""
    words = [
        "-m",
        "fairseq_cli.interactive",
        commands.bitext,
        "--path",
        packed,
        "--input",
        text,
        "-s",
        "en",
        "-t",
        "de",
    ]
    words += [*BEAM, "--buffer-size", 16, "--user-dir", lmfusion.USER_DIR, "--cpu"]
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=True)
    assert detokenized(done.stdout.splitlines()) == [" ".join(line.split()) for line in translations]


@pytest.mark.slow
def test_interactive_does_not_encode_twice(commands: Any, trained: Path, packed: Path, tmp_path: Path) -> None:
    """Pieces with --remove-bpe give what they give with --bpe none; pieces alone are refused."""
    pieces = commands.prepared / "bpe" / "test.en"
    for model in (trained, packed):
        given = interactive(commands, model, pieces, "--tokenizer", "space", "--bpe", "none")
        joined = interactive(commands, model, pieces, "--remove-bpe", "sentencepiece")
        expected = [text.replace(" ", "").replace("▁", " ").strip() for text in detokenized(given)]
        assert detokenized(joined) == expected
        assert any(" " in text for text in expected)
    refused = commands.refused(*interactive_words(commands, trained, pieces))
    assert "▁" in refused
    assert "--bpe none" in refused


@pytest.mark.slow
def test_interactive_says_that_plain_text_needs_a_bpe_where_there_is_none(
    commands: Any, changed: Saved, text: Path
) -> None:
    output = interactive(commands, changed(text=None), text)
    told = [line for line in output if "plain text needs" in line and "--bpe" in line]
    assert len(told) == 1
    encoded = text.with_suffix(".bpe")
    encoded.write_text("▁A ▁library .\n", encoding="utf-8")
    assert not [line for line in interactive(commands, changed(text=None), encoded) if "plain text needs" in line]
