"""SMART's smoothness and its distance from averaged weights, against their formulas."""

from __future__ import annotations

import copy
from typing import Any, Callable

import pytest
import torch
from torch import Tensor

EPSILON, STEP_SIZE, NOISE = 0.3, 0.2, 0.1
UPDATE, SEED = 4, 1


@pytest.mark.parametrize("kind", ["SRC-FT", "TGT-FT"])
def test_smoothness_is_small_in_a_small_ball_and_moves_the_lm(make: Any, step: Any, kind: str) -> None:
    """With dropout on: all passes of a step draw the same."""
    sizes = {}
    for epsilon in (1e-6, 0.3):
        flags = ("--smart-weight", 1, "--smart-epsilon", epsilon, "--smart-step-size", 1, "--smart-noise", 1e-4)
        log, grads = step(make(kind, "--dropout", 0.2, *flags), kind)
        sizes[epsilon] = float(log["smart"]) / log["sample_size"]
        assert all(value is None or value.isfinite().all() for value in grads.values())
    assert 0 <= sizes[1e-6] < 1e-6
    assert sizes[0.3] > 1e-3


def test_the_search_finds_more_than_chance(make: Any, step: Any, make_batch: Any) -> None:
    """The divergence at about the worst place of the ball is above that at any of 20 random corners of it."""
    epsilon = 0.05
    flags = ("--smart-weight", 1, "--smart-epsilon", epsilon, "--smart-step-size", 10 * epsilon)
    trainer = make("SRC-FT", *flags, "--smart-noise", epsilon / 10, "--smart-steps", 3, still=True)
    log, _ = step(trainer, "SRC-FT")
    found = float(log["smart"]) / log["sample_size"]
    model, batch = trainer.get_model(), make_batch("SRC-FT")
    words = batch["target"].ne(1)

    def probabilities(change: Any = None) -> Tensor:
        hook = model.encoder.fusion.lm.token_embedding.register_forward_hook(
            lambda _, inputs, output: output if change is None else output + change(output) * inputs[0].ne(1)[..., None]
        )
        with torch.no_grad():
            logits = model(**batch["net_input"])[0].double().log_softmax(-1)
        hook.remove()
        return logits

    clean = probabilities()
    generator = torch.Generator().manual_seed(1)
    for _ in range(20):
        other = probabilities(lambda output: epsilon * torch.randn(output.shape, generator=generator).sign())
        apart = ((clean.exp() - other.exp()) * (clean - other)).sum(-1)[words].mean()
        assert 0 < float(apart) < found


def test_at_the_averaged_weights_the_bregman_term_is_zero_and_so_is_its_gradient(make: Any, step: Any) -> None:
    trainer = make("SRC-FT", "--dropout", 0.2, "--bregman-weight", 5)
    assert trainer.cfg.ema.store_ema
    assert trainer.cfg.ema.ema_decay == 0.99
    averaged = copy.deepcopy(trainer.get_model())
    log, found = step(trainer, "SRC-FT", averaged)
    assert float(log["bregman"]) == 0.0
    _, plain = step(make("SRC-FT", "--dropout", 0.2, like=trainer), "SRC-FT")
    torch.testing.assert_close(found, plain, rtol=0, atol=1e-6)
    with torch.no_grad():
        averaged.decoder.layers[0].fc1.weight.mul_(3)
    log, _ = step(trainer, "SRC-FT", averaged)
    assert float(log["bregman"]) > 1e-4


def divergence(one: Tensor, other: Tensor, words: Tensor) -> Tensor:
    """The mean symmetric Kullback-Leibler divergence of words, from its definition."""
    p, q = one.softmax(-1), other.softmax(-1)
    return ((p * (p / q).log()).sum(-1) + (q * (q / p).log()).sum(-1))[words].mean()


def sizes(changes: Tensor, norm: str) -> Tensor:
    """The norm of each sentence's change."""
    flat = changes.flatten(1)
    return (flat.abs().amax(1) if norm == "inf" else flat.norm(dim=1)).view(-1, 1, 1)


