"""Translation with the LMs' own loss, PCGrad and SMART, against fairseq's loss and what is worked out another way."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import numpy as np
import pytest
import torch
from fairseq.utils import convert_padding_direction
from scipy.special import log_softmax
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.lm.loading import build, load_lm
from lmfusion.training.gradients import project, seeded_orders, total
from lmfusion.training.translation_criterion import TranslationTasksConfig, TranslationTasksCriterion
from lmfusion.training.word_loss import check_predicts

ADAM = ("--optimizer", "adam")
TASK = ("--task", "lmfusion_translation", "-s", "en", "-t", "de", "--criterion", "translation_tasks")
TASK += ("--label-smoothing", 0.1, *ADAM)
STILL = ("--dropout", 0, "--src-lm-dropout", 0, "--src-lm-attention-dropout", 0, "--src-lm-relu-dropout", 0)


@pytest.fixture
def tied(make_cloze: Any, make_causal: Any, save_lm: Any) -> dict[str, Path]:
    """Language models whose output embeddings are their input embeddings."""
    made = {"SRC-FT": make_cloze, "TGT-FT": make_causal}
    return {kind: save_lm(each(share_decoder_input_output_embed=True), f"{kind}.pt") for kind, each in made.items()}


@pytest.fixture
def make(make_trainer: Any, tied: dict[str, Path]) -> Callable[..., Any]:
    """fairseq-train's trainer with those: ``make("SRC-FT", "--optimizer", "adam")``."""

    def trainer(kind: str, *flags: object) -> Any:
        lm = (f"--{kind[:3].lower()}-lm", tied[kind]) if kind in tied else ()
        return make_trainer(kind, *flags, *lm)

    return trainer


@pytest.fixture
def step(make_batch: Callable[..., Any]) -> Callable[..., Any]:
    """One call of the task's ``train_step``: its log, and the gradients that it leaves, by name."""

    def run(trainer: Any, kind: str, averaged: Any = None) -> tuple[dict[str, Any], dict[str, Tensor | None]]:
        model = trainer.get_model()
        trainer.zero_grad()
        torch.manual_seed(7)
        extra = {} if averaged is None else {"ema_model": averaged}
        criterion, batch = trainer.get_criterion(), padded(make_batch(kind))
        _, _, log = trainer.task.train_step(batch, model, criterion, trainer.optimizer, 4, **extra)
        return log, {name: each.grad for name, each in model.named_parameters()}

    return run


def padded(batch: dict[str, Any]) -> dict[str, Any]:
    """The batch, with padding on the left of a source and on the right of a target."""
    inputs = {name: value.clone() for name, value in batch["net_input"].items()}
    target = batch["target"].clone()
    inputs["src_tokens"][1, :3] = 1
    inputs["src_lengths"][1] = 6
    inputs["prev_output_tokens"][2, 5:] = 1
    target[2, 4], target[2, 5:] = 2, 1
    return {**batch, "net_input": inputs, "target": target, "ntokens": int(target.ne(1).sum())}


def same(found: dict[str, Any], wanted: dict[str, Any], **limits: float) -> None:
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        if value is None or found[name] is None:
            assert found[name] is value, name
        else:
            torch.testing.assert_close(found[name], value, **limits)


