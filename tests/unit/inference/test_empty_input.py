"""What lmfusion.load_model gives refuses sentences without tokens, and a model that takes none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import lmfusion
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.errors import InputError
from lmfusion.inference.hub import Translator

SHIPPED = Path(__file__).resolve().parents[3] / "pretrained" / "en-de.lmf"


@pytest.fixture(scope="module")
def shipped() -> Translator:
    """The English-German model."""
    return lmfusion.load_model(SHIPPED).float()


@pytest.mark.parametrize("place", [0, 1])
def test_a_sentence_without_tokens_is_named(shipped: Translator, place: int) -> None:
    sentences: list[Any] = [shipped.encode("A small server.")]
    sentences.insert(place, torch.zeros(0, dtype=torch.long))
    with pytest.raises(InputError, match=f"sentence {place}"):
        shipped.generate(sentences, beam=1)
    with pytest.raises(InputError, match="sentence 0"):
        shipped.generate(sentences[place], beam=1)
    sentences[place] = [5, 2]
    with pytest.raises(InputError, match=f"sentence {place}.*list"):
        shipped.generate(sentences, beam=1)


@pytest.mark.parametrize(
    ("tokens", "named"),
    [(torch.rand(3), "float32"), (torch.tensor([4, 1_000_000, 2]), "1000000"), (torch.tensor([4, -3, 2]), "-3")],
    ids=["no integers", "above the dictionary", "below zero"],
)
def test_what_is_no_row_of_the_dictionarys_ids_is_named(shipped: Translator, tokens: Any, named: str) -> None:
    with pytest.raises(InputError, match=f"sentence 1.*{named}"):
        shipped.generate([shipped.encode("A small server."), tokens], beam=1)


def test_what_does_not_go_with_the_beam_or_is_no_list_is_refused(shipped: Translator) -> None:
    row = shipped.encode("A small server.")
    with pytest.raises(InputError, match="groups"):
        shipped.generate([row], beam=5, diverse_beam_groups=2)
    with pytest.raises(InputError, match="generator"):
        shipped.generate(each for each in [row])


@pytest.mark.parametrize("positions", [-5, 0])
def test_a_model_that_could_read_nothing_is_refused_when_it_is_loaded(tmp_path: Path, positions: int) -> None:
    with pytest.raises(InputError, match=rf"en-de\.lmf.*max_source_positions.*{positions}"):
        lmfusion.load_model(SHIPPED, max_source_positions=positions)
    state = read_checkpoint(SHIPPED)
    for section in ("model", "task"):
        state["cfg"][section]["max_source_positions"] = positions
    torch.save(state, tmp_path / "model.lmf")
    with pytest.raises(InputError, match=r"model\.lmf"):
        lmfusion.load_model(tmp_path / "model.lmf")
