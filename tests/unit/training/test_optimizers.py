"""Optimizers as fairseq builds them against their equations, in float64, over some steps of a changing gradient."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
import torch
from fairseq.optim import OPTIMIZER_REGISTRY
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.training.rmsprop import RMSprop, RMSpropConfig

LR, STEPS, EPS = 0.05, 20, 1e-8
START = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
CURVES = torch.tensor([1.0, 3.0, 0.2], dtype=torch.float64)


def gradient(x: Tensor) -> Tensor:
    """Of sum(c x^4 / 4)."""
    return CURVES * x**3


def steps_of(optimizer: Any, parameter: Tensor) -> Tensor:
    for _ in range(STEPS):
        optimizer.zero_grad()
        (CURVES * parameter**4 / 4).sum().backward()
        optimizer.step()
    return parameter.detach()


def rmsprop(**flags: Any) -> Tensor:
    parameter = START.clone().requires_grad_()
    defaults = {name: spec.default for name, spec in RMSpropConfig.__dataclass_fields__.items() if name[0] != "_"}
    cfg = Namespace(**{**defaults, "lr": [LR], **flags})
    return steps_of(RMSprop(cfg, [parameter]), parameter)


@pytest.mark.parametrize("centered", [False, True])
def test_rmsprop_is_its_equations(centered: bool) -> None:
    x, square, mean, velocity = START.clone(), torch.zeros(3), torch.zeros(3), torch.zeros(3)
    for _ in range(STEPS):
        g = gradient(x) + 0.01 * x
        square, mean = 0.9 * square + 0.1 * g * g, 0.9 * mean + 0.1 * g
        spread = square - mean * mean if centered else square
        velocity = 0.5 * velocity + g / (spread.sqrt() + 1e-6)
        x = x - LR * velocity
    found = rmsprop(rmsprop_alpha=0.9, rmsprop_eps=1e-6, momentum=0.5, weight_decay=0.01, rmsprop_centered=centered)
    torch.testing.assert_close(found, x, rtol=0, atol=1e-12)


def built(name: str, **flags: Any) -> Tensor:
    """The result of one of fairseq's optimizers."""
    parameter = START.clone().requires_grad_()
    cfg = Namespace(lr=[LR], weight_decay=0.0, momentum=0.0, **flags)
    return steps_of(OPTIMIZER_REGISTRY[name](cfg, [parameter]), parameter)


def test_the_notes_adadelta_is_rmsprop_and_fairseqs_is_another() -> None:
    """theta -= lr g / sqrt(E + eps), which the notes print as AdaDelta."""
    x, square = START.clone(), torch.zeros(3)
    for _ in range(STEPS):
        g = gradient(x)
        square = 0.9 * square + 0.1 * g * g
        x = x - LR * g / (square + EPS).sqrt()
    assert (rmsprop(rmsprop_alpha=0.9) - x).abs().max() < 1e-4  # eps stands outside the root
    real = built("adadelta", adadelta_rho=0.9, adadelta_eps=1e-6)
    assert (real - x).abs().max() > 0.1


def test_fairseqs_nag_is_at_the_points_that_look_ahead() -> None:
    """v = gamma v + lr grad(theta - gamma v), theta -= v: fairseq's parameters are theta - gamma v."""
    gamma, theta, v = 0.9, START.clone(), torch.zeros(3)
    for _ in range(STEPS):
        v = gamma * v + 0.01 * gradient(theta - gamma * v)
        theta = theta - v
    parameter = START.clone().requires_grad_()
    cfg = Namespace(lr=[0.01], weight_decay=0.0, momentum=gamma)
    found = steps_of(OPTIMIZER_REGISTRY["nag"](cfg, [parameter]), parameter)
    torch.testing.assert_close(found, theta - gamma * v, rtol=0, atol=1e-6)


def test_fairseqs_adagrad_is_its_equations() -> None:
    x, total = START.clone(), torch.zeros(3)
    for _ in range(STEPS):
        g = gradient(x)
        total = total + g * g
        x = x - LR * g / (total + 1e-20).sqrt()
    torch.testing.assert_close(built("adagrad"), x, rtol=0, atol=1e-8)


def test_fairseqs_adamax_is_adamax_with_decoupled_weight_decay() -> None:
    """minBERT's AdamaxW (Kingma and Ba 2015, 7.1; Loshchilov and Hutter 2019): decay shrinks, it is no gradient."""
    decay, x, mean, largest = 0.5, START.clone(), torch.zeros(3), torch.zeros(3)
    for step in range(1, STEPS + 1):
        g = gradient(x)
        mean, largest = 0.9 * mean + 0.1 * g, torch.maximum(0.999 * largest, g.abs())
        x = x * (1 - LR * decay) - LR / (1 - 0.9**step) * mean / (largest + EPS)
    flags = {"adamax_betas": "(0.9, 0.999)", "adamax_eps": EPS, "no_bias_correction": False}
    parameter = START.clone().requires_grad_()
    cfg = Namespace(lr=[LR], weight_decay=decay, **flags)
    torch.testing.assert_close(
        steps_of(OPTIMIZER_REGISTRY["adamax"](cfg, [parameter]), parameter), x, rtol=0, atol=1e-7
    )
    still = torch.ones(1, requires_grad=True)
    one = OPTIMIZER_REGISTRY["adamax"](Namespace(lr=[0.1], weight_decay=0.5, **flags), [still])
    (0 * still).sum().backward()
    one.step()
    assert float(still) == pytest.approx(0.95)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"rmsprop_alpha": 1.0}, "--rmsprop-alpha 1"),
        ({"momentum": -0.1}, "--momentum -0.1"),
        ({"rmsprop_eps": -1.0}, "--rmsprop-eps -1"),
        ({"weight_decay": float("nan")}, "--weight-decay nan"),
    ],
)
def test_values_out_of_range_are_refused(flags: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rmsprop(**flags)
