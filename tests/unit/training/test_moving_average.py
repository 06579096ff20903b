"""The average of weights that --bregman-weight and --store-ema keep, beside the recurrence in float64."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import tasks

from lmfusion.errors import InputError

TASK = ("--task", "lmfusion_translation", "-s", "en", "-t", "de", "--optimizer", "adam")
BREGMAN = (*TASK, "--criterion", "translation_tasks", "--bregman-weight", 1, "--bregman-momentum", 0.99)
STORED = ("--optimizer", "adam", "--store-ema", "--ema-decay", 0.99)
NORM_FIRST = ("--encoder-normalize-before", "--decoder-normalize-before")
ONE_EMBEDDING = "--share-all-embeddings"
FLAGS = {
    "as it is": BREGMAN,
    "one embedding in the decoder": (*BREGMAN, "--share-decoder-input-output-embed"),
    "one embedding": (*BREGMAN, ONE_EMBEDDING),
    "norm first": (*BREGMAN, *NORM_FIRST),
    "fairseq's own": (*STORED, ONE_EMBEDDING, *NORM_FIRST),
    "bf16": (*BREGMAN, "--bf16", ONE_EMBEDDING),
    "fp16": (*BREGMAN, "--fp16", "--fp16-no-flatten-grads", ONE_EMBEDDING),
}
ROUNDING = {"--bf16": 2**-8, "--fp16": 2**-11}
"""Of reading an average that is kept in float32 in half precision, once; not of keeping it so."""


def weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.double().clone() for name, value in model.state_dict().items() if "version" not in name}


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS.keys())
def test_each_weight_has_the_average_of_its_values(
    make_trainer: Callable[..., Any], make_batch: Callable[..., Any], flags: tuple[Any, ...]
) -> None:
    trainer = make_trainer("baseline", *flags)
    expected = weights(trainer.get_model())
    trainer.ema.get_model()  # fairseq makes it when it is asked for
    for _ in range(20):
        trainer.train_step([make_batch("baseline")])
        expected = {name: 0.99 * expected[name] + 0.01 * now for name, now in weights(trainer.get_model()).items()}
    found = weights(trainer.ema.get_model())
    assert found.keys() == expected.keys()
    tolerance = 1e-6 + sum(ROUNDING.get(flag, 0) for flag in map(str, flags))
    for name, value in expected.items():
        assert torch.allclose(found[name], value, rtol=tolerance, atol=1e-7), name


def test_after_a_tenth_of_the_updates_the_average_may_move_more_slowly(
    make_trainer: Callable[..., Any], make_batch: Callable[..., Any]
) -> None:
    trainer = make_trainer("baseline", *BREGMAN, "--bregman-momentum-late", 0.5, "--max-update", 39)
    expected = weights(trainer.get_model())
    trainer.ema.get_model()
    for beta in (0.99, 0.99, 0.99, 0.5, 0.5):
        trainer.train_step([make_batch("baseline")])
        now = weights(trainer.get_model())
        expected = {name: beta * expected[name] + (1 - beta) * value for name, value in now.items()}
    found = weights(trainer.ema.get_model())
    for name, value in expected.items():
        assert torch.allclose(found[name], value, rtol=1e-6, atol=1e-7), name
    with pytest.raises(InputError, match="--max-update"):
        make_trainer("baseline", *BREGMAN, "--bregman-momentum-late", 0.5, "--max-update", 0)


def test_an_average_goes_on_from_where_it_was_saved(
    make_trainer: Callable[..., Any], make_batch: Callable[..., Any], tmp_path: Path
) -> None:
    first = make_trainer("baseline", *FLAGS["one embedding"], *NORM_FIRST)
    for _ in range(3):
        first.train_step([make_batch("baseline")])
    first.consolidate_optimizer()
    first.save_checkpoint(str(tmp_path / "saved.pt"), {"epoch": 1})
    second = make_trainer("baseline", *FLAGS["one embedding"], *NORM_FIRST)
    second.load_checkpoint(str(tmp_path / "saved.pt"))
    for trainer in (first, second):
        for _ in range(3):
            trainer.train_step([make_batch("baseline")])
    one, other = (trainer.ema.get_model().state_dict() for trainer in (first, second))
    assert one.keys() == other.keys()
    assert "decoder.layer_norm.weight" in one
    assert all(torch.equal(value, other[name]) for name, value in one.items())


@pytest.mark.parametrize("flag", ["--ema-update-freq", "--ema-start-update"])
def test_an_average_that_updates_do_not_renew_is_refused_beside_the_bregman_term(
    make_trainer: Callable[..., Any], flag: str
) -> None:
    """In training; what was trained when the flag was obeyed in silence is validated as before."""
    with pytest.raises(InputError, match=f"{flag} 3"):
        make_trainer("baseline", *BREGMAN, flag, 3)
    cfg = make_trainer("baseline", *BREGMAN).cfg
    cfg.ema[flag.removeprefix("--").replace("-", "_")] = 3
    task = tasks.setup_task(cfg.task, from_checkpoint=True)
    task.build_model(cfg.model, from_checkpoint=True)
    assert task.build_criterion(cfg.criterion).smart.bregman_weight == 1


def test_in_half_precision_a_weight_of_several_names_has_one_average(
    make_trainer: Callable[..., Any], make_batch: Callable[..., Any]
) -> None:
    trainer = make_trainer("baseline", *FLAGS["bf16"])
    trainer.ema.get_model()
    trainer.train_step([make_batch("baseline")])
    averages = trainer.ema.fp32_params
    tied = [averages[f"{name}.weight"] for name in ("encoder.embed_tokens", "decoder.embed_tokens")]
    tied.append(averages["decoder.output_projection.weight"])
    assert tied[0].dtype == torch.float32
    assert tied[0] is tied[1] is tied[2]
