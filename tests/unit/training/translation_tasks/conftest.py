"""Trainers of translation with the LMs' own loss, PCGrad and SMART, their batches and their steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest
import torch
from torch import Tensor

ADAM = ("--optimizer", "adam")
TASK = ("--task", "lmfusion_translation", "-s", "en", "-t", "de")
CRITERION = ("--criterion", "translation_tasks", "--label-smoothing", 0.1)
DROPOUTS = ("dropout", "attention-dropout", "relu-dropout")


@pytest.fixture
def tied(make_cloze: Any, make_causal: Any, save_lm: Any) -> dict[str, Path]:
    """Language models whose output embeddings are their input embeddings."""
    made = {"SRC-FT": make_cloze, "TGT-FT": make_causal}
    return {kind: save_lm(each(share_decoder_input_output_embed=True), f"{kind}.pt") for kind, each in made.items()}


@pytest.fixture
def make_any(make_trainer: Any, tied: dict[str, Path]) -> Callable[..., Any]:
    """fairseq-train's trainer with those and Adam: ``make_any("SRC-FT", "--lr", 0.1)``."""

    def trainer(kind: str, *flags: object) -> Any:
        lm = (f"--{kind[:3].lower()}-lm", tied[kind]) if kind in tied else ()
        return make_trainer(kind, *ADAM, *flags, *lm)

    return trainer


@pytest.fixture
def make(make_any: Any) -> Callable[..., Any]:
    """Such a trainer with the task and its criterion: ``make("SRC-FT", "--smart-weight", 1, still=True, like=other)``.

    ``still`` turns dropout off; ``like`` is a trainer whose weights it starts from.
    """

    def trainer(kind: str, *flags: object, still: bool = False, like: Any = None) -> Any:
        lm = [word for name in DROPOUTS for word in (f"--{kind[:3].lower()}-lm-{name}", 0)]
        made = make_any(kind, *TASK, *CRITERION, *(("--dropout", 0, *lm) if still else ()), *flags)
        if like is not None:
            made.get_model().load_state_dict(like.get_model().state_dict())
        return made

    return trainer


@pytest.fixture
def make_batch(make_batch: Callable[..., Any]) -> Callable[..., Any]:
    """A batch with padding on the left of a source and on the right of a target."""

    def make(kind: str) -> dict[str, Any]:
        batch = make_batch(kind)
        inputs = {name: value.clone() for name, value in batch["net_input"].items()}
        target = batch["target"].clone()
        inputs["src_tokens"][1, :3] = 1
        inputs["src_lengths"][1] = 6
        inputs["prev_output_tokens"][2, 5:] = 1
        target[2, 4], target[2, 5:] = 2, 1
        return {**batch, "net_input": inputs, "target": target, "ntokens": int(target.ne(1).sum())}

    return make


@pytest.fixture
def step(make_batch: Callable[..., Any]) -> Callable[..., Any]:
    """One call of the task's ``train_step``: its log, and the gradients that it leaves, by name."""

    def run(trainer: Any, kind: str, averaged: Any = None) -> tuple[dict[str, Any], dict[str, Tensor | None]]:
        model = trainer.get_model()
        trainer.zero_grad()
        torch.manual_seed(7)
        extra = {} if averaged is None else {"ema_model": averaged}
        criterion, batch = trainer.get_criterion(), make_batch(kind)
        _, _, log = trainer.task.train_step(batch, model, criterion, trainer.optimizer, 4, **extra)
        return log, {name: each.grad for name, each in model.named_parameters()}

    return run
