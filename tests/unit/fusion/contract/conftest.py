"""Every registered family x integration x side in every consumer, in process: a test of a cell runs for each."""

from __future__ import annotations

import json
import runpy
from argparse import Namespace
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import pytest
from fairseq.data import Dictionary
from torch import Tensor

from lmfusion.consumers.lstm import LSTMFusion
from lmfusion.convert.variant import LMOutputSpec, StateList
from lmfusion.fusion.interface import FUSIONS
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.lm.interface import FAMILIES, PretrainedLM
from lmfusion.lm.loading import build, describe

TRANSFORMER = {
    "decoder_embed_dim": 16,
    "decoder_ffn_embed_dim": 24,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "tokens_per_sample": 30,
    "max_target_positions": 30,
    "dropout": 0.5,  # that it is off in a frozen model has to show
}
SIZES = {"vocab_size": 24, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
ROTARY = {"num_key_value_heads": 1, "max_position_embeddings": 30, "attention_dropout": 0.5}
RECURRENT = {
    "decoder_embed_dim": 16,
    "decoder_layers": 2,
    "tokens_per_sample": 30,
    "max_target_positions": 30,
    "dropout": 0.5,
}
READING = LMOutputSpec(leading_eos=False, states=StateList(paired=False, context=True, joined=True)).to_dict()
# The example of docs/extending.md is held to the contract, too; an integration of one's own registers before install().
runpy.run_path(str(Path(__file__).parents[4] / "docs" / "own_parts" / "random_vectors.py"), run_name="own_family")
TINY: dict[str, dict[str, Any]] = {
    "bert": TRANSFORMER,
    "cloze": {**TRANSFORMER, "targets": ["self"]},
    "causal": TRANSFORMER,
    "recurrent": {**RECURRENT, "cell": "lstm"},
    "elmo": {**RECURRENT, "cell": "gru"},
    "static": {"channels": 16},
    "huggingface": {
        "model_type": "bert",
        "settings": {**SIZES, "max_position_embeddings": 30, "hidden_dropout_prob": 0.5},
    },
    "huggingface_causal": {"model_type": "qwen2", "settings": {**SIZES, **ROTARY}, "opening": []},
    "random_vectors": {"channels": 16},
    "released": {**TRANSFORMER, "targets": ["self"], "reading": READING},
}
"""For each registered family a configuration of some hundred parameters."""

SIDES = ("src", "tgt")
ALL = [cell for cell in product(sorted(TINY), sorted(FUSIONS), SIDES) if cell[2] in FUSIONS[cell[1]].sides]
UNUSABLE = [cell for cell in ALL if FUSIONS[cell[1]].refusal(FAMILIES[cell[0]]) is not None]
FITTING = [
    (family, fusion, side)
    for family, fusion, side in sorted(set(ALL) - set(UNUSABLE))
    if side == "src" or not FAMILIES[family].sees_future
]
# A released LM is found inside sequence-to-sequence models only, and a Hugging Face folder is more than a checkpoint
# (tests/unit/huggingface).
NO_FILE = ("released", "huggingface")
REFUSED = sorted(
    {
        (family, fusion)
        for family, fusion, _ in ALL
        if "tgt" in FUSIONS[fusion].sides
        if FAMILIES[family].sees_future and family not in NO_FILE
    }
)
CONSUMERS: dict[str, Any] = {"transformer": TransformerLMFusion, "lstm": LSTMFusion}
WITH_CONSUMERS = [
    (consumer, *cell)
    for consumer, cell in product(CONSUMERS, FITTING)
    if consumer == "transformer" or FUSIONS[cell[1]].replaces_embeddings  # what works inside its layers needs them
]


def every(cells: list[Any]) -> Any:
    """A fixture that has each of these in turn."""
    return pytest.fixture(params=cells, ids=map("-".join, cells))


@pytest.fixture
def families() -> list[str]:
    """Every family that tests are given."""
    return list(TINY)


@pytest.fixture
def make_lm(dictionary: Dictionary, shake: Any) -> Callable[[str], PretrainedLM]:
    """A language model of a family, in eval mode."""

    def make(family: str) -> PretrainedLM:
        if family.startswith("huggingface"):
            pytest.importorskip("transformers")
        lm: PretrainedLM = shake(build({"family": family, **TINY[family]}, dictionary.symbols)).eval()
        return lm

    return make


@pytest.fixture(params=sorted(TINY))
def lm(request: pytest.FixtureRequest, make_lm: Callable[[str], PretrainedLM]) -> PretrainedLM:
    """One of every family."""
    return make_lm(request.param)


@pytest.fixture(params=sorted(name for name in TINY if FAMILIES[name].incremental))
def incremental_lm(request: pytest.FixtureRequest, make_lm: Callable[[str], PretrainedLM]) -> PretrainedLM:
    """One of every family that decodes."""
    return make_lm(request.param)


@pytest.fixture
def task(dictionary: Dictionary) -> SimpleNamespace:
    """Of both languages, the language models' dictionary."""
    return SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)


