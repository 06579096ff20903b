"""The LM prior: its divergence by scipy, the loss of a batch by hand, and checkpoints without the LM."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.logging.metrics import aggregate
from scipy.special import rel_entr, softmax

from lmfusion.errors import InputError
from lmfusion.inspection import inspect_checkpoint
from lmfusion.lm.loading import load_lm
from lmfusion.training.lm_prior import LM_TM, TM_LM, LMPriorCriterion, divergence, load_prior

PRIOR = ("--criterion", "lm_prior", "--label-smoothing", 0.1, "--prior-lm", "CAUSAL")


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("direction", [TM_LM, LM_TM])
def test_the_divergence_is_scipys(direction: str, temperature: float) -> None:
    torch.manual_seed(1)
    logits, prior = 3 * torch.randn(2, 5, 30, dtype=torch.float64), 3 * torch.randn(2, 5, 30, dtype=torch.float64)
    tm, lm = (softmax(each.numpy() / temperature, axis=-1) for each in (logits, prior))
    of, by = (tm, lm) if direction == TM_LM else (lm, tm)
    expected = temperature**2 * rel_entr(of, by).sum(-1)
    np.testing.assert_allclose(divergence(logits, prior, temperature, direction).numpy(), expected, atol=1e-12)


def test_it_is_low_for_a_model_that_keeps_to_a_part_of_what_the_lm_allows() -> None:
    """What tells the paper's direction from distillation: the LM leaves two words open, the source decides for one."""
    lm, tm = torch.tensor([0.0, 0.0, -20.0]), torch.tensor([0.0, -20.0, -20.0])
    assert divergence(tm, lm, 1.0, TM_LM).item() == pytest.approx(np.log(2), abs=1e-6)
    assert divergence(tm, lm, 1.0, LM_TM).item() > 9


def test_gradients_are_as_large_at_every_high_temperature() -> None:
    logits, prior = torch.randn(8, dtype=torch.float64), torch.randn(8, dtype=torch.float64)
    sizes = []
    for temperature in (50.0, 100.0):
        x = logits.clone().requires_grad_()
        divergence(x, prior, temperature).backward()
        assert x.grad is not None
        sizes.append(x.grad.norm().item())
    assert sizes[0] == pytest.approx(sizes[1], rel=0.05)


@pytest.fixture
def make_prior_trainer(make_trainer: Callable[..., Any], data: Path) -> Callable[..., Any]:
    def make(*flags: object) -> Any:
        files = {"CAUSAL": data / "lm.pt", "CLOZE": data / "cloze.pt"}
        return make_trainer("baseline", *(files.get(str(flag), flag) for flag in flags))

    return make


@pytest.mark.parametrize("ignored", [0, 1])
def test_the_loss_of_a_batch_is_cross_entropy_and_weighted_divergence(
    make_prior_trainer: Callable[..., Any], make_batch: Callable[..., Any], data: Path, ignored: int
) -> None:
    """Of all tokens but the first ones that --ignore-prefix-size leaves out."""
    flags = ("--prior-weight", 0.3, "--prior-temperature", 3.0, "--ignore-prefix-size", ignored)
    trainer, batch = make_prior_trainer(*PRIOR, *flags), make_batch("base")
    batch["target"] = batch["target"].clone()
    batch["target"][0, 6:] = 1  # padding does not count
    criterion, model = trainer.get_criterion(), trainer.get_model().eval()
    with torch.no_grad():
        found, _, logged = criterion(model, batch)
        plain, _, _ = LabelSmoothedCrossEntropyCriterion(trainer.task, False, 0.1, ignored)(model, batch)
        logits = model(**batch["net_input"])[0].double().numpy()
        lm = load_lm(data / "lm.pt")
        prior = lm(batch["net_input"]["prev_output_tokens"])[0].double().numpy()
    per_token = rel_entr(softmax(logits / 3, axis=-1), softmax(prior / 3, axis=-1)).sum(-1)
    expected = 9 * per_token[:, ignored:][batch["target"].numpy()[:, ignored:] != 1].sum()
    assert logged["prior_loss"].item() == pytest.approx(expected, rel=1e-5)
    assert found.item() == pytest.approx(plain.item() + 0.3 * expected, rel=1e-5)
    singles, _, _ = criterion(model, batch, reduce=False)
    assert singles.sum().item() == pytest.approx(found.item(), rel=1e-5)


