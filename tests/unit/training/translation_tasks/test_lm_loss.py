"""Translation with the LMs' own loss, and PCGrad, against fairseq's loss and what is worked out another way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.utils import convert_padding_direction
from scipy.special import log_softmax

from lmfusion.lm.loading import load_lm
from lmfusion.training.gradients import project, seeded_orders, total


@pytest.mark.parametrize("kind", ["baseline", "SRC-FT"])
def test_without_further_terms_it_is_fairseqs_translation_bit_for_bit(
    make_any: Any, make: Any, step: Any, kind: str
) -> None:
    stock = make_any(kind, "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1)
    (wanted_log, wanted), (log, found) = step(stock, kind), step(make(kind, like=stock), kind)
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    for name in wanted_log:
        assert torch.equal(torch.as_tensor(log[name]), torch.as_tensor(wanted_log[name])), name


@pytest.mark.parametrize(("kind", "name"), [("SRC-FT", "src_lm"), ("TGT-FT", "tgt_lm")])
def test_the_lms_loss_is_its_cross_entropy_of_the_sentences(
    make: Any, step: Any, make_batch: Any, tied: dict[str, Path], kind: str, name: str
) -> None:
    """By numpy in float64, sentence by sentence and without padding."""
    trainer, batch = make(kind, "--lm-loss-weight", 0.5, still=True), make_batch(kind)
    log, _ = step(trainer, kind)
    loss, _ = trainer.get_criterion().task_losses(trainer.get_model(), batch, 4)[name]()
    is_source = kind == "SRC-FT"
    lm = load_lm(tied[kind])
    expected, words = 0.0, 0
    for row in batch["net_input"]["src_tokens"] if is_source else batch["target"]:
        sentence = row[row.ne(1)]
        framed = torch.cat([torch.tensor([2]), sentence])[None]
        logits = lm(framed if is_source else framed[:, :-1])[0][0]
        scores = log_softmax(logits.detach().double().numpy(), axis=-1)
        wanted = framed[0, 1:].numpy()
        expected -= scores[-len(wanted) :][np.arange(len(wanted)), wanted].sum()
        words += len(wanted)
    assert log[f"{name}_words"] == words
    assert float(log[f"{name}_loss"]) == pytest.approx(expected, rel=1e-5)
    # A mean over the LM's words, for each target token, as the translation's loss is a sum over these.
    assert loss.item() == pytest.approx(0.5 * batch["ntokens"] / words * expected, rel=1e-5)


@pytest.mark.parametrize("kind", ["SRC-FT", "TGT-FT"])
def test_the_lms_loss_is_the_same_of_targets_that_are_padded_on_the_left(make: Any, make_batch: Any, kind: str) -> None:
    """--left-pad-target, and sources padded on the right."""
    trainer, right = make(kind, "--lm-loss-weight", 1, still=True), make_batch(kind)
    moved = {
        name: convert_padding_direction(rows, 1, **{way: True})
        for name, rows, way in (
            ("src_tokens", right["net_input"]["src_tokens"], "left_to_right"),
            ("prev_output_tokens", right["net_input"]["prev_output_tokens"], "right_to_left"),
            ("target", right["target"], "right_to_left"),
        )
    }
    assert moved["target"][2, 0] == 1
    other = {**right, "target": moved.pop("target"), "net_input": {**right["net_input"], **moved}}
    model, criterion = trainer.get_model(), trainer.get_criterion()
    model.eval()
    values = [[loss() for loss in criterion.task_losses(model, batch, 0).values()] for batch in (right, other)]
    for (loss, log), (wanted, wanted_log) in zip(*values):
        torch.testing.assert_close(loss, wanted, rtol=1e-5, atol=0)
        assert {name: log[name] for name in log if name.endswith("_words")} == {
            name: wanted_log[name] for name in wanted_log if name.endswith("_words")
        }


@pytest.mark.parametrize("combined", ["sum", "pcgrad"])
def test_while_the_lm_is_left_as_it_is_its_loss_adds_nothing_to_clip(make: Any, step: Any, combined: str) -> None:
    """The step is the fourth: frozen for six updates, and for three."""
    flags = ("--lm-loss-weight", 5, "--gradients", combined, "--src-lm-freeze-updates")
    log, found = step(make("SRC-FT", *flags, 6, still=True), "SRC-FT")
    assert "src_lm_loss" not in log
    assert all(value is None or not value.any() for name, value in found.items() if ".lm." in name)
    later_log, later = step(make("SRC-FT", *flags, 3, still=True), "SRC-FT")
    assert float(later_log["src_lm_loss"]) > 0
    assert any(value is not None and value.any() for name, value in later.items() if ".lm." in name)


def test_where_fairseq_divides_by_sentences_the_terms_weigh_as_much(make: Any, step: Any) -> None:
    """With --sentence-avg, too, the loss of a batch is a sum over target tokens."""
    flags = ("--lm-loss-weight", 2, "--smart-weight", 1, "--smart-epsilon", 0.3, "--smart-step-size", 1)
    trainer = make("SRC-FT", *flags, still=True)
    log, found = step(trainer, "SRC-FT")
    by_sentence, of_sentences = step(make("SRC-FT", *flags, "--sentence-avg", still=True, like=trainer), "SRC-FT")
    torch.testing.assert_close(of_sentences, found, rtol=0, atol=0)
    assert by_sentence["sample_size"] == log["nsentences"] < log["sample_size"] == log["ntokens"]
    assert float(by_sentence["smart"]) == float(log["smart"]) > 0


def test_pcgrad_projects_the_gradients_of_the_two_losses(make: Any, step: Any) -> None:
    weight = ("--lm-loss-weight", 2.0)
    trainer = make("SRC-FT", *weight, "--gradients", "pcgrad", still=True)
    log, found = step(trainer, "SRC-FT")
    plain_log, plain = step(make("SRC-FT", still=True, like=trainer), "SRC-FT")
    both_log, both = step(make("SRC-FT", *weight, still=True, like=trainer), "SRC-FT")
    assert log["loss"] == both_log["loss"] == plain_log["loss"]
    names = list(found)
    translation = [plain[name] for name in names]
    words = [
        None if "encoder.embed_tokens.representation.lm" not in name or both[name] is None else both[name] - plain[name]
        for name in names
    ]
    wanted = dict(zip(names, total(project([translation, words], seeded_orders(2, 1, 4)))))
    for name in names:
        if wanted[name] is not None:
            torch.testing.assert_close(found[name], wanted[name], rtol=1e-3, atol=2e-4)