@pytest.fixture
def consumers(make_cfg: Any, make_lstm_cfg: Any) -> dict[str, SimpleNamespace]:
    """Model classes, and what makes their flags; the LSTM's attention is the one that keeps something of the source."""
    additive = partial(make_lstm_cfg, decoder_attention="additive", encoder_bidirectional=True)
    flags = {"transformer": make_cfg, "lstm": additive}
    return {name: SimpleNamespace(kind=CONSUMERS[name], make_flags=flags[name]) for name in CONSUMERS}


@dataclass
class Cell:
    """A model with a language model of a family in it, in eval mode, its flags, and what makes both."""

    model: Any
    cfg: Namespace
    consumer: SimpleNamespace
    family: str
    fusion: str
    side: str

    @property
    def part(self) -> Any:
        """The integration in the model."""
        return (self.model.encoder if self.side == "src" else self.model.decoder).fusion


@pytest.fixture
def make_cell(consumers: Any, make_lm: Any, task: SimpleNamespace, shake: Any) -> Callable[..., Cell]:
    """Build a cell: ``make_cell("lstm", "cloze", "elmo", "src")``."""

    def make(consumer: str, family: str, fusion: str, side: str) -> Cell:
        lm, chosen = make_lm(family), consumers[consumer]
        description = {"lm": describe(lm), "states": lm.state_names, "fingerprint": "of the tests"}
        cfg = chosen.make_flags(**{f"{side}_fusion": fusion, f"{side}_lm_config": json.dumps(description)})
        model = shake(chosen.kind.build_model(cfg, task))
        model.load_state_dict(model.state_dict())  # the language model has its weights now
        return Cell(model.eval(), cfg, chosen, family, fusion, side)

    return make


@every(WITH_CONSUMERS)
def cell(request: pytest.FixtureRequest, make_cell: Callable[..., Cell]) -> Cell:
    """Every cell that fits."""
    return make_cell(*request.param)


@every([cell for cell in WITH_CONSUMERS if FUSIONS[cell[2]].keeps_lm])
def cell_with_lm(request: pytest.FixtureRequest, make_cell: Callable[..., Cell]) -> Cell:
    """Every one that keeps its language model."""
    return make_cell(*request.param)


@every([cell for cell in WITH_CONSUMERS if not FUSIONS[cell[2]].keeps_lm])
def started_cell(request: pytest.FixtureRequest, make_cell: Callable[..., Cell]) -> Cell:
    """Every one whose language model is what it starts from."""
    return make_cell(*request.param)


@every([(consumer, *cell) for consumer, cell in product(CONSUMERS, UNUSABLE)])
def unusable(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Every consumer, family, integration and side of which the integration needs what the family lacks."""
    cell: tuple[str, ...] = request.param
    return cell


@every([(consumer, *cell) for consumer, cell in product(CONSUMERS, REFUSED)])
def seeing_the_future(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Every consumer, family and integration with a target side of which the family sees the future."""
    cell: tuple[str, ...] = request.param
    return cell


@pytest.fixture
def output() -> Callable[..., Tensor]:
    """Logits, B x T x V: ``output(model, sources, prefixes)``."""
    return lambda model, sources, prefixes: model(sources, sources.ne(1).sum(1), prefixes)[0]
