"""The chunked criterions on real models: fairseq's figures and learning curves, and refusals."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist
from fairseq import utils
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.models.transformer import TransformerConfig, TransformerModelBase
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from lmfusion.errors import InputError
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.lm.causal import UniTransformerLanguageModel
from lmfusion.lm.cloze import BiTransformerLanguageModel
from lmfusion.training.criterions import ChunkedCrossEntropy, ChunkedLabelSmoothedCrossEntropy

QUIET = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
SOURCE, TARGET = [[4, 9, 5, 2], [7, 8, 2]], [[4, 6, 2], [5, 9, 4, 8, 2]]
TARGET_SETS = [("self",), ("future", "past"), ("self", "future", "past")]


def pairs(batch: Any) -> dict[str, Any]:
    """A sample of the translation task."""
    net_input = {
        "src_tokens": batch(SOURCE, left=True),
        "src_lengths": torch.tensor([4, 3]),
        "prev_output_tokens": batch([[2, *row[:-1]] for row in TARGET]),
    }
    return {"net_input": net_input, "target": batch(TARGET), "ntokens": 8}


def sentences(batch: Any, targets: tuple[str, ...]) -> dict[str, Any]:
    """A sample of the language modeling task."""
    if targets == ("next",):
        tokens, target = batch([[2, *row[:-1]] for row in TARGET]), batch(TARGET)
    else:
        tokens = batch([[2, *row] for row in TARGET])
        kinds = {
            "self": tokens,
            "future": batch([[*row, 1] for row in TARGET], width=6),
            "past": batch([[1, 2, *row[:-1]] for row in TARGET]),
        }
        target = kinds["self"] if targets == ("self",) else [kinds[name] for name in targets]
    return {"net_input": {"src_tokens": tokens, "src_lengths": None}, "target": target, "ntokens": 10}


def curve(model: nn.Module, criterion: Any, sample: dict[str, Any]) -> list[float]:
    """Losses of 20 updates."""
    model.train()
    torch.manual_seed(5)  # of dropout
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.02), []
    for _ in range(20):
        optimizer.zero_grad()
        loss, sample_size, _ = criterion(model, dict(sample))
        (loss / sample_size).backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq rounds log-probabilities to float32 in float64 models, too, and 20 updates make 1e-3 of that."""
    monkeypatch.setattr(utils, "log_softmax", lambda logits, dim, onnx_trace=False: logits.log_softmax(dim))


def assert_same_curve(model: Any, theirs: Any, ours: Any, sample: dict[str, Any], error: float = 1e-6) -> None:
    # Weights that differ by their last bit in float64 end 20 updates up to 3e-7 apart.
    expected = curve(copy.deepcopy(model), theirs, sample)
    assert expected[-1] < 0.95 * expected[0], "nothing was learned"
    assert curve(model, ours, sample) == pytest.approx(expected, rel=error)


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("targets", [("next",), *TARGET_SETS], ids=" ".join)
@pytest.mark.parametrize("tied", [False, True])
def test_a_language_model_learns_as_with_fairseqs_criterion(
    make_causal: Any, make_cloze: Any, task: Any, batch: Any, targets: tuple[str, ...], tied: bool
) -> None:
    flags = {**QUIET, "share_decoder_input_output_embed": tied}
    if targets == ("next",):
        model: Any = UniTransformerLanguageModel(make_causal(**flags))
    else:
        model = BiTransformerLanguageModel(make_cloze(targets, **flags))
    task.target_dictionary = task.source_dictionary
    ours = ChunkedCrossEntropy(task, sentence_avg=False, loss_chunk_tokens=3)
    assert_same_curve(model.double(), CrossEntropyCriterion(task, sentence_avg=False), ours, sentences(batch, targets))


def label_smoothed(task: Any, **settings: Any) -> tuple[Any, Any]:
    """fairseq's criterion and ours."""
    settings = {"sentence_avg": False, "label_smoothing": 0.1, **settings}
    ours = ChunkedLabelSmoothedCrossEntropy(task, **settings, loss_chunk_tokens=3)
    return LabelSmoothedCrossEntropyCriterion(task, **settings), ours