def test_the_divergence_is_logged_in_bits_a_token() -> None:
    sums = {"loss": 12.0, "nll_loss": 12.0, "ntokens": 3, "sample_size": 3, "prior_loss": 6.0}
    with aggregate() as logs:
        LMPriorCriterion.reduce_metrics([sums, {**sums, "ntokens": 1, "sample_size": 1, "prior_loss": 2.0}])
    assert logs.get_smoothed_values()["prior_loss"] == pytest.approx(8 / 4 / 0.693147, abs=1e-3)


def test_it_pulls_the_model_to_the_lm_and_leaves_the_lm_alone(
    make_prior_trainer: Callable[..., Any], make_batch: Callable[..., Any], data: Path
) -> None:
    trainer = make_prior_trainer(*PRIOR, "--optimizer", "adam", "--prior-weight", 5.0)
    batch = make_batch("baseline")
    logged = [trainer.train_step([batch]) for _ in range(8)]
    assert float(logged[-1]["prior_loss"]) < 0.8 * float(logged[0]["prior_loss"])
    (lm,) = trainer.get_criterion()._lm
    for name, value in load_lm(data / "lm.pt").state_dict().items():
        assert torch.equal(lm.state_dict()[name], value), name


def test_a_checkpoint_has_no_weights_of_the_prior_and_inspect_names_it(
    make_prior_trainer: Callable[..., Any], make_batch: Callable[..., Any], tmp_path: Path
) -> None:
    trainer = make_prior_trainer(*PRIOR, "--optimizer", "adam", "--prior-temperature", 4.0)
    trainer.train_step([make_batch("baseline")])
    trainer.consolidate_optimizer()
    path = tmp_path / "model.pt"
    trainer.save_checkpoint(str(path), {"train_iterator": {"epoch": 1}})
    state = torch.load(path, weights_only=True)
    assert set(state["model"]) == set(trainer.get_model().state_dict())
    assert not state.get("criterion")
    found = inspect_checkpoint(path).prior
    assert found is not None
    assert found["temperature"] == 4.0
    assert found["lm"].endswith("lm.pt")


def test_targets_longer_than_the_lm_takes_are_too_long_for_training(
    make_prior_trainer: Callable[..., Any], data: Path
) -> None:
    """fairseq asks the task which targets are left out; the model alone would take more of them."""
    longest = load_lm(data / "lm.pt").max_positions()
    trainer = make_prior_trainer(*PRIOR)
    assert trainer.get_model().max_positions()[1] > longest
    assert trainer.task.max_positions()[1] == longest


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--criterion", "lm_prior"), "--prior-lm"),
        (("--criterion", "lm_prior", "--prior-lm", "CLOZE"), "predicts no next words"),
        (("--criterion", "lm_prior", "--prior-lm", "nowhere.pt"), r"nowhere\.pt"),
        ((*PRIOR, "--prior-weight", -1), "--prior-weight -1"),
        ((*PRIOR, "--prior-temperature", 0), "--prior-temperature 0"),
    ],
)
def test_what_cannot_be_is_one_line(make_prior_trainer: Callable[..., Any], flags: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_prior_trainer(*flags)


def test_a_prior_of_other_symbols_is_refused(data: Path) -> None:
    symbols = load_lm(data / "lm.pt").symbols
    with pytest.raises(InputError, match="dictionary"):
        load_prior(str(data / "lm.pt"), [*symbols[:-1], "other"])
