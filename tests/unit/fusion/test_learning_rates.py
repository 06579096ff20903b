"""A part of a model with its own learning rate, under fairseq's own optimizers."""

from __future__ import annotations

from argparse import Namespace
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from fairseq import optim
from fairseq.optim.adam import FairseqAdamConfig
from fairseq.optim.fp16_optimizer import FP16Optimizer
from fairseq.optim.nag import FairseqNAGConfig
from omegaconf import OmegaConf
from torch import nn

from lmfusion.errors import InputError
from lmfusion.fusion.learning_rates import (
    LearningRate,
    check_optimizer_settings,
    check_unused_parameters,
    optimizer_name,
    set_learning_rate,
)

OPTIMIZERS = {
    "adam": {**vars(FairseqAdamConfig(weight_decay=0.1, lr=[0.01], tpu=False)), "_name": "adam"},
    "nag": {**vars(FairseqNAGConfig(momentum=0.9, weight_decay=0.1, lr=[0.01])), "_name": "nag"},
}
every_optimizer = pytest.mark.parametrize("name", OPTIMIZERS)


class Model(nn.Module):
    """Two linear layers; one of them stands for a language model."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.lm, self.rest = nn.Linear(4, 4), nn.Linear(4, 4)

    def backward(self) -> None:
        """Gradients of a loss of both layers."""
        self.rest(torch.tanh(self.lm(torch.arange(8.0).view(2, 4)))).pow(2).sum().backward()


def optimizer_of(name: str, parameters: Any) -> Any:
    return optim.build_optimizer(OmegaConf.create(OPTIMIZERS[name]), list(parameters))


def weights(module: nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in module.parameters()]


def same(ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> bool:
    return all(torch.equal(left, right) for left, right in zip(ours, theirs))


def step(model: Model, optimizer: Any, lr: float) -> None:
    optimizer.zero_grad()
    model.backward()
    optimizer.set_lr(lr)
    optimizer.step()


@every_optimizer
def test_scaled_rate_equals_an_optimizer_of_its_own(name: str) -> None:
    """Against two of fairseq's optimizers, one at a quarter of the other's rate; over a schedule."""
    ours, theirs = Model(), Model()
    set_learning_rate(ours.lm, LearningRate(scale=0.25))
    one = optimizer_of(name, ours.parameters())
    two = {part: optimizer_of(name, getattr(theirs, part).parameters()) for part in ("lm", "rest")}
    for lr in (0.01, 0.02, 0.005):
        step(ours, one, lr)
        for optimizer in two.values():
            optimizer.zero_grad()
        theirs.backward()
        for part, optimizer in two.items():
            optimizer.set_lr(lr * (0.25 if part == "lm" else 1.0))
            optimizer.step()
        assert same(weights(ours), weights(theirs))
        assert one.get_lr() == lr, "what schedulers and logs see"
    assert not same(weights(ours.lm), weights(Model().lm))


@every_optimizer
def test_frozen_updates_leave_the_weights_bitwise_alone(name: str) -> None:
    """Even with weight decay and gradients: a half-precision optimizer hands over zeros where there are none."""
    model, rate = Model(), LearningRate(frozen_updates=2)
    before = weights(model)
    set_learning_rate(model.lm, rate)
    optimizer = optimizer_of(name, model.parameters())
    for update in range(3):
        rate.num_updates = update
        step(model, optimizer, 0.01)
        assert same(weights(model.lm), before[:2]) == (update < 2)
        assert not same(weights(model.rest), before[2:])


def test_adam_counts_no_steps_while_parameters_are_frozen() -> None:
    """With zeros for gradients, as half precision has them, its first steps afterwards would be too long."""
    moved = []
    for zeros in (False, True):
        model, rate = Model(), LearningRate(frozen_updates=400)
        set_learning_rate(model.lm, rate)
        optimizer = optimizer_of("adam", model.parameters())
        before = weights(model.lm)
        for update in (*range(395, 400), 400):
            rate.num_updates = update
            optimizer.zero_grad()
            model.backward()
            if rate.frozen:
                for parameter in model.lm.parameters():
                    parameter.grad = torch.zeros_like(parameter) if zeros else None
            optimizer.set_lr(0.01)
            optimizer.step()
        moved.append([after - start for after, start in zip(weights(model.lm), before)])
    assert same(*moved)
    assert moved[0][0].abs().max() < 1.01 * 0.01 * (1 + 0.1), "a first step of Adam's is as long as the rate"


@pytest.mark.parametrize("name", ["sgd", "adafactor"])
def test_optimizers_of_the_old_kind_have_rates_too(name: str) -> None:
    section = Namespace(optimizer=name, relative_step=False)
    check_optimizer_settings({**run(), "optimizer": section}, "--src-lm-lr-scale")
    assert optimizer_name(section) == name
    section.relative_step = True
    with pytest.raises(InputError, match="--relative-step, by which Adafactor sets its rate"):
        check_optimizer_settings({**run(), "optimizer": section}, "--src-lm-lr-scale")


@every_optimizer
def test_optimizer_state_survives_a_checkpoint(name: str) -> None:
    """Interrupted after two of four updates, the weights come out the same to the last bit."""
    models = [Model(), Model()]
    for model in models:
        set_learning_rate(model.lm, LearningRate(scale=0.5))
    whole, parts = (optimizer_of(name, model.parameters()) for model in models)
    for update in range(4):
        step(models[0], whole, 0.01)
        if update == 2:
            state = parts.state_dict()
            parts = optimizer_of(name, models[1].parameters())
            parts.load_state_dict(state)
        step(models[1], parts, 0.01)
    assert same(weights(models[0]), weights(models[1]))


def test_half_precision_copies_keep_the_rate() -> None:
    """fairseq's --fp16 --fp16-no-flatten-grads steps on float32 copies of the parameters."""
    model = Model()
    set_learning_rate(model.lm, LearningRate(scale=0.25))
    copies = FP16Optimizer.build_fp32_params(None, list(model.parameters()), flatten=False)
    groups = optimizer_of("adam", copies).param_groups
    assert [len(group["params"]) for group in groups] == [2, 2]


