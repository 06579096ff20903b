"""Runs whose numbers leave their range end with what to change, in every precision; nothing goes on with nan."""

from __future__ import annotations

from typing import Any, Callable

import pytest
import torch

from lmfusion.errors import UserError

NAG = ("--optimizer", "nag", "--lr", 1.0)
ADAM = ("--optimizer", "adam", "--lr", 1e-3)


def explode(trainer: Any, factor: float) -> None:
    """Multiply the loss's gradient, as a diverging model does."""
    weight = next(p for p in trainer.get_model().parameters() if p.requires_grad and p.dim() > 1)
    weight.register_hook(lambda gradient: gradient * factor)


@pytest.mark.parametrize("flags", [(), ("--bf16",), ("--memory-efficient-bf16",)], ids=["float32", "bf16", "efficient"])
def test_gradients_that_are_no_numbers(
    make_trainer: Callable[..., Any], make_batch: Callable[..., Any], flags: tuple[object, ...]
) -> None:
    trainer = make_trainer("cloze LM", *NAG, *flags)
    trainer.train_step([make_batch("cloze LM")])
    before = [p.clone() for p in trainer.get_model().parameters()]
    explode(trainer, float("nan"))
    with pytest.raises(UserError) as caught:
        trainer.train_step([make_batch("cloze LM")])
    said = str(caught.value)
    assert "diverged after update 1: gradients are Nan/Inf" in said
    for mend in ("a lower --lr than 1 ", "--clip-norm 0.1", "--optimizer adam --adam-betas", "--reset-optimizer"):
        assert mend in said
    assert ("float32 instead" in said) is False
    assert all(map(torch.equal, before, trainer.get_model().parameters()))


def test_a_loss_scale_at_its_minimum_names_the_precision(
    make_trainer: Callable[..., Any], make_batch: Callable[..., Any]
) -> None:
    """The last halving that fairseq allows: from 128 to 100 or less."""
    trainer = make_trainer("cloze LM", *NAG, "--fp16", "--min-loss-scale", 100, "--clip-norm", 0.1)
    explode(trainer, float("inf"))
    with pytest.raises(UserError) as caught:
        trainer.train_step([make_batch("cloze LM")])
    said = str(caught.value)
    assert "Minimum loss scale reached (100" in said
    assert "--bf16 or float32 instead of --fp16" in said
    assert "Adam instead of Nesterov's momentum" in said
    assert "--clip-norm 0.1" not in said  # it is given


def test_adam_is_not_advised_to_adam(make_trainer: Callable[..., Any], make_batch: Callable[..., Any]) -> None:
    trainer = make_trainer("SRC-FT", *ADAM)
    explode(trainer, float("inf"))
    with pytest.raises(UserError, match=r"a lower --lr than 0\.001") as caught:
        trainer.train_step([make_batch("SRC-FT")])
    assert "Adam" not in str(caught.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="fairseq skips the update")
def test_an_overflow_on_a_cpu_says_what_to_use_there(
    make_trainer: Callable[..., Any], make_batch: Callable[..., Any]
) -> None:
    trainer = make_trainer("baseline", *ADAM, "--fp16")
    explode(trainer, float("inf"))
    with pytest.raises(UserError, match=r"overflow in fp16 \(setting loss scale to: 64.*--cpu-bf16, --bf16 or float32"):
        trainer.train_step([make_batch("baseline")])


def test_a_learning_rate_far_too_high_is_noticed(
    make_trainer: Callable[..., Any], make_batch: Callable[..., Any]
) -> None:
    """Nothing is made up here: the weights grow until the loss is no number."""
    trainer = make_trainer("causal LM", "--optimizer", "nag", "--lr", 1e30)
    batches = [[make_batch("causal LM")]] * 20
    with pytest.raises(UserError, match=r"diverged after update \d.*lower --lr than 1e\+30"):
        list(map(trainer.train_step, batches))
