"""fairseq-generate's ways of searching: what they promise, and every printed score against a full pass."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

import lmfusion
from lmfusion.checkpoint.reading import read_checkpoint

SENTENCES = 25


def test_nbest_scores_are_the_models(commands: Any, decode: Any, cells: Any, full_pass: Any, cell: str) -> None:
    sentences = decode(*commands.generation(cells[cell], "--beam", 3, "--nbest", 3))
    assert len(sentences) == SENTENCES
    full_pass.check(sentences)
    for sentence in sentences.values():
        means = [round(sum(scores) / len(scores), 3) for scores in sentence.scores]
        assert len(set(sentence.hypotheses)) == 3
        assert means == sorted(means, reverse=True)
    assert len({sentence.hypotheses[0] for sentence in sentences.values()}) > 5


def test_forced_prefixes_are_kept_and_scored(commands: Any, decode: Any, cells: Any, full_pass: Any, cell: str) -> None:
    sentences = decode(*commands.generation(cells[cell], "--prefix-size", 2))
    full_pass.check(sentences)
    for sentence in sentences.values():
        assert sentence.hypotheses[0].split()[:2] == sentence.reference.split()[:2]


def test_samples_come_from_the_models_first_five(
    commands: Any, decode: Any, cells: Any, full_pass: Any, cell: str
) -> None:
    flags = ["--sampling", "--sampling-topk", 5, "--beam", 1, "--seed", 3]
    sentences = decode(*commands.generation(cells[cell], *flags))
    full_pass.check(sentences)
    ranks = set()
    for sentence in list(sentences.values())[:6]:
        distribution, tokens = full_pass.distribution(sentence.source, sentence.hypotheses[0])
        distribution[0, tokens[-1]] = -math.inf  # no </s> before a first token
        higher = distribution.gt(distribution.gather(1, tokens.unsqueeze(1))).sum(dim=1)
        ranks |= set(higher[:-1].tolist())  # the last is </s>, forced by the length limit
    assert ranks == {0, 1, 2, 3, 4}


@pytest.mark.slow
def test_no_bigram_stands_in_a_hypothesis_twice(
    commands: Any, decode: Any, cells: Any, full_pass: Any, cell: str
) -> None:
    def repeats(sentence: Any) -> bool:
        words = sentence.hypotheses[0].split()
        return len(set(zip(words, words[1:]))) < len(words) - 1

    free = decode(*commands.generation(cells[cell]))
    sentences = decode(*commands.generation(cells[cell], "--no-repeat-ngram-size", 2))
    full_pass.check(sentences)
    assert any(repeats(sentence) for sentence in free.values())
    assert not any(repeats(sentence) for sentence in sentences.values())


@pytest.mark.slow
def test_the_first_diverse_group_is_a_search_of_its_own(
    commands: Any, decode: Any, cells: Any, full_pass: Any, cell: str
) -> None:
    """The second of the two pays for every token it has in common with the first."""
    flags = ["--diverse-beam-groups", 2, "--diverse-beam-strength", 0.5, "--beam", 2, "--nbest", 2]
    sentences = decode(*commands.generation(cells[cell], *flags))
    greedy = decode(*commands.generation(cells[cell], "--beam", 1))
    for number, sentence in list(sentences.items())[:6]:
        first = sentence.hypotheses.index(greedy[number].hypotheses[0])
        expected = [full_pass.scores(sentence.source, text) for text in sentence.hypotheses]
        assert max(abs(a - b) for a, b in zip(sentence.scores[first], expected[first])) < 1e-3
        assert sum(sentence.scores[1 - first]) < sum(expected[1 - first]) + 1e-3
    assert any(len(set(sentence.hypotheses)) == 2 for sentence in sentences.values())


def test_references_are_scored(commands: Any, decode: Any, cells: Any, full_pass: Any, cell: str) -> None:
    sentences = decode(*commands.generation(cells[cell], "--score-reference"))
    assert all(sentence.hypotheses == [sentence.reference] for sentence in sentences.values())
    full_pass.check(sentences)


def test_validation_loss_is_the_mean_over_tokens(commands: Any, cells: Any, full_pass: Any, cell: str) -> None:
    words = ["fairseq-validate", commands.bitext, "--task", "translation", "--path", cells[cell], "--cpu"]
    words += ["--valid-subset", "test", "--max-tokens", 1000, "--log-format", "json", "--user-dir", lmfusion.USER_DIR]
    printed = float(commands.ok(*words).split('"test_nll_loss": "')[1].split('"')[0])
    texts = [(commands.prepared / "bpe" / f"test.{lang}").read_text(encoding="utf-8") for lang in ("en", "de")]
    pairs = zip(*(text.splitlines() for text in texts))
    scores = [score for source, target in pairs for score in full_pass.scores(source, target)]
    assert abs(printed + sum(scores) / len(scores)) < 2e-3


def test_ensemble_of_two_cells_averages_probabilities(commands: Any, decode: Any, cells: Any, full_passes: Any) -> None:
    sentences = decode(*commands.generation(":".join(map(str, cells.values()))))
    for sentence in list(sentences.values())[:6]:
        found = [full.distribution(sentence.source, sentence.hypotheses[0]) for full in full_passes.values()]
        mean = (sum(torch.exp2(distribution) for distribution, _ in found) / 2).log2()
        expected = mean.gather(1, found[0][1].unsqueeze(1)).squeeze(1)
        torch.testing.assert_close(torch.tensor(sentence.scores[0]).double(), expected, rtol=0, atol=1e-3)


@pytest.mark.slow
def test_average_of_two_checkpoints_decodes(
    commands: Any, decode: Any, cells: Any, full_passes: Any, tmp_path: Path
) -> None:
    first, weight = cells["TGT-ELMO"], "decoder.layers.0.fc1.weight"
    state = read_checkpoint(first)
    state["model"] = {name: t + 0.5 if t.is_floating_point() else t for name, t in state["model"].items()}
    torch.save(state, tmp_path / "second.pt")
    commands.ok("lmfusion", "average", first, first, "--out", tmp_path / "same.pt")
    commands.ok("lmfusion", "average", first, tmp_path / "second.pt", "--out", tmp_path / "mean.pt")
    assert decode(*commands.generation(tmp_path / "same.pt")) == decode(*commands.generation(first))
    sentences = decode(*commands.generation(tmp_path / "mean.pt"))
    type(full_passes["TGT-ELMO"])(lmfusion.load_model(tmp_path / "mean.pt")).check(sentences)
    mean = read_checkpoint(tmp_path / "mean.pt")["model"][weight]
    torch.testing.assert_close(mean, read_checkpoint(first)["model"][weight] + 0.25)
