"""--lm-path with our causal LM, for models that have such an LM inside as well."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import lmfusion


@pytest.fixture(scope="module")
def data(commands: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The slice with the target language's dictionary where the LM task looks for it."""
    folder = tmp_path_factory.mktemp("bitext") / "data"
    shutil.copytree(commands.bitext, folder)
    shutil.copy(folder / "dict.de.txt", folder / "dict.txt")
    return folder


@pytest.mark.parametrize("weight", [0.3, -0.2])
def test_scores_are_those_of_the_model_plus_the_weighted_lm(
    commands: Any, decode: Any, cells: Any, full_pass: Any, lm_files: Any, data: Path, cell: str, weight: float
) -> None:
    flags = ["--lm-path", lm_files["tgt"], "--lm-weight", weight]
    sentences = decode(*commands.generation(cells[cell], *flags, data=data))
    lm = lmfusion.load_lm(lm_files["tgt"])
    for sentence in list(sentences.values())[:6]:
        distribution, tokens = full_pass.distribution(sentence.source, sentence.hypotheses[0])
        with torch.no_grad():
            logits = lm(torch.cat([tokens[-1:], tokens[:-1]]).unsqueeze(0))[0][0]
        distribution += weight * logits.double().log_softmax(-1) / math.log(2)
        expected = distribution.gather(1, tokens.unsqueeze(1)).squeeze(1)
        torch.testing.assert_close(torch.tensor(sentence.scores[0]).double(), expected, rtol=0, atol=1e-3)


def test_an_lm_that_sees_the_words_it_scores_is_refused(commands: Any, cells: Any, lm_files: Any, data: Path) -> None:
    words = commands.generation(cells["TGT-ELMO"], "--lm-path", lm_files["src"], "--lm-weight", "0.3", data=data)
    assert "is a cloze language model" in commands.refused(*words)


def test_an_lm_with_another_dictionary_is_refused(
    commands: Any, cells: Any, lm_files: Any, data: Path, tmp_path: Path
) -> None:
    flags = ["--lm-path", lm_files["tgt"], "--lm-weight", "0.3"]
    shutil.copytree(data, tmp_path / "data")
    lines = (data / "dict.txt").read_text(encoding="utf-8").splitlines()
    (tmp_path / "data" / "dict.txt").write_text("\n".join([lines[0], "another 1", *lines[2:]]), encoding="utf-8")
    refused = commands.refused(*commands.generation(cells["TGT-ELMO"], *flags, data=tmp_path / "data"))
    assert f"at index 5, where the language model has {lines[1].split()[0]!r}" in refused
    assert "has 'another'" in refused
