"""Encoding, targets, and the order of batches."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.trainer import Trainer

from lmfusion.consumers.heads import IGNORED, HeadSpec
from lmfusion.errors import InputError
from lmfusion.text.labelled import Example
from lmfusion.training import sentence_measures as measures
from lmfusion.training.sentence_data import (
    Encoded,
    Encoder,
    SentenceData,
    evaluation_batches,
    training_batches,
)
from lmfusion.training.sentence_data import (
    batch as joined_batch,
)
from lmfusion.training.sentences import SentencesConfig, SentencesTask

CLASS = HeadSpec("mood", "class", None, ("bad", "good"))
SAME = HeadSpec("same", "binary", "concat", ("0", "1"))
APART = HeadSpec("apart", "binary", "uv", ("0", "1"))
TAGS = HeadSpec("words", "tags", None, ("N", "V"))


@pytest.fixture
def encoder(make_heads: Any) -> Any:
    lm = make_heads().lm
    return lambda spec, truncate=False: Encoder(lm, spec, 0, Path("train.tsv"), truncate=truncate)


def test_examples_become_framed_rows(encoder: Any) -> None:
    made = encoder(CLASS)(Example(2, ("w1 w5",), "good"))
    assert ([row.tolist() for row in made.rows], int(made.target)) == ([[0, 5, 9, 2]], 1)
    made = encoder(SAME)(Example(2, ("w1 w5", "w0"), "1"))
    assert ([row.tolist() for row in made.rows], float(made.target)) == ([[0, 5, 9, 2, 4, 2]], 1.0)
    made = encoder(APART)(Example(2, ("w1 w5", "w0"), "0"))
    assert [row.tolist() for row in made.rows] == [[0, 5, 9, 2], [0, 4, 2]]


@pytest.mark.parametrize("flag", ["fp16", "bf16"])
def test_half_precision_does_not_round_scores(encoder: Any, make_heads: Any, flag: str) -> None:
    """fairseq turns what is float32 in a batch into half precision; 3.8 would be 3.797 there."""
    spec = HeadSpec("near", "score", "cos")
    made = [encoder(spec)(Example(2, ("w1 w5", "w0"), label)) for label in ("3.8", "0.1")]
    common = SimpleNamespace(**{"fp16": False, "bf16": False, flag: True})
    trainer = SimpleNamespace(cfg=SimpleNamespace(common=common))
    target = Trainer._fp_convert_sample(trainer, joined_batch(made, 1))["target"]
    logits = torch.tensor([0.5, -1.0], dtype=getattr(torch, {"fp16": "float16", "bf16": "bfloat16"}[flag]))
    loss = make_heads().heads["near"].loss(logits, target)
    found = measures.counts(spec, logits, target, loss)
    assert (loss.dtype, float(found["y"])) == (torch.float32, pytest.approx(3.9, abs=1e-12))
    expected = (5 * logits.double().sigmoid() - torch.tensor([3.8, 0.1], dtype=torch.float64)).pow(2).mean()
    assert float(loss) == pytest.approx(float(expected), rel=1e-6)


def test_the_first_symbol_of_a_word_has_its_tag(encoder: Any) -> None:
    class Pieces:
        """Every word becomes w1 and itself."""

        def encode(self, text: str) -> str:
            return " ".join(f"w1 {word}" for word in text.split())

    encode = encoder(TAGS)
    encode.lm.vocabulary.codec = Pieces()
    made = encode(Example(2, ("w5 w6",), "V N"))
    assert made.rows[0].tolist() == [0, 5, 9, 5, 10, 2]
    assert made.target.tolist() == [IGNORED, 1, IGNORED, 0, IGNORED, IGNORED]


def test_long_texts_are_refused_by_line_or_cut_at_the_longer_side(encoder: Any) -> None:
    long, short = " ".join(["w1"] * 40), "w2 w3"
    with pytest.raises(InputError, match=r"train.tsv, line 7: 42 symbols .* --truncate-texts"):
        encoder(SAME)(Example(7, (long, short), "1"))
    limit = encoder(SAME).lm.max_positions()
    for texts, expected in (((long, short), [limit - 4, 2]), ((short, long), [2, limit - 4]), ((long, long), None)):
        row = encoder(SAME, True)(Example(7, texts, "1")).rows[0].tolist()
        ends = [place for place, token in enumerate(row) if token == 2]
        lengths = [ends[0] - 1, ends[1] - ends[0] - 1]
        assert len(row) <= limit + 1
        assert lengths == expected if expected else abs(lengths[0] - lengths[1]) <= 1
    assert len(encoder(CLASS, True)(Example(7, (long,), "bad")).rows[0]) == limit + 1


@pytest.mark.parametrize("spec", [CLASS, TAGS, SAME])
def test_a_message_names_file_and_line_once(encoder: Any, spec: HeadSpec) -> None:
    """Of a text that is too long, and of a label that is none."""
    long = " ".join(["w1"] * 40)
    label = {"class": "good", "binary": "1", "tags": " ".join(["N"] * 40)}[spec.kind]
    texts = (long,) if spec.pair is None else (long, "w2")
    for text, wanted in ((long, label), ("w1", "x")):
        with pytest.raises(InputError) as raised:
            encoder(spec)(Example(1, (text, *texts[1:]), wanted))
        assert str(raised.value).count("train.tsv, line 1") == 1


def test_a_label_outside_the_classes_is_named_by_line(encoder: Any) -> None:
    with pytest.raises(InputError, match=r"train.tsv, line 9: the label 'ugly' is none of the classes bad, good"):
        encoder(CLASS)(Example(9, ("w1",), "ugly"))


def data(*counts: int, training: bool = True) -> SentenceData:
    specs = [HeadSpec(f"t{number}", "score", None) for number in range(len(counts))]
    made = [
        [Encoded(number, (torch.arange(2 + index % 3),), torch.tensor(1.0)) for index in range(count)]
        for number, count in enumerate(counts)
    ]
    return SentenceData(specs, made, 1, training=training)


def order(given: SentenceData, **changes: Any) -> list[list[int]]:
    values = {"joint": False, "count": None, "workers": 1, "seed": 1, **changes}
    return training_batches(given, [2, 4, 3], **values)


def task(**given: Any) -> SentencesTask:
    """The task of the three kinds of examples, as its flags make it."""
    cfg = SentencesConfig(data="a=x:b=y:c=z", batch_size=4, seed=1)
    for name, value in given.items():
        setattr(cfg, name, value)
    return SentencesTask(cfg)


@pytest.mark.parametrize("schedule", ["round_robin", "joint"])
def test_the_flag_of_the_schedule_says_what_a_batch_holds_and_each_epoch_has_an_order_of_its_own(schedule: str) -> None:
    given = data(20, 9, 5)
    orders = []
    for epoch in (1, 2):
        made = task(schedule=schedule).get_batch_iterator(given, epoch=epoch, grouped_shuffling=False)
        orders.append(list(made.batch_sampler(given, epoch)))
    owners = {frozenset(given.items[index].task for index in batch) for batch in orders[0]}
    assert owners == ({frozenset({0, 1, 2})} if schedule == "joint" else {frozenset({each}) for each in range(3)})
    assert orders[0] != orders[1]


def test_the_flag_of_the_gradients_switches_projection_on() -> None:
    assert task(schedule="joint", gradients="pcgrad").task_gradients.projected
    assert not task(schedule="joint").task_gradients.projected


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_round_robin_gives_every_task_as_many_batches_in_turn(workers: int) -> None:
    given = data(20, 9, 5)
    owners = [{given.items[index].task for index in batch} for batch in order(given, workers=workers)]
    assert all(len(owner) == 1 for owner in owners)
    flat = [owner.pop() for owner in owners]
    counts = Counter(flat)
    assert max(counts.values()) - min(counts.values()) == 0
    assert 10 <= counts[0] <= 12
    steps = [flat[start : start + workers] for start in range(0, len(flat), workers)]
    assert all(len(set(step)) == 1 for step in steps)
    assert [step[0] for step in steps[:6]] == [0, 1, 2, 0, 1, 2]


def test_joint_batches_hold_every_task_in_its_size() -> None:
    given = data(20, 9, 6)
    for batch in order(given, joint=True, count=2):
        assert Counter(given.items[index].task for index in batch) == {0: 2, 1: 4, 2: 3}


def test_an_epoch_sees_all_and_another_epoch_another_order() -> None:
    given = data(20, 9, 5)
    seen = {index for batch in order(given) for index in batch}
    assert seen == set(range(34))
    assert order(given) == order(given)
    assert order(given) != order(given, seed=2)


def test_evaluation_sees_each_example_once() -> None:
    given = data(20, 9, 5, training=False)
    batches = evaluation_batches(given, [3, 3, 3])
    assert sorted(index for batch in batches for index in batch) == list(range(34))
    assert all(len({given.items[index].task for index in batch}) == 1 for batch in batches)
