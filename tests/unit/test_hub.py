"""What lmfusion.load_model gives: sources longer than the model takes are cut as in training, or refused."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from fairseq.hub_utils import GeneratorHubInterface

from lmfusion.errors import UserError
from lmfusion.hub import Translator

EOS = 2


@pytest.fixture
def translator(monkeypatch: pytest.MonkeyPatch) -> Translator:
    """Takes 5 tokens; a sentence's tokens are the lengths of its words."""
    monkeypatch.setattr(
        GeneratorHubInterface, "encode", lambda _, text: torch.tensor([*(len(word) for word in text.split()), EOS])
    )
    made = Translator.__new__(Translator)
    torch.nn.Module.__init__(made)
    made.max_positions = (5, 1024)
    made.task = SimpleNamespace(cfg=SimpleNamespace(truncate_source=False))
    return made


def test_a_sentence_that_fits_is_left_alone(translator: Translator) -> None:
    assert translator.encode("aaa bbbb ccccc aaa").tolist() == [3, 4, 5, 3, EOS]


def test_a_longer_one_is_cut_as_in_training(translator: Translator) -> None:
    """fairseq's --truncate-source keeps the first words and the final </s>."""
    translator.task.cfg.truncate_source = True
    assert translator.encode("aaa bbbb ccccc aaa bbbb ccccc").tolist() == [3, 4, 5, 3, EOS]


def test_otherwise_it_is_refused_with_both_lengths(translator: Translator) -> None:
    with pytest.raises(UserError, match=r"7 tokens is longer than the 5 the model takes: cut or split it \(aaa bbbb"):
        translator.encode("aaa bbbb ccccc aaa bbbb ccccc")
