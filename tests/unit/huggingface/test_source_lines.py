"""S- lines of fairseq-generate in a model's pieces become text in what is read of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest

from lmfusion.scoring import generate_output
from lmfusion.scoring.model_pieces import piece_joiner
from lmfusion.text.huggingface import PieceTokenizer

pytest.importorskip("transformers")

Saved = Callable[[str], Path]


@pytest.mark.parametrize("model_type", ["bert", "roberta", "xlm-roberta", "gpt2"])
def test_sources_are_text_whatever_pieces_they_are_in(
    saved_models: Saved, corpus: Any, tmp_path: Path, model_type: str
) -> None:
    tokenizer = PieceTokenizer.from_folder(saved_models(model_type))
    lines = [line for line in [*corpus("en", 200), "a \\ and \\20;"] if "<unk>" not in tokenizer.encode(line)]
    assert len(lines) > 180
    printed = [
        f"S-{number}\t{' '.join(tokenizer.encode(line))}\nH-{number}\t-0.1\t▁ja\nD-{number}\t-0.1\tja\n"
        for number, line in enumerate(lines)
    ]
    (tmp_path / "generate.log").write_text("".join(printed), encoding="utf-8")
    found = generate_output.read(tmp_path / "generate.log")
    if model_type == "bert":  # which does not say where punctuation stood
        assert ["".join(line.split()) for line in found.sources] == ["".join(line.split()) for line in lines]
    elif model_type != "xlm-roberta":
        assert found.sources == lines
    else:
        assert found.sources[:-1] == lines[:-1]  # an escaped backslash stays
    assert set(found.hypotheses) == {"ja"}


def test_a_text_with_number_signs_stays_as_it_is() -> None:
    assert piece_joiner(["a heading is written ## like this in that language", "## here", *["and so on"] * 9]) is None