CELLS = [("none", "none"), ("elmo", "none"), ("none", "finetune")]


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("cell", CELLS, ids=" ".join)
@pytest.mark.parametrize("tied", [False, True])
def test_a_cell_learns_as_with_fairseqs_criterion(
    make_cell: Any, task: Any, batch: Any, cell: tuple[str, str], tied: bool
) -> None:
    if tied and cell[1] != "none":
        pytest.skip("a target LM has no output embeddings to share")
    cfg = make_cell(*cell, share_decoder_input_output_embed=tied)
    model = TransformerLMFusion.build_model(cfg, task)
    assert_same_curve(model.double(), *label_smoothed(task), pairs(batch))


@pytest.mark.usefixtures("exact")
def test_shared_embeddings_learn_as_with_fairseqs_criterion(make_cfg: Any, task: Any, batch: Any) -> None:
    task.source_dictionary = task.target_dictionary
    model = TransformerLMFusion.build_model(make_cfg(share_all_embeddings=True), task)
    assert_same_curve(model.double(), *label_smoothed(task), pairs(batch))


def test_bf16_products_on_a_cpu_are_those_of_fairseqs_criterion(make_cfg: Any, task: Any, batch: Any) -> None:
    model = TransformerLMFusion.build_model(make_cfg(cpu_bf16=True), task)
    assert_same_curve(model, *label_smoothed(task), pairs(batch), error=0.01)


@pytest.mark.parametrize(
    "settings",
    [{}, {"sentence_avg": True}, {"report_accuracy": True}, {"ignore_prefix_size": 1, "report_accuracy": True}],
    ids=str,
)
def test_figures_of_training_and_validation_are_fairseqs(
    make_cfg: Any, task: Any, batch: Any, settings: dict[str, Any]
) -> None:
    model, sample = TransformerLMFusion.build_model(make_cfg(), task).eval(), pairs(batch)
    theirs, ours = label_smoothed(task, **settings)
    with torch.no_grad():
        sample["target"][1, 1] = model(**sample["net_input"])[0][1, 1].argmax()  # one prediction is correct
    for enabled in (True, False):
        with torch.set_grad_enabled(enabled):
            _, size, figures = theirs(model, sample)
            found_loss, found_size, found = ours(model, sample)
        assert found_size == size
        assert found_loss.requires_grad is enabled
        assert set(found) == set(figures)
        for name in figures:
            assert float(found[name]) == pytest.approx(float(figures[name]), rel=1e-5), name
    assert "head" not in sample["net_input"]


@pytest.fixture
def process_group(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A group of this process alone."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # a group puts its own there, and leaves it
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("process_group")
@pytest.mark.parametrize("unused", [False, True], ids=["all used", "find unused"])
@pytest.mark.parametrize("tied", [False, True])
def test_the_wrapper_for_several_processes_sees_every_parameter_used(
    make_cfg: Any, task: Any, batch: Any, unused: bool, tied: bool
) -> None:
    """Output embeddings that are used outside of forward would be marked unused, and their gradient be an error."""
    model = TransformerLMFusion.build_model(make_cfg(share_decoder_input_output_embed=tied), task)
    wrapped = DistributedDataParallel(copy.deepcopy(model), find_unused_parameters=unused)
    proxy = nn.Module.__getattr__  # what fairseq's wrapper adds: attributes of the model inside
    wrapped.takes_head, wrapped.get_targets = True, proxy(wrapped, "module").get_targets
    _, ours = label_smoothed(task)
    for step in range(2):
        for run in (model, wrapped):
            run.zero_grad()
            ours(run, pairs(batch))[0].backward()
        for (name, alone), together in zip(model.named_parameters(), wrapped.parameters()):
            torch.testing.assert_close(together.grad, alone.grad, msg=f"{name}, step {step}")


def test_what_is_not_computed_in_chunks_is_refused(make_cfg: Any, task: Any, batch: Any) -> None:
    _, ours = label_smoothed(task)
    plain = TransformerModelBase.build_model(TransformerConfig.from_namespace(make_cfg()), task)
    with pytest.raises(InputError, match="need a model of lmfusion's"):
        ours(plain, pairs(batch))
    model = TransformerLMFusion.build_model(make_cfg(), task)
    with pytest.raises(InputError, match="give sums only"):
        ours(model, pairs(batch), reduce=False)
    with pytest.raises(InputError, match="--loss-chunk-tokens -1 is no number of tokens"):
        ChunkedCrossEntropy(task, False, loss_chunk_tokens=-1)(model, pairs(batch))
    model.decoder.adaptive_softmax = SimpleNamespace()
    with pytest.raises(InputError, match="--adaptive-softmax-cutoff"):
        ours(model, pairs(batch))