def test_without_marks_nothing_changes() -> None:
    assert len(optimizer_of("adam", Model().parameters()).param_groups) == 1


def test_is_plain() -> None:
    assert LearningRate().is_plain
    assert not LearningRate(scale=2).is_plain
    assert not LearningRate(frozen_updates=1).is_plain


def run(**changes: Any) -> Any:
    cfg = {
        "common": {
            "fp16": False,
            "fp16_no_flatten_grads": False,
            "memory_efficient_fp16": False,
            "memory_efficient_bf16": False,
        },
        "distributed_training": {
            "ddp_backend": "pytorch_ddp",
            "distributed_world_size": 1,
            "find_unused_parameters": False,
        },
        "optimizer": {"_name": "adam"},
    }
    return OmegaConf.merge(OmegaConf.create(cfg), OmegaConf.create(changes))


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({"common": {"fp16": True}}, "--fp16-no-flatten-grads"),
        ({"distributed_training": {"ddp_backend": "fully_sharded"}}, "pytorch_ddp"),
        ({"optimizer": {"_name": "composite"}}, "leave one out"),
    ],
)
def test_settings_without_room_for_it_are_refused(changes: dict[str, Any], fix: str) -> None:
    with pytest.raises(InputError, match=f"^--src-lm-lr-scale .*{fix}"):
        check_optimizer_settings(run(**changes), "--src-lm-lr-scale")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"common": {"fp16": True, "fp16_no_flatten_grads": True}},
        {"common": {"fp16": True, "memory_efficient_fp16": True}},
    ],
)
def test_other_settings_are_fine(changes: dict[str, Any]) -> None:
    check_optimizer_settings(run(**changes), "--src-lm-lr-scale")
    check_optimizer_settings(None, "--src-lm-lr-scale")


@pytest.mark.parametrize(
    ("distributed", "works"),
    [
        ({"distributed_world_size": 2}, False),
        ({"distributed_world_size": 2, "find_unused_parameters": True}, True),
        ({"distributed_world_size": 2, "ddp_backend": "legacy_ddp"}, True),
        ({}, True),
    ],
)
def test_unused_parameters_of_a_frozen_beginning_need_a_flag(distributed: dict[str, Any], works: bool) -> None:
    """PyTorch's DistributedDataParallel waits for gradients of all parameters unless told otherwise."""
    with nullcontext() if works else pytest.raises(InputError, match="add --find-unused-parameters"):
        check_unused_parameters(run(distributed_training=distributed), "--src-lm-freeze-updates")
