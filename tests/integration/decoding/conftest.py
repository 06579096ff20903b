"""Two models with an LM on the target side, what the commands print of them, and a full pass to hold against it.

The models are the real ones of two updates with noise on every matrix, so that sentences differ in their translations.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

import pytest
import torch
from torch import Tensor

import lmfusion
from lmfusion.checkpoint.reading import read_checkpoint

CELLS = {
    "TGT-ELMO": ("--arch", "tgt_elmo_tiny", "--tgt-lm", "{tgt}", "--tgt-elmo-affine"),
    "SRC-ELMO+TGT-FT": (
        *("--arch", "src_elmo_tiny", "--src-lm", "{src}", "--tgt-fusion", "finetune", "--tgt-lm", "{tgt}"),
    ),
}


@dataclass
class Sentence:
    """What fairseq-generate or -interactive prints of one."""

    source: str = ""
    reference: str = ""
    constraints: list[str] = field(default_factory=list)
    hypotheses: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    scores: list[list[float]] = field(default_factory=list)
    """Of the tokens of each hypothesis, </s> included; logarithms to the base of 2."""


def parse(output: str) -> dict[int, Sentence]:
    """The lines of all sentences by number."""
    found: dict[int, Sentence] = defaultdict(Sentence)
    for line in output.splitlines():
        kind, dash, rest = line.partition("-")
        number, *columns = rest.split("\t")
        if not (dash and kind in set("STCHDP") and number.isdigit()):
            continue
        sentence = found[int(number)]
        if kind == "S":
            sentence.source = columns[0]
        elif kind == "T":
            sentence.reference = columns[0]
        elif kind == "C":
            sentence.constraints.append(columns[0])
        elif kind == "P":
            sentence.scores.append([float(score) for score in columns[0].split()])
        else:
            (sentence.hypotheses if kind == "H" else sentence.texts).append(columns[1])
    return dict(sorted(found.items()))


@pytest.fixture(params=[name if name == "TGT-ELMO" else pytest.param(name, marks=pytest.mark.slow) for name in CELLS])
def cell(request: pytest.FixtureRequest) -> str:
    """Each of the two in turn."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def cells(commands: Any, lm_files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A checkpoint of each."""
    out, saved = tmp_path_factory.mktemp("cells"), {}
    for name, flags in CELLS.items():
        words = [flag.format(**lm_files) for flag in flags] + commands.text_flags
        commands.ok(*commands.training(out / name, 2, *words))
        state = read_checkpoint(out / name / "checkpoint_last.pt")
        generator = torch.Generator().manual_seed(1)
        for tensor in state["model"].values():
            if tensor.is_floating_point() and tensor.dim() > 1:
                tensor.add_(torch.randn(tensor.shape, generator=generator), alpha=0.2)
        saved[name] = out / f"{name}.pt"
        torch.save(state, saved[name])
    return saved


@pytest.fixture
def decode(commands: Any) -> Callable[..., dict[int, Sentence]]:
    """Run a command; what it prints of every sentence."""
    return lambda *words: parse(commands.ok(*words))


class FullPass:
    """Scores from one pass over a whole hypothesis, without cache or search."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def distribution(self, source: str, target: str) -> tuple[Tensor, Tensor]:
        """log2 P(. | prefix), T x V in float64 from the logits on, and the target's T tokens, </s> included."""
        src = self.model.task.source_dictionary.encode_line(source, add_if_not_exist=False).long().unsqueeze(0)
        tokens = self.model.task.target_dictionary.encode_line(target, add_if_not_exist=False).long()
        previous = torch.cat([tokens[-1:], tokens[:-1]]).unsqueeze(0)
        with torch.no_grad():
            logits = self.model.models[0](src, torch.tensor([src.size(1)]), previous)[0][0]
        return logits.double().log_softmax(-1) / math.log(2), tokens

    def scores(self, source: str, target: str) -> list[float]:
        """Of the target's tokens."""
        distribution, tokens = self.distribution(source, target)
        return distribution.gather(1, tokens.unsqueeze(1)).squeeze(1).tolist()

    def check(self, sentences: dict[int, Sentence], first: int = 6) -> None:
        """What was printed of the first sentences' hypotheses is this."""
        for sentence in list(sentences.values())[:first]:
            assert sentence.hypotheses
            for hypothesis, scores in zip(sentence.hypotheses, sentence.scores):
                assert scores == pytest.approx(self.scores(sentence.source, hypothesis), abs=1e-3)


@pytest.fixture(scope="session")
def full_passes(cells: dict[str, Path]) -> dict[str, FullPass]:
    """Of each model."""
    return {name: FullPass(lmfusion.load_model(path)) for name, path in cells.items()}


@pytest.fixture
def full_pass(full_passes: dict[str, FullPass], cell: str) -> FullPass:
    """Of the model that it is the turn of."""
    return full_passes[cell]
