"""Values, models and flags with which the LMs' losses, PCGrad and SMART make no sense are refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lmfusion.errors import InputError
from lmfusion.lm.loading import build
from lmfusion.training.translation_criterion import TranslationTasksConfig, TranslationTasksCriterion
from lmfusion.training.word_loss import check_predicts


def criterion(**given: Any) -> TranslationTasksCriterion:
    cfg = TranslationTasksConfig()
    for name, value in {"seed": 1, "sentence_avg": False, **given}.items():
        setattr(cfg, name, value)
    return TranslationTasksCriterion(cfg, SimpleNamespace(target_dictionary=None))


def test_another_average_than_the_bregman_terms_is_refused(make: Any) -> None:
    average = ("--bregman-weight", 5, "--store-ema", "--ema-decay")
    with pytest.raises(InputError, match="bregman-momentum"):
        make("SRC-FT", *average, 0.9999)
    assert make("SRC-FT", *average, 0.99).cfg.ema.ema_decay == 0.99


@pytest.mark.parametrize(
    "flags",
    [
        {"lm_loss_weight": -1.0},
        {"lm_loss_weight": float("nan")},
        {"smart_epsilon": 0.0},
        {"smart_epsilon": float("inf")},
        {"bregman_momentum": 1.0},
    ],
)
def test_values_out_of_range_are_refused(flags: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(flags)).replace("_", "-")):
        criterion(**flags)


@pytest.mark.parametrize("flags", [{"lm_loss_weight": 1.0}, {"smart_weight": 1.0}])
def test_models_without_a_trained_language_model_are_refused(flags: dict[str, float]) -> None:
    frozen = SimpleNamespace(trains_lm=False)
    for model in (SimpleNamespace(), SimpleNamespace(fusions=lambda: [(frozen, None)])):
        criterion().check(model)
        with pytest.raises(InputError, match="--src-fusion finetune"):
            criterion(**flags).check(model)


@pytest.mark.parametrize("flag", ["--checkpoint-activations", "--offload-activations"])
def test_layers_without_gradients_within_a_step_are_refused(make: Any, flag: str) -> None:
    with pytest.raises(InputError, match=f"--smart-weight.*{flag}"):
        make("SRC-FT", "--smart-weight", 1, flag)
    assert make("SRC-FT", "--bregman-weight", 1, flag)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--criterion", "translation_tasks", "--gradients", "pcgrad"], "--lm-loss-weight"),
        ([], "--criterion translation_tasks"),
    ],
)
def test_what_does_not_go_together_is_refused(make_any: Any, flags: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_any("SRC-FT", "--task", "lmfusion_translation", "-s", "en", "-t", "de", *flags)


def test_lms_without_a_loss_on_sentences_are_refused(make_causal: Any, make_cloze: Any) -> None:
    sizes = {"decoder_embed_dim": 16, "decoder_ffn_embed_dim": 24, "decoder_layers": 1, "decoder_attention_heads": 2}
    limits = {"tokens_per_sample": 30, "max_target_positions": 30}
    symbols = ["<s>", "<pad>", "</s>", "<unk>", "a", "<mask>"]
    with pytest.raises(InputError, match="no loss on whole sentences"):
        check_predicts(build({"family": "bert", **sizes, **limits}, symbols))
    with pytest.raises(InputError, match="no loss on whole sentences"):
        check_predicts(make_cloze(targets=("future", "past")))
    with pytest.raises(InputError, match="--share-decoder-input-output-embed"):
        check_predicts(make_causal(share_decoder_input_output_embed=False))