def inside(changes: Tensor, norm: str) -> Tensor:
    """The nearest change in the ball of each sentence."""
    return (
        changes.clamp(-EPSILON, EPSILON) if norm == "inf" else changes * (EPSILON / sizes(changes, norm)).clamp(max=1)
    )


def worst(run: Callable[..., Tensor], shape: torch.Size, words: Tensor, mask: Tensor, norm: str, steps: int) -> Tensor:
    """The changes of embeddings after so many steps up, from the noise that the seed and the update draw."""
    generator = torch.Generator().manual_seed(SEED * 1_000_003 + UPDATE)
    clean = run().detach()
    change = inside(torch.randn(shape, generator=generator).double() * NOISE * mask, norm)
    for _ in range(steps):
        tried = change.clone().requires_grad_()
        (up,) = torch.autograd.grad(divergence(run(tried), clean, words), tried)
        change = inside(change + STEP_SIZE * up / sizes(up, norm) * mask, norm)
    return change


@pytest.mark.parametrize(("norm", "steps"), [("inf", 1), ("2", 2)])
@pytest.mark.parametrize("kind", ["SRC-FT", "TGT-FT"])
def test_smoothness_and_its_gradient_are_those_of_the_formulas(
    make: Any, step: Any, make_batch: Any, kind: str, norm: str, steps: int
) -> None:
    side = kind[:3].lower()
    ball = ("--smart-epsilon", EPSILON, "--smart-step-size", STEP_SIZE, "--smart-noise", NOISE, "--smart-steps", steps)
    trainer = make(kind, "--smart-weight", 2, "--smart-norm", norm, *ball, still=True)
    log, found = step(trainer, kind)

    model, batch = copy.deepcopy(trainer.get_model()).double(), make_batch(kind)
    model.zero_grad()
    embedding = (model.encoder if side == "src" else model.decoder).embed_tokens.fusion.lm.token_embedding
    read: dict[str, Any] = {}

    def run(change: Tensor | None = None) -> Tensor:
        def changed(_: Any, inputs: Any, output: Tensor) -> Tensor:
            read.update(ids=inputs[0], shape=output.shape)
            return output if change is None else output + change

        hook = embedding.register_forward_hook(changed)
        logits: Tensor = model(**batch["net_input"])[0]
        hook.remove()
        return logits

    words, clean = batch["target"].ne(1), run()
    change = worst(run, read["shape"], words, read["ids"].ne(1)[..., None].double(), norm, steps)
    smoothness = divergence(run(change), clean, words)
    assert float(log["smart"]) / log["sample_size"] == pytest.approx(float(smoothness), rel=1e-3)
    loss, _ = trainer.get_criterion().compute_loss(model, (clean,), batch)
    (loss + log["sample_size"] * 2 * smoothness).backward()
    for name, parameter in model.named_parameters():
        if found[name] is not None:
            distance = (found[name].double() - parameter.grad).norm()
            assert distance <= 2e-3 * parameter.grad.norm() + 1e-5, name


def test_the_distance_from_averaged_weights_has_its_weight(make: Any, step: Any, make_batch: Any) -> None:
    trainer = make("SRC-FT", "--bregman-weight", 3, still=True)
    averaged = copy.deepcopy(trainer.get_model())
    with torch.no_grad():
        averaged.decoder.layers[0].fc1.weight.mul_(3)
    log, found = step(trainer, "SRC-FT", averaged)
    model, batch = copy.deepcopy(trainer.get_model()).double(), make_batch("SRC-FT")
    model.zero_grad()
    logits = model(**batch["net_input"])[0]
    before = averaged.double()(**batch["net_input"])[0].detach()
    apart = divergence(logits, before, batch["target"].ne(1))
    assert float(log["bregman"]) / log["sample_size"] == pytest.approx(float(apart), rel=1e-4)
    loss, _ = trainer.get_criterion().compute_loss(model, (logits,), batch)
    (loss + log["sample_size"] * 3 * apart).backward()
    for name, parameter in model.named_parameters():
        if found[name] is not None:
            assert (found[name].double() - parameter.grad).norm() <= 1e-3 * parameter.grad.norm() + 1e-5, name
