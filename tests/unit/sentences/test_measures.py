"""What is measured and logged: of whole lists, of batches added up, in training and in validation."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fairseq import metrics
from fairseq.logging.metrics import aggregate
from scipy.stats import pearsonr
from sklearn.metrics import accuracy_score, f1_score

from lmfusion import cli
from lmfusion.consumers.heads import HeadSpec, scores
from lmfusion.inference import predicting
from lmfusion.training import sentence_measures as measures
from lmfusion.training.sentence_criterion import SentenceTasksConfig, SentenceTasksCriterion
from lmfusion.training.sentence_data import Encoded, SentenceData, evaluation_batches
from lmfusion.training.sentences import SentencesConfig, SentencesTask

CLASS = HeadSpec("mood", "class", None, ("bad", "good"))
SAME = HeadSpec("same", "binary", "concat", ("0", "1"))
TAGS = HeadSpec("words", "tags", None, ("N", "V"))


@pytest.fixture
def criterion() -> SentenceTasksCriterion:
    cfg: Any = SentenceTasksConfig()
    cfg.seed = 1
    return SentenceTasksCriterion(cfg, SimpleNamespace(target_dictionary=None))


def test_sums_of_batches_give_the_measures_of_whole_lists() -> None:
    generator = torch.Generator().manual_seed(1)
    logits, wanted = torch.randn(50, generator=generator), 5 * torch.rand(50, generator=generator)
    spec = HeadSpec("near", "score", "cos")
    parts = [measures.counts(spec, logits[i : i + 7], wanted[i : i + 7], torch.tensor(0.0)) for i in range(0, 50, 7)]
    sums = {name: float(sum(part[name] for part in parts)) for name in ("n", "x", "y", "xx", "yy", "xy")}
    expected = pearsonr(scores(logits).double().numpy(), wanted.double().numpy())[0]
    assert measures.pearson(**sums) == pytest.approx(expected, abs=1e-9)
    yes, gold = logits > 0, wanted > 2.5
    found = measures.counts(SAME, logits, gold.float(), torch.tensor(0.7))
    assert float(found["loss"]) == pytest.approx(50 * 0.7)
    assert int(found["correct"]) / 50 == pytest.approx(accuracy_score(gold, yes))
    f1 = measures.f1(*(float(found[name]) for name in ("true_positive", "predicted", "positive")))
    assert f1 == pytest.approx(f1_score(gold, yes))


def test_terms_are_logged_as_means_over_batches_and_losses_as_means_over_examples() -> None:
    batches = [{"n": 4, "loss": 2.8, "correct": 1, "smart": 0.2}, {"n": 1, "loss": 1.2, "correct": 1, "smart": 0.4}]
    logs = [{f"t.{name}": value for name, value in sums.items()} for sums in batches]
    with aggregate() as found:
        measures.log(logs)
    values = found.get_smoothed_values()
    assert values["t_smart"] == pytest.approx(0.3)
    assert values["t_loss"] == pytest.approx(0.8)


def test_the_loss_of_a_joint_batch_adds_up_the_means_of_its_tasks(criterion: SentenceTasksCriterion) -> None:
    logs = [{"a": {"loss": torch.tensor(6.0), "n": 3}}, {"b": {"loss": torch.tensor(1.0), "n": 2}}]
    loss, size, log = criterion.joined(logs, {"nsentences": 5, "ntokens": 20})
    assert (float(loss), size) == (2.5, 1)
    assert (log["a.n"], float(log["b.loss"])) == (3, 1.0)


def examples() -> SentenceData:
    """Texts of all lengths: 11 with classes, 5 with scores, 7 with tags."""
    generator = torch.Generator().manual_seed(3)

    def row() -> torch.Tensor:
        length = int(torch.randint(1, 9, (), generator=generator))
        return torch.cat([torch.tensor([0]), torch.randint(4, 24, (length,), generator=generator), torch.tensor([2])])

    specs = [
        HeadSpec("mood", "class", None, ("bad", "fair", "good")),
        HeadSpec("near", "score", "cos"),
        HeadSpec("words", "tags", None, ("N", "V")),
    ]
    moods = [Encoded(0, (row(),), torch.tensor(number % 3)) for number in range(11)]
    near = [Encoded(1, (row(), row()), torch.tensor(0.7 * number, dtype=torch.float64)) for number in range(5)]
    words = [Encoded(2, (text,), torch.where(text > 3, text % 2, -100)) for text in (row() for _ in range(7))]
    return SentenceData(specs, [moods, near, words], 1, training=False)


def expected_losses(model: Any, given: SentenceData) -> dict[str, float]:
    """The mean over all examples (of tags: words) of each task, one by one in float64."""
    found: dict[str, list[Any]] = {}
    for item in given.items:
        name = given.specs[item.task].name
        (logits,) = model(name, [row[None] for row in item.rows]).double()
        assert item.target is not None
        if name == "near":
            found.setdefault(name, []).append((5 * logits.sigmoid() - item.target) ** 2)
            continue
        chosen = item.target >= 0
        chances, wanted = logits.log_softmax(-1)[chosen].view(-1, logits.size(-1)), item.target[chosen].view(-1)
        found.setdefault(name, []).extend(-chances[range(len(wanted)), wanted])
    return {name: float(torch.stack(losses).mean()) for name, losses in found.items()}


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("size", [1, 3, 4, 100])
@pytest.mark.parametrize("one_task", [True, False])
@torch.no_grad()
def test_the_loss_of_validation_is_the_mean_of_the_means_of_tasks_whatever_the_batches(
    make_heads: Any, criterion: SentenceTasksCriterion, size: int, processes: int, one_task: bool
) -> None:
    given = examples()
    model = make_heads(given.specs)
    expected = expected_losses(model, given)
    batches = [[given.items[index] for index in each] for each in evaluation_batches(given, [size] * 3)]
    if one_task:
        batches = [batch for batch in batches if batch[0].task == 0]
        expected = {"mood": expected["mood"]}
    logs = [criterion(model, given.collater(batch))[2] for batch in batches]
    with metrics.aggregate(new_root=True) as found:
        for start in range(0, len(logs), processes):  # a step of as many processes; fairseq gathers what they log
            criterion.reduce_metrics(logs[start : start + processes])
    values = found.get_smoothed_values()
    assert values["loss"] == pytest.approx(np.mean(list(expected.values())), abs=1e-4)
    for name, loss in expected.items():
        assert values[f"{name}_loss"] == pytest.approx(loss, abs=1e-4)


def test_the_loss_of_training_is_the_mean_over_batches(criterion: SentenceTasksCriterion) -> None:
    """Of 3 examples and of 1, at one step (--update-freq 2, or two processes)."""
    sample = {"nsentences": 4, "ntokens": 20}
    parts = [{"a": {"loss": torch.tensor(loss), "n": n, "correct": 1}} for n, loss in ((3, 6.0), (1, 1.0))]
    with aggregate() as found:
        criterion.reduce_metrics([criterion.joined([part], sample)[2] for part in parts])
    assert found.get_smoothed_values()["loss"] == 1.5


def test_a_step_weighs_the_same_on_data_of_another_name_than_train(
    make_heads: Any, criterion: SentenceTasksCriterion
) -> None:
    """fairseq divides gradients by the sample size (--train-subset small); data for validation know their shares."""
    given, task = examples(), SentencesTask(SentencesConfig(data="mood=x:near=y:words=z", batch_size=None, seed=1))
    model = make_heads(given.specs)
    optimizer = SimpleNamespace(backward=lambda loss: loss.backward())
    sample = given.collater(given.items[:4])
    loss, size, _ = task.train_step(sample, model, criterion, optimizer, 1)
    wanted = model("mood", sample["tasks"]["mood"]["rows"]).log_softmax(-1)[range(4), [0, 1, 2, 0]]
    assert size == 1
    assert float(loss) == pytest.approx(-wanted.detach().mean().item(), abs=1e-5)


def test_nothing_is_logged_of_a_task_without_a_turn() -> None:
    """Two tasks in turn and --log-interval 1: meters are set back after each step, but are not taken out."""
    score = {f"near.{key}": value for key, value in zip(("n", "x", "y", "xx", "yy", "xy"), (3, 6, 6, 14, 14, 13))}
    same = {"n": 4, "correct": 3, "true_positive": 1, "predicted": 2, "positive": 1, "loss": 2.0}
    turns = [{**score, "near.loss": 3.0}, {f"same.{key}": value for key, value in same.items()}]
    lines = []
    for turn in [*turns, *turns]:
        with aggregate("turns") as found:
            measures.log([turn])
        lines.append(found.get_smoothed_values())
        metrics.reset_meters("turns")
    # r of (1, 2, 3) and (1, 3, 2); precision 1/2 and recall 1
    one = {"near_loss": 1.0, "near_r": 0.5, "average": 0.5}
    other = {"same_loss": 0.5, "same_accuracy": 0.75, "same_f1": 0.6667, "average": 0.75}
    for line, expected in zip(lines, [one, other] * 2, strict=True):
        assert {name: value for name, value in line.items() if value is not None} == expected
    assert lines[2].keys() == one.keys() | other.keys()
    assert found.get_smoothed_values()["average"] is None


def test_a_constant_prediction_has_no_correlation() -> None:
    assert np.isnan(measures.pearson(3, 3.0, 6.0, 3.0, 14.0, 6.0))
    assert np.isnan(measures.correlation([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]))


@pytest.mark.parametrize("rows", [2, 7, 300, 2999])
def test_one_prediction_for_all_has_no_correlation(rows: int) -> None:
    generator = torch.Generator().manual_seed(rows)
    for value in torch.rand(40, generator=generator).double() * 5:
        wanted = torch.rand(rows, generator=generator).double()
        sums = (value.repeat(rows).sum(), wanted.sum(), (value**2).repeat(rows).sum(), wanted.square().sum())
        assert np.isnan(measures.pearson(rows, *map(float, sums), float((value * wanted).sum())))


def test_measures_of_written_labels() -> None:
    assert measures.measured(CLASS, ["bad", "good"], ["bad", "bad"]) == {"accuracy": 0.5}
    assert measures.measured(TAGS, ["N V", "V"], ["N N", "V"])["accuracy"] == pytest.approx(2 / 3)
    assert measures.measured(SAME, ["1", "1", "0"], ["1", "0", "0"]) == {
        "accuracy": pytest.approx(2 / 3),
        "f1": pytest.approx(2 / 3),
    }


def test_labels_that_a_head_does_not_have_are_found() -> None:
    assert measures.unknown_labels(CLASS, ["bad", "good", "bad"]) == []
    assert measures.unknown_labels(CLASS, ["neutral", "Good", "bad", "neutral"]) == ["Good", "neutral"]
    assert measures.unknown_labels(TAGS, ["N V", "X N"]) == ["X"]
    assert measures.unknown_labels(HeadSpec("near", "score", "cos"), ["4.5"]) == []


def test_predictions_are_measured_where_there_is_a_label_and_it_is_told_of_how_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = HeadSpec("mood", "class", None, ("bad", "good"))
    found = [predicting.Prediction(label, (0.5, 0.5)) for label in ("good", "bad", "good", "good")]
    model = SimpleNamespace(head=lambda name: spec, predict=lambda *_, **__: iter(found))
    monkeypatch.setattr(predicting, "load_heads", lambda path: model)
    path = tmp_path / "new.tsv"
    for labels, said in (
        ("good bad bad good", ["accuracy 0.7500"]),
        (" good  bad", ["2 of 4", "accuracy 0.0000"]),
        ("good bad neutral Good", ["note: labels that mood does not have", "accuracy 0.5000"]),
    ):
        rows = [f"text\t{label}\n" for label in labels.split(" ")]
        path.write_text("sentence\tlabel\n" + "".join(rows), encoding="utf-8")
        assert cli.main(["predict", "model", "--input", str(path)]) == 0
        lines = capsys.readouterr().err.splitlines()[1:]
        assert len(lines) == len(said)
        assert all(line.startswith(start) for line, start in zip(lines, said))
