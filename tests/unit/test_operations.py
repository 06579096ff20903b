"""lmfusion/kernels is only faster: with the folder deleted everything imports and computes the same."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from lmfusion import plain_operations
from lmfusion.kernels import operations as fast_operations

ROOT = Path(__file__).resolve().parents[2]
PLAIN = plain_operations.__name__

# Tiny models of every kind, 10 x 16 tokens: rows enough for every way a product can be taken.
COMPUTE = """
import logging, sys
logging.basicConfig(stream=sys.stdout, level=logging.INFO)
import torch
import lmfusion
lmfusion.install()
from models import SOURCE, TARGET, Sizes, language_model, seq2seq
from lmfusion.training.chunked_loss import chunked_cross_entropy

SIZES = Sizes(60, 16, 24, 2, 2, 16, 24, 2, 2)

def without_dropout(model):
    for module in model.modules():
        for name in ("dropout", "attention_dropout", "activation_dropout", "p"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    return model

def results(name, model, inputs, target):
    model = without_dropout(model).train()
    loss = model(*inputs, head=lambda x, w: chunked_cross_entropy(x, w, target, padding_idx=1))[0].loss
    loss.backward()
    found[f"{name} loss"] = loss.detach()
    for key, parameter in model.named_parameters():
        if parameter.grad is not None:
            found[f"{name} gradient of {key}"] = parameter.grad
    with torch.no_grad():
        found[f"{name} logits"] = model.eval()(*inputs)[0]

torch.manual_seed(1)
found = {}
tokens = torch.randint(4, 60, (10, 16)).masked_fill(torch.arange(16) >= torch.arange(7, 17).unsqueeze(1), 1)
tokens[:, 0] = 2
shifted = torch.cat([tokens[:, 1:], torch.ones(10, 1, dtype=torch.long)], 1)
for name, side, target in (("cloze", SOURCE, tokens), ("causal", TARGET, shifted)):
    torch.manual_seed(2)
    results(name, language_model(side, SIZES), [tokens], target)
for cell in ({"src": "elmo", "tgt": "finetune"}, {"src": "finetune", "tgt": "elmo"}, {}):
    torch.manual_seed(2)
    lengths = tokens.ne(1).sum(1)
    results(f"cell {cell}", seq2seq(SIZES, **cell, attention_dropout=0.1), [tokens, lengths, tokens], shifted)
torch.save(found, sys.argv[1])
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package, to be cut."""
    shutil.copytree(ROOT / "lmfusion", tmp_path / "lmfusion", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(root: Path, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python on the package under ``root``."""
    path = os.pathsep.join([str(root), str(ROOT / "benchmarks")])
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
    )


def computed(root: Path) -> tuple[dict[str, torch.Tensor], str]:
    """What the models compute, and what the log says."""
    done = run(root, COMPUTE, str(root / "found.pt"))
    assert done.returncode == 0, done.stderr
    return torch.load(root / "found.pt", weights_only=True), done.stdout


@pytest.mark.slow
def test_without_the_folder_losses_gradients_and_logits_are_the_same(copy: Path) -> None:
    fast, said = computed(copy)
    assert "lmfusion/kernels" not in said
    kernels = copy / "lmfusion" / "kernels"
    shutil.rmtree(kernels)
    (kernels / "__pycache__").mkdir(parents=True)  # as a folder looks whose sources git has removed
    plain, said = computed(copy)
    assert said.count("lmfusion/kernels is not there") == 1
    assert list(fast) == list(plain)
    kinds = [name.split()[-1] for name in fast if name.endswith(("loss", "logits"))]
    assert kinds == ["loss", "logits"] * 5
    for name, tensor in fast.items():
        assert tensor.isfinite().all(), name
        largest = plain[name].abs().max()
        assert (tensor - plain[name]).abs().max() <= 1e-5 * max(1.0, float(largest)), name


def test_broken_kernels_say_so_and_are_not_passed_over(copy: Path) -> None:
    (copy / "lmfusion" / "kernels" / "dropout.py").write_text("import no_such_module\n", encoding="utf-8")
    done = run(copy, "import lmfusion; lmfusion.install()")
    assert done.returncode != 0
    assert "no_such_module" in done.stderr


@pytest.mark.slow
def test_every_module_imports_without_the_folder(copy: Path) -> None:
    shutil.rmtree(copy / "lmfusion" / "kernels")
    code = (
        "import importlib, pkgutil, lmfusion; lmfusion.install()\n"
        "for module in pkgutil.walk_packages(lmfusion.__path__, 'lmfusion.'):\n"
        "    if not module.name.endswith('__main__'): importlib.import_module(module.name); print(module.name)"
    )
    done = run(copy, code)
    assert done.returncode == 0, done.stderr
    assert {"lmfusion.lm.cloze", "lmfusion.fusion.model", "lmfusion.inference.hub"} <= set(done.stdout.split())


def test_both_kinds_of_operations_are_called_alike() -> None:
    for name in fast_operations.__all__:
        fast, plain = (getattr(module, name) for module in (fast_operations, plain_operations))
        assert names_of(fast) == names_of(plain), name
    own = {name for name, value in vars(plain_operations).items() if getattr(value, "__module__", "") == PLAIN}
    assert {*own, "Linear"} == set(fast_operations.__all__)


def names_of(called: Any) -> list[tuple[str, Any, Any]]:
    """Parameters with their kinds and defaults."""
    return [(p.name, p.kind, p.default) for p in inspect.signature(called).parameters.values()]
