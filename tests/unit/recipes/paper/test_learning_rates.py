"""fairseq's own schedulers, built from the recipes' flags, give the paper's learning rates update by update."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch
from fairseq import optim
from fairseq.optim import lr_scheduler

pytestmark = pytest.mark.slow
LMS = ["en_cloze", "de_causal", "cnn_dm_cloze", "cnn_dm_causal"]
WARM_UP, LAST = 16_000, 984_000


def paper_rate(updates: int) -> float:
    """Section 3.2: linear from 1e-7 to 1 in 16K updates, then annealed by one cosine to 1e-4."""
    if updates < WARM_UP:
        return 1e-7 + (1.0 - 1e-7) * updates / WARM_UP
    turn = math.pi * (updates - WARM_UP) / (LAST - WARM_UP)
    return 1e-4 + (1.0 - 1e-4) * (1.0 + math.cos(turn)) / 2.0


def inverse_square_root(updates: int, peak: float, warm_up: int) -> float:
    """Vaswani et al. (2017), with a linear beginning at 1e-7."""
    if updates < warm_up:
        return 1e-7 + (peak - 1e-7) * updates / warm_up
    return peak * math.sqrt(warm_up / updates)


def scheduler_of(cfg: Any) -> Any:
    """The scheduler that the trainer would build, on an optimizer of one parameter."""
    optimizer = optim.build_optimizer(cfg.optimizer, [torch.nn.Parameter(torch.zeros(1))])
    scheduler = lr_scheduler.build_lr_scheduler(cfg.lr_scheduler, optimizer)
    scheduler.step_begin_epoch(1)
    return scheduler


def some_updates(warm_up: int, last: int) -> list[int]:
    """Both ends of both phases, and 500 in between."""
    corners = [0, 1, warm_up // 2, warm_up - 1, warm_up, warm_up + 1, last // 2, last - 2, last - 1]
    return sorted({*corners, *random.Random(5).sample(range(last), 500)})


@pytest.mark.parametrize("name", LMS)
def test_language_models_are_pretrained_at_the_papers_learning_rates(name: str, scripts: Any, configure: Any) -> None:
    cfg = configure(scripts.training(f"lm/{name}", "--gpus", "32"))
    scheduler = scheduler_of(cfg)
    for updates in some_updates(WARM_UP, LAST):
        assert scheduler.step_update(updates) == pytest.approx(paper_rate(updates), rel=1e-9), updates
    assert cfg.optimization.max_update == LAST, "behind it the schedule starts anew"
    assert scheduler.step_update(LAST) == 1.0, "which is why"


def test_the_papers_rates_where_they_are_known_by_heart() -> None:
    assert paper_rate(0) == 1e-7
    assert paper_rate(8_000) == pytest.approx(0.5, abs=1e-6)
    assert paper_rate(WARM_UP) == 1.0
    assert paper_rate(500_000) == pytest.approx(0.50005)
    assert paper_rate(LAST) == pytest.approx(1e-4)


@pytest.mark.parametrize("name", LMS)
def test_language_models_have_the_papers_other_settings(name: str, scripts: Any, configure: Any) -> None:
    cfg = configure(scripts.training(f"lm/{name}", "--gpus", "32"))
    assert (cfg.optimizer._name, cfg.optimizer.momentum, cfg.optimizer.weight_decay) == ("nag", 0.99, 0.0)
    assert cfg.optimization.clip_norm == 0.1
    assert cfg.criterion._name == "cross_entropy"
    assert cfg.common.fp16
    model = cfg.model
    assert (model.dropout, model.attention_dropout, model.activation_dropout) == (0.1, 0.1, 0.05)
    assert (model.decoder_layers, model.decoder_embed_dim) == (12, 1024)
    assert (model.decoder_ffn_embed_dim, model.decoder_attention_heads) == (4096, 16)
    assert model.share_decoder_input_output_embed
    assert cfg.task.sample_break_mode == "eos"
    assert model._name == ("bi_transformer_lm_big" if "cloze" in name else "uni_transformer_lm_big")
    assert bool(cfg.task.self_target) == ("cloze" in name)
    assert cfg.task.tokens_per_sample == 1024, "a model with this LM has to read whole articles"


def test_the_alternative_for_few_gpus_is_adam_in_bf16_on_the_same_batch(scripts: Any, configure: Any) -> None:
    command = scripts.training("lm/en_cloze", "--optimizer", "adam", "--gpus", "1")
    assert "--bf16" in command
    assert "--fp16" not in command
    cfg = configure(command)
    scheduler = scheduler_of(cfg)
    for updates in some_updates(10_000, 400_000):
        assert scheduler.step_update(updates) == pytest.approx(inverse_square_root(updates, 5e-4, 10_000), rel=1e-9)
    assert not cfg.common.tpu, "which fairseq makes of --bf16, and then uses no GPU"
    assert cfg.common.bf16
    assert 2480 * cfg.optimization.update_freq[0] == 32 * 2480
    other = scripts.training("lm/en_cloze", "--gpus", "1")
    assert command[command.index("--save-dir") + 1] != other[other.index("--save-dir") + 1]


@pytest.mark.parametrize(("row", "peak"), [("wmt18_ende", 7e-4), ("wmt18_entr", 7e-4), ("cnn_dm", 5e-4)])
def test_rows_are_trained_at_the_papers_learning_rates(row: str, peak: float, scripts: Any, configure: Any) -> None:
    cfg = configure(scripts.training(f"{row}/baseline", "--gpus", "8"))
    scheduler = scheduler_of(cfg)
    for updates in some_updates(4_000, 30_000):
        assert scheduler.step_update(updates) == pytest.approx(inverse_square_root(updates, peak, 4_000), rel=1e-9)
    assert cfg.optimizer._name == "adam"
    assert cfg.optimizer.adam_betas == "(0.9, 0.98)"
    assert cfg.optimizer.adam_eps == 1e-8
    assert (cfg.criterion._name, cfg.criterion.label_smoothing) == ("label_smoothed_cross_entropy", 0.1)
