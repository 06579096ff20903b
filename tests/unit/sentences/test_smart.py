"""SMART against its closed forms on a linear model, and what it leaves alone when it is off."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmfusion.errors import InputError
from lmfusion.training.sentence_criterion import SentenceTasksConfig, SentenceTasksCriterion
from lmfusion.training.smart import Ball, Changes, distance, most_distant

ROWS = torch.tensor([[0, 5, 9, 4, 2], [0, 7, 2, 1, 1]])
PART = {"rows": [ROWS], "target": torch.tensor([0, 2])}


@pytest.mark.parametrize(("norm", "expected"), [("2", 0.25), ("inf", 0.49)])
@pytest.mark.parametrize("steps", [1, 3])
def test_the_greatest_distance_of_a_linear_model(norm: str, expected: float, steps: int) -> None:
    """f(x) = w·x with w = (3, -4) and the squared distance: ε² times the square of the dual norm of w, ε = 0.1."""
    embedding, weight = nn.Embedding(4, 2, padding_idx=1), torch.tensor([3.0, -4.0])
    tokens = torch.tensor([[2], [3]])
    changes = Changes((embedding, lambda ids: ids.eq(1)))

    def run() -> Tensor:
        return embedding(tokens)[:, 0] @ weight

    with changes.seen():
        clean = run()
    ball = Ball(epsilon=0.1, steps=steps, step_size=1.0, noise=1e-5, norm=norm)
    found = most_distant(run, clean, changes, F.mse_loss, ball, torch.Generator().manual_seed(1))
    assert float(found) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(("norm", "expected"), [("2", 0.5), ("inf", 1.96)])
def test_both_texts_of_a_pair_are_in_one_ball(norm: str, expected: float) -> None:
    """f(u, v) = w·u + w·v: ε² times the square of the dual norm of (w, w)."""
    embedding, weight = nn.Embedding(6, 2, padding_idx=1), torch.tensor([3.0, -4.0])
    changes = Changes((embedding, lambda ids: ids.eq(1)))

    def run() -> Tensor:
        return sum(embedding(torch.tensor(ids))[:, 0] @ weight for ids in ([[2], [3]], [[4], [5]]))

    with changes.seen():
        clean = run()
    ball = Ball(epsilon=0.1, steps=3, step_size=1.0, norm=norm)
    found = most_distant(run, clean, changes, F.mse_loss, ball, torch.Generator().manual_seed(1))
    assert float(found) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("norm", ["2", "inf"])
def test_changes_stay_in_the_ball_of_each_example(norm: str) -> None:
    change = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(1)) * torch.tensor([1e-4, 1.0, 9.0]).view(
        3, 1, 1
    )
    ball = Ball(epsilon=0.3, norm=norm)
    (within,) = ball.into([change])
    sizes = [float(row.abs().max() if norm == "inf" else row.flatten().norm()) for row in within]
    assert all(size <= 0.3 + 1e-6 for size in sizes)
    assert torch.equal(within[0], change[0])
    assert sizes[2] == pytest.approx(0.3)


def test_padding_is_not_changed() -> None:
    embedding = nn.Embedding(10, 3, padding_idx=1)
    changes = Changes((embedding, lambda ids: ids.eq(1)))
    with changes.seen():
        embedding(ROWS)
    (mask,) = changes.masks
    assert torch.equal(mask[..., 0], ROWS.ne(1).float())


@pytest.mark.parametrize("kind", ["class", "tags", "binary", "score"])
def test_distances_are_symmetric_divergences(kind: str) -> None:
    generator = torch.Generator().manual_seed(3)
    shape = {"class": (4, 3), "tags": (4, 5, 3)}.get(kind, (4,))
    one, other = torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)
    if kind == "score":
        expected = (5 * one.double().sigmoid() - 5 * other.double().sigmoid()).pow(2).mean()
    else:
        if kind == "binary":
            p, q = (torch.stack([x.double().sigmoid(), 1 - x.double().sigmoid()], -1) for x in (one, other))
        else:
            p, q = one.double().softmax(-1), other.double().softmax(-1)
        expected = ((p * (p / q).log()).sum(-1) + (q * (q / p).log()).sum(-1)).mean()
    assert float(distance(kind, one, other)) == pytest.approx(float(expected), rel=1e-5)
    assert float(distance(kind, one, one)) == 0.0


def criterion(**given: Any) -> SentenceTasksCriterion:
    cfg = SentenceTasksConfig()
    for name, value in {"seed": 1, **given}.items():
        setattr(cfg, name, value)
    return SentenceTasksCriterion(cfg, SimpleNamespace(target_dictionary=None))


def test_without_weights_nothing_is_drawn_and_nothing_added(make_heads: Any) -> None:
    model = make_heads(dropout=0.2).train()
    torch.manual_seed(5)
    plain = model.heads["mood"].loss(model("mood", [ROWS]), PART["target"])
    state = torch.get_rng_state()
    torch.manual_seed(5)
    loss, _ = criterion().task_loss(model, "mood", PART, 0)
    assert torch.equal(loss, plain)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", ["mood", "words", "near"])
def test_smoothness_is_the_distance_at_changed_embeddings(make_heads: Any, name: str) -> None:
    """With dropout on: all passes draw the same, so a tiny ball gives a tiny distance."""
    model = make_heads(dropout=0.3).train()
    rows = [ROWS, ROWS.flip(0)] if name == "near" else [ROWS]
    target = {"mood": PART["target"], "words": ROWS % 2, "near": torch.tensor([1.0, 4.0])}[name]
    sizes = {}
    for epsilon in (1e-6, 0.5):
        smart = criterion(smart_weight=1.0, smart_epsilon=epsilon, smart_step_size=1.0)
        loss, log = smart.task_loss(model, name, {"rows": rows, "target": target}, 0)
        sizes[epsilon] = float(log[name]["smart"])
    assert 0 <= sizes[1e-6] < 1e-6
    assert sizes[0.5] > 1e-3
    loss.backward()
    assert model.lm.token_embedding.weight.grad.abs().sum() > 0


def test_each_term_is_added_with_its_weight(make_heads: Any) -> None:
    model = make_heads().train()
    averaged = copy.deepcopy(model)
    with torch.no_grad():
        for each in averaged.heads.parameters():
            each.mul_(1.5)
    plain, _ = criterion().task_loss(model, "mood", PART, 0)
    weighted = criterion(smart_weight=2.0, smart_epsilon=0.5, smart_step_size=1.0, bregman_weight=3.0)
    loss, log = weighted.task_loss(model, "mood", PART, 0, averaged)
    terms = 2 * float(log["mood"]["smart"]) + 3 * float(log["mood"]["bregman"])
    assert float(loss) == pytest.approx(float(plain) + terms, rel=1e-5)
    assert min(log["mood"]["smart"], log["mood"]["bregman"]) > 1e-3


@pytest.mark.parametrize("precision", [torch.float16, torch.bfloat16, "autocast"])
def test_in_half_precision_it_works_with_changes_that_are_not_rounded_away(
    make_heads: Any, precision: torch.dtype | str
) -> None:
    """About what single precision finds; and at the start of a training, a refusal of smaller ones."""
    large = {"smart_weight": 1.0, "smart_epsilon": 0.05, "smart_step_size": 0.05, "smart_noise": 0.05}
    model = make_heads().train()
    _, log = criterion(**large).task_loss(model, "mood", PART, 0)
    single = float(log["mood"]["smart"])
    if isinstance(precision, str):
        of_autocast = make_heads(cpu_bf16=True).train()
        of_autocast.load_state_dict(model.state_dict())
        model = of_autocast
    else:
        model = model.to(precision)
    loss, log = criterion(**large).task_loss(model, "mood", PART, 0)
    assert loss.isfinite()
    assert float(log["mood"]["smart"]) == pytest.approx(single, rel=0.15)
    for small in ("smart_epsilon", "smart_step_size", "smart_noise"):
        with pytest.raises(InputError, match=f"--{small.replace('_', '-')} 1e-05: half precision"):
            criterion(**{**large, small: 1e-5}).task_loss(model, "mood", PART, 0)
    loss, log = criterion(smart_weight=1.0, smart_epsilon=1e-6).task_loss(model, "mood", PART, 5)
    assert 0 <= float(log["mood"]["smart"]) < 1e-3, "a gradient of zero is no change, and no division of zero by zero"
    assert loss.isfinite()


def test_a_search_that_starts_where_there_is_no_gradient_is_refused(make_heads: Any) -> None:
    """A training that began so goes on, with a term of 0."""
    still = criterion(smart_weight=1.0, smart_noise=0.0)
    model = make_heads().train()
    with pytest.raises(InputError, match="--smart-noise 0:"):
        still.task_loss(model, "mood", PART, 0)
    _, log = still.task_loss(model, "mood", PART, 5)
    assert float(log["mood"]["smart"]) == 0.0


def test_a_frozen_language_model_is_refused(make_heads: Any) -> None:
    with pytest.raises(InputError, match="--src-fusion finetune"):
        criterion(smart_weight=1.0).check(make_heads(src_fusion="elmo"))
    with pytest.raises(InputError, match="--src-lm-freeze-updates"):
        criterion(smart_weight=1.0).task_loss(make_heads(src_lm_freeze_updates=5).train(), "mood", PART, 0)


def test_at_the_averaged_weights_the_bregman_term_is_zero_and_so_is_its_gradient(make_heads: Any) -> None:
    model = make_heads(dropout=0.3).train()
    averaged = copy.deepcopy(model)
    found = {}
    for weight in (0.0, 5.0):
        model.zero_grad()
        torch.manual_seed(1)
        loss, log = criterion(bregman_weight=weight).task_loss(model, "mood", PART, 0, averaged)
        loss.backward()
        found[weight] = [each.grad.clone() for each in model.parameters() if each.grad is not None]
    assert float(log["mood"]["bregman"]) == 0.0
    for one, other in zip(found[0.0], found[5.0], strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-7)
    with torch.no_grad():
        for each in averaged.heads.parameters():
            each.mul_(1.5)
    _, log = criterion(bregman_weight=1.0).task_loss(model, "mood", PART, 0, averaged)
    assert float(log["mood"]["bregman"]) > 1e-4


@pytest.mark.parametrize(
    "given",
    [
        {"smart_weight": -1.0},
        {"smart_weight": float("nan")},
        {"smart_epsilon": 0.0},
        {"smart_steps": 0},
        {"bregman_momentum": 1.0},
        {"bregman_momentum_late": 1.0},
    ],
)
def test_values_out_of_range_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(given)).replace("_", "-")):
        criterion(**given)
