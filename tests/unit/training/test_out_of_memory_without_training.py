"""Decoding, scoring and validating: the batch that does not fit is named, with the flags to change."""

from __future__ import annotations

import logging
import re
from typing import Any, Callable

import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig
from fairseq.sequence_scorer import SequenceScorer

from lmfusion.errors import UserError

GPU_MESSAGE = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB"


def without_memory(layer: Any, error: Exception) -> None:
    """From now on the layer cannot compute."""

    def before(*_: Any) -> None:
        raise error

    layer.register_forward_pre_hook(before)


def generator(trainer: Any, **flags: Any) -> Any:
    """fairseq-generate's, with these of its flags."""
    return trainer.task.build_generator([trainer.get_model()], GenerationConfig(**flags))


@pytest.mark.parametrize(
    ("stack", "error"),
    [("encoder", torch.OutOfMemoryError(GPU_MESSAGE)), ("decoder", RuntimeError("… can't allocate memory: …"))],
)
def test_decoding(
    make_trainer: Callable[..., Any], make_batch: Callable[..., Any], stack: str, error: RuntimeError
) -> None:
    trainer, batch = make_trainer("TGT-FT"), make_batch("TGT-FT", sentences=6, width=11)
    model = trainer.get_model().eval()
    searching = generator(trainer, beam=5, max_len_b=30)
    assert len(trainer.task.inference_step(searching, [model], batch)) == 6
    without_memory(getattr(model, stack).layers[0], error)
    with pytest.raises(UserError) as caught:
        trainer.task.inference_step(searching, [model], batch)
    said = str(caught.value)
    assert said.startswith("out of memory generating with a beam of 5 from 6 sentences, 6 x 11 source")
    assert "numbers 0, 1, 2, 3, 4 … of the data set" in said
    for flag in ("--batch-size 3 ", "--max-tokens", "--beam smaller than 5", "--max-len-a 0 --max-len-b 30"):
        assert flag in said


def test_decoding_one_sentence_by_one_beam(make_trainer: Callable[..., Any], make_batch: Callable[..., Any]) -> None:
    """Nothing is advised that is at its least."""
    trainer = make_trainer("baseline")
    without_memory(trainer.get_model().encoder.layers[0], torch.OutOfMemoryError(GPU_MESSAGE))
    searching = generator(trainer, beam=1)
    with pytest.raises(UserError, match=r"1 sentences.*: give a lower limit on the length") as caught:
        trainer.task.inference_step(searching, [trainer.get_model()], make_batch("baseline", sentences=1))
    assert "--beam" not in str(caught.value)
    assert "--batch-size" not in str(caught.value)


def test_scoring_by_a_language_model(make_trainer: Callable[..., Any], make_batch: Callable[..., Any]) -> None:
    """As fairseq-eval-lm does it."""
    trainer = make_trainer("causal LM")
    scorer = SequenceScorer(trainer.task.target_dictionary)
    without_memory(trainer.get_model(), torch.OutOfMemoryError(GPU_MESSAGE))
    with pytest.raises(UserError, match=r"out of memory scoring 6 sentences, 6 x 9 source.*--batch-size 3 "):
        scorer.generate([trainer.get_model()], make_batch("causal LM", sentences=6))


def test_validating(make_trainer: Callable[..., Any], make_batch: Callable[..., Any]) -> None:
    """As fairseq-validate does it, which has no trainer."""
    trainer = make_trainer("SRC-ELMO")
    without_memory(trainer.get_model(), torch.OutOfMemoryError(GPU_MESSAGE))
    with pytest.raises(UserError, match=r"out of memory validating 6 sentences, 6 x 9 source.*--batch-size 3 "):
        trainer.task.valid_step(make_batch("SRC-ELMO", sentences=6), trainer.get_model(), trainer.criterion)


def test_a_trainer_still_tries_a_validation_batch_twice(
    make_trainer: Callable[..., Any], make_batch: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    """And names its own flags."""
    trainer = make_trainer("baseline")
    without_memory(trainer.get_model(), torch.OutOfMemoryError(GPU_MESSAGE))
    caplog.set_level(logging.WARNING)
    with pytest.raises(UserError, match=r"out of memory with 6 sentences, 6 x 9 source.*--max-tokens-valid"):
        trainer.valid_step(make_batch("baseline", sentences=6))
    assert "retrying batch" in caplog.text


def test_other_errors_stay_what_they_are(make_trainer: Callable[..., Any], make_batch: Callable[..., Any]) -> None:
    trainer = make_trainer("baseline")
    without_memory(trainer.get_model().encoder.layers[0], RuntimeError("The size of tensor a (3) must match"))
    with pytest.raises(RuntimeError, match=re.escape("tensor a (3)")) as caught:
        trainer.task.inference_step(generator(trainer, beam=2), [trainer.get_model()], make_batch("baseline"))
    assert not isinstance(caught.value, UserError)
    assert caught.value.__cause__ is None
