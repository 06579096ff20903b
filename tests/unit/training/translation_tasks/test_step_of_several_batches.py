"""A step of several batches (--update-freq) and what it is divided by, worked out with PyTorch's own functions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lmfusion.training.word_loss import framed_rows

SMOOTHING, WEIGHT = 0.1, 0.7


def smoothed(model: Any, batch: dict[str, Any]) -> Tensor:
    """Label-smoothed cross-entropy, the sum over target tokens.

    (1 - eps) of -log p(word), and eps spread over the other words (fairseq's form, eps / (V - 1) each).
    """
    log_p = model(**batch["net_input"])[0].log_softmax(-1)
    words = batch["target"].ne(1)
    size = log_p.size(-1)
    wanted = torch.full_like(log_p, SMOOTHING / (size - 1))
    wanted.scatter_(-1, batch["target"][..., None], 1 - SMOOTHING)
    return -(wanted * log_p).sum(-1)[words].sum()


def words_of_lm(model: Any, batch: dict[str, Any]) -> Tensor:
    """The mean cross-entropy of a fine-tuned cloze LM over the words of the sources and their ends."""
    lm = model.encoder.embed_tokens.representation.lm
    rows = framed_rows(model, model.encoder, batch)
    return F.cross_entropy(lm(rows)[0][:, 1:].flatten(0, 1), rows[:, 1:].flatten(), ignore_index=1)


@pytest.mark.parametrize("by", ["tokens", "sentences"])
def test_a_step_is_the_sum_over_its_batches_divided_once(make: Any, make_batch: Any, by: str) -> None:
    flags = ("--lm-loss-weight", WEIGHT, "--clip-norm", 0, *(["--sentence-avg"] if by == "sentences" else []))
    trainer, first = make("SRC-FT", *flags, "--update-freq", 2, still=True), make_batch("SRC-FT")
    second = {name: value[:2] if torch.is_tensor(value) else value for name, value in first.items()}
    second["net_input"] = {name: value[:2] for name, value in first["net_input"].items()}
    second |= {"nsentences": 2, "ntokens": int(second["target"].ne(1).sum())}
    model = trainer.get_model()
    total = sum(
        smoothed(model, batch) + WEIGHT * batch["ntokens"] * words_of_lm(model, batch) for batch in (first, second)
    )
    size = sum(batch["ntokens"] if by == "tokens" else batch["nsentences"] for batch in (first, second))
    names = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    (total / size).backward()
    expected = {name: model.get_parameter(name).grad.clone() for name in names}
    model.zero_grad()

    found: dict[str, Tensor] = {}

    def keep() -> None:
        found.update({name: model.get_parameter(name).grad.clone() for name in names})

    trainer.optimizer.step = lambda **_: keep()
    trainer.train_step([first, second])
    assert sum(value.norm() for value in expected.values()) > 1
    for name in names:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-4, atol=1e-5, msg=name)
