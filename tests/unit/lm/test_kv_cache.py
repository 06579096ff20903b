"""The cache of keys and values, against plain concatenation of all that was ever added."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from lmfusion.lm.transformer.attention import CausalSelfAttention
from lmfusion.lm.transformer.kv_cache import KeyValueCache

HEADS, CHANNELS = 3, 4


def positions(rows: int, count: int) -> Tensor:
    """Random keys and values of new positions: B x T x 2 x H x D."""
    return torch.randn(rows, count, 2, HEADS, CHANNELS, dtype=torch.float64)


def holds(cache: KeyValueCache, expected: Tensor) -> bool:
    """Whether keys and values are, number for number, those of B x T x 2 x H x D."""
    key, value = expected.permute(2, 0, 3, 1, 4)
    return cache.length == key.size(2) and torch.equal(cache.key, key) and torch.equal(cache.value, value)


@pytest.mark.parametrize("seed", range(20))
def test_any_sequence_of_steps_gives_what_concatenation_gives(seed: int) -> None:
    """Also for every cache on the way, from which any step may branch off again: kept ones never change."""
    torch.manual_seed(seed)
    first = positions(int(torch.randint(1, 6, ())), int(torch.randint(1, 4, ())))
    made = [(KeyValueCache.empty(first).add(first), first)]
    for _ in range(60):
        # Mostly on from the newest, as decoding does.
        cache, expected = made[-1] if torch.rand(()) < 0.7 else made[int(torch.randint(len(made), ()))]
        rows = expected.size(0)
        if torch.rand(()) < 0.6:
            new = positions(rows, int(torch.randint(1, 10, ())))
            made.append((cache.add(new), torch.cat([expected, new], 1)))
        else:
            order = torch.randint(rows, (int(torch.randint(1, 7, ())),))
            made.append((cache.reorder(order), expected.index_select(0, order)))
    assert max(cache.length for cache, _ in made) > 3 + 16, "longer than the first buffer"
    assert all(holds(*pair) for pair in made)


def test_a_position_is_written_where_it_belongs_and_nothing_else_is_copied() -> None:
    cache = KeyValueCache.empty(positions(2, 1)).add(positions(2, 1))
    places = []
    for _ in range(255):
        cache = cache.add(positions(2, 1))
        places.append(cache.key.data_ptr())
    assert len(set(places)) < 10, "each buffer has room for a quarter more than the one before"


def test_an_order_that_changes_nothing_copies_nothing() -> None:
    cache = KeyValueCache.empty(positions(3, 2)).add(positions(3, 2))
    assert cache.reorder(torch.arange(3)) is cache
    assert cache.reorder(torch.arange(2)).key.size(0) == 2, "the first rows are fewer rows"


def test_what_is_reordered_is_copied_once_with_room_for_more() -> None:
    start = positions(3, 2)
    cache = KeyValueCache.empty(start).add(start)
    twice = cache.reorder(torch.tensor([2, 0, 1])).reorder(torch.tensor([1, 1]))
    assert holds(twice, start[[0, 0]])
    new = positions(2, 1)
    longer = twice.add(new)
    assert holds(longer, torch.cat([start[[0, 0]], new], 1))
    assert longer.add(new).key.data_ptr() == longer.key.data_ptr()
    assert holds(cache, start)


def test_two_hypotheses_that_go_on_from_one_do_not_write_into_each_other() -> None:
    start = positions(1, 3)
    cache = KeyValueCache.empty(start).add(start).reorder(torch.tensor([0, 0]))
    new = positions(2, 1)
    assert holds(cache.add(new), torch.cat([start.expand(2, -1, -1, -1, -1), new], 1))


def test_a_copied_state_goes_its_own_way() -> None:
    start, one, other = positions(2, 3), positions(2, 1), positions(2, 1)
    cache = KeyValueCache.empty(start).add(start)
    copied = copy.deepcopy({"cache": cache})["cache"]
    assert holds(cache.add(one), torch.cat([start, one], 1))
    assert holds(copied.add(other), torch.cat([start, other], 1))


def test_gradients_of_all_steps_are_those_of_concatenation() -> None:
    pieces = [positions(2, count).requires_grad_() for count in (1, 2, 1)]
    order = torch.tensor([1, 1])
    cache = KeyValueCache.empty(pieces[0])
    whole = pieces[0][:, :0]
    ours, expected = torch.zeros(()), torch.zeros(())
    for piece in pieces:
        cache, whole = cache.add(piece).reorder(order), torch.cat([whole, piece], 1).index_select(0, order)
        ours = ours + (cache.key.sin() * cache.value).sum()  # what a later step needs again
        expected = expected + (whole[:, :, 0].sin() * whole[:, :, 1]).sum()
    for found, wanted in zip(torch.autograd.grad(ours, pieces), torch.autograd.grad(expected, pieces)):
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("bias_kv", ["none", "learned", "zero"])
@pytest.mark.parametrize("widths", [[1] * 40, [3, 1, 20, 2, 14]], ids=["one by one", "several at once"])
@torch.no_grad()
def test_attention_step_by_step_equals_the_full_pass(bias_kv: str, widths: list[int]) -> None:
    """With the extra pair, which stands in front of the sentence in the cache and is no position of it."""
    torch.manual_seed(1)
    attention = CausalSelfAttention(HEADS * CHANNELS, HEADS, dropout=0.0, bias_kv=bias_kv).double()
    x = torch.randn(2, 40, HEADS * CHANNELS, dtype=torch.float64)
    order = torch.tensor([1, 0])
    state: dict[str, dict[str, Tensor | None]] = {}
    steps = []
    for start, width in zip([sum(widths[:number]) for number in range(len(widths))], widths):
        assert attention.cached_length(state) == start
        steps.append(attention(x[:, start : start + width], state))
        if start % 2:
            attention.reorder_incremental_state(state, order)
            x = x.index_select(0, order)
            steps = [step.index_select(0, order) for step in steps]
    torch.testing.assert_close(torch.cat(steps, 1), attention(x))
