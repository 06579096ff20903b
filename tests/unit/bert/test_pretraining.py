"""What BERT is trained on and by: pairs of spans, masks, and a loss of the chosen words alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from fairseq.logging.metrics import aggregate
from scipy.stats import binomtest

from lmfusion.errors import InputError
from lmfusion.lm.bert import NEXT, RANDOM, BertLM
from lmfusion.training.bert_pretraining import BertPretrainingCriterion
from lmfusion.training.documents import Documents
from lmfusion.training.span_pairs import SpanPairs

WORDS = 3000
CLOSING = 2


@pytest.fixture(scope="module")
def dictionary() -> Dictionary:
    made = Dictionary()
    for number in range(WORDS):
        made.add_symbol(f"w{number}")
    made.add_symbol("madeupword0000")
    made.add_symbol("<mask>")
    return made


def text_of(documents: list[list[list[int]]]) -> Documents:
    """A text of documents of lines, an empty line between two documents."""
    lines: list[list[int]] = []
    for number, document in enumerate(documents):
        lines += [[]] * (number > 0) + document
    rows = [torch.tensor([*line, CLOSING]) for line in lines]
    return Documents(rows, np.array([len(row) for row in rows]), "text")


def random_documents(count: int, seed: int = 0) -> list[list[list[int]]]:
    """Documents of one line to eight, each of 1 to 40 words; <unk> among them."""
    rng = np.random.default_rng(seed)
    sizes = [rng.integers(1, 41, rng.integers(1, 9)) for _ in range(count)]
    return [[rng.integers(3, 4 + WORDS, size).tolist() for size in document] for document in sizes]


@pytest.fixture(scope="module")
def big() -> list[list[list[int]]]:
    """More than 250,000 pieces."""
    return random_documents(3500)


def pairs_of(documents: list[list[list[int]]], dictionary: Dictionary, **changes: Any) -> SpanPairs:
    values = {"length": 64, "pairs": True, "seed": 1, **changes}
    return SpanPairs(text_of(documents), dictionary, **values)


def test_shares_of_what_is_chosen_and_of_what_becomes_of_it(big: Any, dictionary: Dictionary) -> None:
    rows = pairs_of(big, dictionary)
    source, target, plain = [], [], []
    for number in range(len(rows)):
        row = rows[number]
        source.append(row["source"])
        target.append(row["target"])
        plain.append(torch.where(row["target"].ne(1), row["target"], row["source"]))
    source, target, plain = (torch.cat(parts) for parts in (source, target, plain))
    pieces, chosen = plain.gt(3), target.ne(1)
    assert len(plain) >= 250_000
    mask = dictionary.index("<mask>")
    assert not (chosen & ~pieces).any()  # neither <s>, </s>, nor <unk>
    assert abs(100 * chosen.sum() / pieces.sum() - 15.0) <= 0.3
    masked, same = (chosen & source.eq(mask)).sum(), (chosen & source.eq(target)).sum()
    drawn = source[chosen & source.ne(mask) & source.ne(target)]
    for share, expected in ((masked, 80), (same, 10), (len(drawn), 10)):
        assert abs(100 * share / chosen.sum() - expected) <= 1
    assert drawn.min() >= 4
    assert drawn.max() < 4 + WORDS  # neither <mask> nor fairseq's fillers
    assert not source[~chosen].eq(mask).any()
    assert len(drawn.unique()) > WORDS / 2


def test_half_of_the_pairs_are_adjacent_and_the_others_are_of_another_document(
    big: Any, dictionary: Dictionary
) -> None:
    rows = pairs_of(big, dictionary)
    bounds = rows.text.bounds
    start, cut, second, end, label = rows.rows.T

    def document(position: Any) -> Any:
        return np.searchsorted(bounds[:, 1], position, side="right")

    assert len(label) > 4000
    assert abs(100 * (label == RANDOM).mean() - 50) <= 1
    assert (cut > start).all()
    assert (end > second).all()
    assert (document(start) == document(cut - 1)).all()
    assert (document(second) == document(end - 1)).all()
    follows = label == NEXT
    assert (second[follows] == cut[follows]).all()
    assert (document(second)[follows] == document(start)[follows]).all()
    assert (document(second)[~follows] != document(start)[~follows]).all()


def test_rows_read_what_their_positions_say_and_stay_within_their_length(dictionary: Dictionary) -> None:
    documents = random_documents(40, seed=3)
    flat = [piece for document in documents for line in document for piece in line]
    rows = pairs_of(documents, dictionary, length=20)
    for number in range(len(rows)):
        row = rows[number]
        start, cut, second, end, _ = rows.rows[number]
        plain = torch.where(row["target"].ne(1), row["target"], row["source"]).tolist()
        assert plain == [0, *flat[start:cut], 2, *flat[second:end], 2]
        assert len(plain) == rows.num_tokens(number) <= 20
    # Where a document has line ends inside a row, it is cut at one; no piece of a document is skipped.
    starts = {int(position) for position in rows.text.line_starts}
    for start, cut, _, end, label in rows.rows.tolist():
        inside = rows.text.line_ends(start, end if label == NEXT else cut)
        assert cut in starts or not len(inside)


def test_another_epoch_has_other_rows_and_masks_and_the_same_one_has_the_same(dictionary: Dictionary) -> None:
    documents = random_documents(30)
    rows, again = pairs_of(documents, dictionary), pairs_of(documents, dictionary)
    first = rows[0]["source"].tolist()
    assert again[0]["source"].tolist() == first
    before = rows.rows.tolist()
    rows.set_epoch(2)
    assert rows.rows.tolist() != before
    rows.set_epoch(1)
    assert (rows.rows.tolist(), rows[0]["source"].tolist()) == (before, first)


def test_without_pairs_every_piece_is_in_one_row(dictionary: Dictionary) -> None:
    documents = random_documents(20)
    rows = pairs_of(documents, dictionary, pairs=False, length=30)
    assert rows.rows[:, :2].flatten().tolist() == sorted(rows.rows[:, :2].flatten().tolist())
    assert sum(rows.rows[:, 1] - rows.rows[:, 0]) == rows.text.line_starts[-1]
    source = rows[0]["source"]
    assert (source[0], source[-1], source.eq(2).sum()) == (0, 2, 1)


def test_text_without_empty_lines_has_a_document_a_line(dictionary: Dictionary) -> None:
    lines = [torch.tensor([*range(4, 4 + size), 2]) for size in (5, 9, 1)]
    text = Documents(lines, np.array([len(line) for line in lines]), "text")
    assert text.lines_are_documents
    assert text.bounds.tolist() == [[0, 5], [5, 14], [14, 15]]
    assert text.read(3, 5).tolist() == [7, 8]


def test_empty_lines_in_a_row_and_at_the_ends_make_no_documents() -> None:
    lines = [torch.tensor(line) for line in ([2], [5, 6, 2], [2], [2], [7, 2], [8, 2], [2])]
    text = Documents(lines, np.array([len(line) for line in lines]), "text")
    assert text.bounds.tolist() == [[0, 2], [2, 4]]
    assert text.line_ends(2, 4).tolist() == [3]
    assert text.read(1, 4).tolist() == [6, 7, 8]


def test_what_gives_no_pairs_is_refused(dictionary: Dictionary) -> None:
    with pytest.raises(InputError, match="one document only"):
        pairs_of([[[5, 6], [7, 8]], []], dictionary)
    with pytest.raises(InputError, match="no document has"):
        pairs_of([[[5]], [[6]]], dictionary)
    with pytest.raises(InputError, match="--tokens-per-sample 4"):
        pairs_of(random_documents(2), dictionary, length=4)
    with pytest.raises(InputError, match="has no text"):
        text_of([[[]]])


class Fixed(torch.nn.Module):
    """A model whose logits are given."""

    def __init__(self, words: torch.Tensor, pairs: torch.Tensor) -> None:
        super().__init__()
        self.words, self.pairs = words.requires_grad_(), pairs.requires_grad_()

    def forward(self, src_tokens: Any, masked: Any, **_: Any) -> Any:
        return self.words[masked], {"pair": self.pairs}


def criterion_of(weight: float) -> BertPretrainingCriterion:
    return BertPretrainingCriterion(SimpleNamespace(cfg=SimpleNamespace(nsp_weight=weight), target_dictionary=None))


@pytest.fixture
def batch(dictionary: Dictionary) -> dict[str, Any]:
    rows = pairs_of(random_documents(12), dictionary)
    return rows.collater([rows[number] for number in range(4)])


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_the_loss_is_the_mean_of_masked_words_plus_the_weighted_mean_of_pairs(batch: Any, weight: float) -> None:
    torch.manual_seed(0)
    target = batch["target"]
    model = Fixed(torch.randn(*target.shape, 4 + WORDS + 2), torch.randn(4, 2))
    loss, size, logged = criterion_of(weight)(model, batch)
    (loss / size).backward()
    words = F.log_softmax(model.words.double(), -1).gather(2, target.unsqueeze(2)).squeeze(2)
    pairs = F.log_softmax(model.pairs.double(), -1)[range(4), batch["pair"]]
    expected = -words[target.ne(1)].mean() - weight * pairs.mean()
    torch.testing.assert_close((loss / size).double(), expected, rtol=1e-5, atol=0)
    assert model.words.grad[target.eq(1)].abs().max() == 0
    assert model.words.grad[target.ne(1)].abs().min() > 0
    assert (model.pairs.grad.abs().max() == 0) == (weight == 0)
    with aggregate() as logs:
        BertPretrainingCriterion.reduce_metrics([logged, logged])
    values = logs.get_smoothed_values()
    assert values["ppl"] == pytest.approx(math.exp(-words[target.ne(1)].mean().item()), rel=0.01)
    if weight:
        right = model.pairs.argmax(1).eq(batch["pair"]).float().mean()
        assert values["nsp_accuracy"] == pytest.approx(100 * right.item())


def test_a_row_of_words_that_are_known_by_heart_is_told_from_a_wrong_one(
    dictionary: Dictionary, make_bert: Callable[..., BertLM]
) -> None:
    """Documents of one repeated word each: a model of some hundred updates tells which spans belong together."""
    torch.manual_seed(1)
    documents = [[[4 + number] * 12] for number in range(16)] * 4
    small = Dictionary()
    for symbol in make_bert().symbols[4:]:
        small.add_symbol(symbol)
    rows = SpanPairs(text_of(documents), small, length=12, pairs=True, seed=1)
    lm = make_bert(dropout=0.0, attention_dropout=0.0).train()
    optimizer, criterion = torch.optim.Adam(lm.parameters(), lr=3e-3), criterion_of(1.0)
    right = tried = 0.0
    for update in range(150):
        rows.set_epoch(update + 1)
        batch = rows.collater([rows[number] for number in np.random.default_rng(update).permutation(len(rows))[:48]])
        loss, size, logged = criterion(lm, batch)
        optimizer.zero_grad()
        (loss / size).backward()
        optimizer.step()
        if update >= 120:
            right, tried = right + logged["nsp_correct"].item(), tried + logged["pairs"]
    assert binomtest(int(right), int(tried), 0.5, alternative="greater").pvalue < 1e-6