@pytest.mark.parametrize("kind", ["baseline", "SRC-FT"])
def test_without_further_terms_it_is_fairseqs_translation_bit_for_bit(make: Any, step: Any, kind: str) -> None:
    stock = make(kind, "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1, *ADAM)
    ours = make(kind, *TASK)
    ours.get_model().load_state_dict(stock.get_model().state_dict())
    (wanted_log, wanted), (log, found) = step(stock, kind), step(ours, kind)
    same(found, wanted, rtol=0, atol=0)
    for name in wanted_log:
        assert torch.equal(torch.as_tensor(log[name]), torch.as_tensor(wanted_log[name])), name


@pytest.mark.parametrize(("kind", "name"), [("SRC-FT", "src_lm"), ("TGT-FT", "tgt_lm")])
def test_the_lms_loss_is_its_cross_entropy_of_the_sentences(
    make: Any, step: Any, make_batch: Any, tied: dict[str, Path], kind: str, name: str
) -> None:
    """By numpy in float64, sentence by sentence and without padding."""
    side = name[:3]
    still = [str(flag).replace("src", side) for flag in STILL]
    trainer, batch = make(kind, *TASK, *still, "--lm-loss-weight", 0.5), padded(make_batch(kind))
    log, _ = step(trainer, kind)
    loss, _ = trainer.get_criterion().task_losses(trainer.get_model(), batch, 4)[name]()
    texts = batch["net_input"]["src_tokens"] if side == "src" else batch["target"]
    lm = load_lm(tied[kind])
    expected, words = 0.0, 0
    for row in texts:
        sentence = row[row.ne(1)]
        framed = torch.cat([torch.tensor([2]), sentence])[None]
        logits = lm(framed if side == "src" else framed[:, :-1])[0][0]
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
    trainer = make(kind, *TASK, *[str(flag).replace("src", kind[:3].lower()) for flag in STILL], "--lm-loss-weight", 1)
    right = padded(make_batch(kind))
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
    flags = (*STILL, "--lm-loss-weight", 5, "--gradients", combined, "--src-lm-freeze-updates")
    log, found = step(make("SRC-FT", *TASK, *flags, 6), "SRC-FT")
    assert "src_lm_loss" not in log
    assert all(value is None or not value.any() for name, value in found.items() if ".lm." in name)
    later_log, later = step(make("SRC-FT", *TASK, *flags, 3), "SRC-FT")
    assert float(later_log["src_lm_loss"]) > 0
    assert any(value is not None and value.any() for name, value in later.items() if ".lm." in name)


def test_where_fairseq_divides_by_sentences_the_terms_weigh_as_much(make: Any, step: Any) -> None:
    """With --sentence-avg, too, the loss of a batch is a sum over target tokens."""
    flags = (*STILL, "--lm-loss-weight", 2, "--smart-weight", 1, "--smart-epsilon", 0.3, "--smart-step-size", 1)
    trainer = make("SRC-FT", *TASK, *flags)
    log, found = step(trainer, "SRC-FT")
    by_sentence, of_sentences = step(trainer_like(make, trainer, *TASK, *flags, "--sentence-avg"), "SRC-FT")
    same(of_sentences, found, rtol=0, atol=0)
    assert by_sentence["sample_size"] == log["nsentences"] < log["sample_size"] == log["ntokens"]
    assert float(by_sentence["smart"]) == float(log["smart"]) > 0


def test_pcgrad_projects_the_gradients_of_the_two_losses(make: Any, step: Any) -> None:
    flags = (*STILL, "--lm-loss-weight", 2.0)
    trainer = make("SRC-FT", *TASK, *flags, "--gradients", "pcgrad")
    log, found = step(trainer, "SRC-FT")
    plain_log, plain = step(trainer_like(make, trainer, *TASK, *STILL), "SRC-FT")
    both_log, both = step(trainer_like(make, trainer, *TASK, *flags), "SRC-FT")
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


def trainer_like(make: Any, other: Any, *flags: object) -> Any:
    """A trainer with other flags, and the weights of another."""
    trainer = make("SRC-FT", *flags)
    trainer.get_model().load_state_dict(other.get_model().state_dict())
    return trainer


@pytest.mark.parametrize("kind", ["SRC-FT", "TGT-FT"])
def test_smoothness_is_small_in_a_small_ball_and_moves_the_lm(make: Any, step: Any, kind: str) -> None:
    """With dropout on: all passes of a step draw the same."""
    sizes = {}
    for epsilon in (1e-6, 0.3):
        flags = ("--smart-weight", 1, "--smart-epsilon", epsilon, "--smart-step-size", 1, "--smart-noise", 1e-4)
        log, grads = step(make(kind, *TASK, "--dropout", 0.2, *flags), kind)
        sizes[epsilon] = float(log["smart"]) / log["sample_size"]
        assert all(value is None or value.isfinite().all() for value in grads.values())
    assert 0 <= sizes[1e-6] < 1e-6
    assert sizes[0.3] > 1e-3


def test_the_search_finds_more_than_chance(make: Any, step: Any, make_batch: Any) -> None:
    """The divergence at about the worst place of the ball is above that at any of 20 random corners of it."""
    epsilon = 0.05
    flags = (*STILL, "--smart-weight", 1, "--smart-epsilon", epsilon, "--smart-step-size", 10 * epsilon)
    trainer = make("SRC-FT", *TASK, *flags, "--smart-noise", epsilon / 10, "--smart-steps", 3)
    log, _ = step(trainer, "SRC-FT")
    found = float(log["smart"]) / log["sample_size"]
    model, batch = trainer.get_model(), padded(make_batch("SRC-FT"))
    words = batch["target"].ne(1)

    def probabilities(change: Any = None) -> Tensor:
        hook = model.encoder.fusion.lm.token_embedding.register_forward_hook(
            lambda _, inputs, output: output if change is None else output + change(output) * inputs[0].ne(1)[..., None]
        )
        with torch.no_grad():
            logits = model(**batch["net_input"])[0].double().log_softmax(-1)
        hook.remove()
        return logits

    clean = probabilities()
    generator = torch.Generator().manual_seed(1)
    for _ in range(20):
        other = probabilities(lambda output: epsilon * torch.randn(output.shape, generator=generator).sign())
        apart = ((clean.exp() - other.exp()) * (clean - other)).sum(-1)[words].mean()
        assert 0 < float(apart) < found


def test_at_the_averaged_weights_the_bregman_term_is_zero_and_so_is_its_gradient(make: Any, step: Any) -> None:
    trainer = make("SRC-FT", *TASK, "--dropout", 0.2, "--bregman-weight", 5)
    assert trainer.cfg.ema.store_ema
    assert trainer.cfg.ema.ema_decay == 0.99
    averaged = copy.deepcopy(trainer.get_model())
    log, found = step(trainer, "SRC-FT", averaged)
    assert float(log["bregman"]) == 0.0
    _, plain = step(trainer_like(make, trainer, *TASK, "--dropout", 0.2), "SRC-FT")
    same(found, plain, rtol=0, atol=1e-6)
    with torch.no_grad():
        averaged.decoder.layers[0].fc1.weight.mul_(3)
    log, _ = step(trainer, "SRC-FT", averaged)
    assert float(log["bregman"]) > 1e-4


EPSILON, STEP_SIZE, NOISE = 0.3, 0.2, 0.1
UPDATE, SEED = 4, 1


def divergence(one: Tensor, other: Tensor, words: Tensor) -> Tensor:
    """The mean symmetric Kullback-Leibler divergence of words, from its definition."""
    p, q = one.softmax(-1), other.softmax(-1)
    return ((p * (p / q).log()).sum(-1) + (q * (q / p).log()).sum(-1))[words].mean()


def sizes(changes: Tensor, norm: str) -> Tensor:
    """The norm of each sentence's change."""
    flat = changes.flatten(1)
    return (flat.abs().amax(1) if norm == "inf" else flat.norm(dim=1)).view(-1, 1, 1)


def inside(changes: Tensor, norm: str) -> Tensor:
    """The nearest change in the ball of each sentence."""
    return (
        changes.clamp(-EPSILON, EPSILON) if norm == "inf" else changes * (EPSILON / sizes(changes, norm)).clamp(max=1)
    )


def worst(run: Callable[..., Tensor], shape: torch.Size, words: Tensor, mask: Tensor, norm: str, steps: int) -> Tensor:
    """The changes of embeddings after so many steps up, from the noise that the seed and the update draw."""
    generator = torch.Generator().manual_seed(SEED * 1_000_003 + UPDATE)
    clean = run().detach()
    change = inside(torch.randn(shape, generator=generator).double() * NOISE * mask, norm)
    for _ in range(steps):
        tried = change.clone().requires_grad_()
        (up,) = torch.autograd.grad(divergence(run(tried), clean, words), tried)
        change = inside(change + STEP_SIZE * up / sizes(up, norm) * mask, norm)
    return change


@pytest.mark.parametrize(("norm", "steps"), [("inf", 1), ("2", 2)])
@pytest.mark.parametrize("kind", ["SRC-FT", "TGT-FT"])
def test_smoothness_and_its_gradient_are_those_of_the_formulas(
    make: Any,
    step: Any,
    make_batch: Any,
    kind: str,
    norm: str,
    steps: int,
) -> None:
    side = kind[:3].lower()
    still = [str(word).replace("src", side) for word in STILL]
    ball = ("--smart-epsilon", EPSILON, "--smart-step-size", STEP_SIZE, "--smart-noise", NOISE, "--smart-steps", steps)
    trainer = make(kind, *TASK, *still, "--smart-weight", 2, "--smart-norm", norm, *ball)
    log, found = step(trainer, kind)

    model, batch = copy.deepcopy(trainer.get_model()).double(), padded(make_batch(kind))
    model.zero_grad()
    embedding = (model.encoder if side == "src" else model.decoder).embed_tokens.fusion.lm.token_embedding
    read: dict[str, Any] = {}

    def run(change: Tensor | None = None) -> Tensor:
        def changed(_: Any, inputs: Any, output: Tensor) -> Tensor:
            read.update(ids=inputs[0], shape=output.shape)
            return output if change is None else output + change

        hook = embedding.register_forward_hook(changed)
        logits: Tensor = model(**batch["net_input"])[0]
        hook.remove()
        return logits

    words, clean = batch["target"].ne(1), run()
    change = worst(run, read["shape"], words, read["ids"].ne(1)[..., None].double(), norm, steps)
    smoothness = divergence(run(change), clean, words)
    assert float(log["smart"]) / log["sample_size"] == pytest.approx(float(smoothness), rel=1e-3)
    loss, _ = trainer.get_criterion().compute_loss(model, (clean,), batch)
    (loss + log["sample_size"] * 2 * smoothness).backward()
    for name, parameter in model.named_parameters():
        if found[name] is not None:
            distance = (found[name].double() - parameter.grad).norm()
            assert distance <= 2e-3 * parameter.grad.norm() + 1e-5, name


def test_the_distance_from_averaged_weights_has_its_weight(make: Any, step: Any, make_batch: Any) -> None:
    trainer = make("SRC-FT", *TASK, *STILL, "--bregman-weight", 3)
    averaged = copy.deepcopy(trainer.get_model())
    with torch.no_grad():
        averaged.decoder.layers[0].fc1.weight.mul_(3)
    log, found = step(trainer, "SRC-FT", averaged)
    model, batch = copy.deepcopy(trainer.get_model()).double(), padded(make_batch("SRC-FT"))
    model.zero_grad()
    logits = model(**batch["net_input"])[0]
    before = averaged.double()(**batch["net_input"])[0].detach()
    apart = divergence(logits, before, batch["target"].ne(1))
    assert float(log["bregman"]) / log["sample_size"] == pytest.approx(float(apart), rel=1e-4)
    loss, _ = trainer.get_criterion().compute_loss(model, (logits,), batch)
    (loss + log["sample_size"] * 3 * apart).backward()
    for name, parameter in model.named_parameters():
        if found[name] is not None:
            assert (found[name].double() - parameter.grad).norm() <= 1e-3 * parameter.grad.norm() + 1e-5, name


def criterion(**given: Any) -> TranslationTasksCriterion:
    cfg = TranslationTasksConfig()
    for name, value in {"seed": 1, "sentence_avg": False, **given}.items():
        setattr(cfg, name, value)
    return TranslationTasksCriterion(cfg, SimpleNamespace(target_dictionary=None))


def test_another_average_than_the_bregman_terms_is_refused(make: Any) -> None:
    average = ("--bregman-weight", 5, "--store-ema", "--ema-decay")
    with pytest.raises(InputError, match="bregman-momentum"):
        make("SRC-FT", *TASK, *average, 0.9999)
    assert make("SRC-FT", *TASK, *average, 0.99).cfg.ema.ema_decay == 0.99


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


@pytest.mark.parametrize(
    ("flags", "message"),
    [([*TASK, "--gradients", "pcgrad"], "--lm-loss-weight"), ([*TASK[:6], *ADAM], "--criterion translation_tasks")],
)
def test_what_does_not_go_together_is_refused(make: Any, flags: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make("SRC-FT", *flags)


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
