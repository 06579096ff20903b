"""bf16 on CPUs: in training steps and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn

from lmfusion.lm.cloze import BiTransformerLanguageModel
from lmfusion.lm.precision import KEPT_PRODUCTS, PRIMITIVE_CACHE, training_autocast

TOKENS = torch.tensor([[2, 5, 9, 4, 2]])


@pytest.mark.parametrize(
    ("training", "cpu_bf16", "dtype"),
    [(True, True, torch.bfloat16), (False, True, torch.float32), (True, False, torch.float32)],
)
def test_matrix_products_are_bf16_only_in_training_and_when_asked_for(
    training: bool, cpu_bf16: bool, dtype: torch.dtype
) -> None:
    model = nn.Linear(3, 3).train(training)
    with training_autocast(model, cpu_bf16):
        assert model(torch.ones(1, 3)).dtype == dtype


@pytest.mark.parametrize(
    ("given", "training", "found"),
    [(None, True, str(KEPT_PRODUCTS)), (None, False, None), ("7", True, "7")],
)
def test_a_training_in_bf16_keeps_few_compiled_products_unless_told_how_many(
    given: str | None, training: bool, found: str | None
) -> None:
    """oneDNN reads the variable at its first product, so it is asked for in a new process."""
    words = (
        "import os, torch; from lmfusion.lm.precision import training_autocast as cast;"
        f"context = cast(torch.nn.Linear(3, 3).train({training}), True);"
        f"print(os.environ.get({PRIMITIVE_CACHE!r}))"
    )
    env = {name: value for name, value in os.environ.items() if name != PRIMITIVE_CACHE}
    env.update({PRIMITIVE_CACHE: given} if given else {})
    done = subprocess.run([sys.executable, "-c", words], env=env, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == str(found)


def test_weights_and_gradients_stay_single_precision(make_cloze: Any) -> None:
    model = BiTransformerLanguageModel(make_cloze(cpu_bf16=True)).train()
    logits = model(TOKENS)[0]
    assert logits.dtype == torch.bfloat16
    logits.float().square().sum().backward()
    for parameter in model.parameters():
        assert parameter.dtype == torch.float32
        assert parameter.grad is not None
        assert parameter.grad.dtype == torch.float32
        assert parameter.grad.isfinite().all()


def test_evaluation_of_such_a_model_is_single_precision_to_the_last_bit(make_cloze: Any) -> None:
    lm = make_cloze(cpu_bf16=True)
    model = BiTransformerLanguageModel(lm).eval()
    lm.config["cpu_bf16"] = False
    expected = model(TOKENS)[0]
    lm.config["cpu_bf16"] = True
    assert torch.equal(model(TOKENS)[0], expected)


def test_bf16_changes_predictions_by_rounding_only(make_cloze: Any) -> None:
    quiet = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
    model = BiTransformerLanguageModel(make_cloze(cpu_bf16=True, **quiet))
    single, half = model.eval()(TOKENS)[0], model.train()(TOKENS)[0].float()
    assert not torch.equal(single, half)
    torch.testing.assert_close(half, single, rtol=0, atol=0.05 * single.abs().max().item())
