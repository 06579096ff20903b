"""Recurrent language models against torch.nn's own stacks, word by word, and in what they refuse."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, Callable

import pytest
import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

from lmfusion.errors import InputError
from lmfusion.lm.loading import load_lm
from lmfusion.lm.recomputation import recompute_layers
from lmfusion.lm.recurrent import BiRecurrentLanguageModel, ElmoLM, RecurrentLM, UniRecurrentLanguageModel
from lmfusion.lm.recurrent_layers import Direction, RecurrentLMConfig
from lmfusion.lm.transformer.config import OF_TRAINING

C, N = 16, 2
KINDS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
ROWS = [[2, 5, 9, 4, 11, 2], [2, 6, 7, 2], [2, 2]]
every_cell = pytest.mark.parametrize("cell", KINDS)
Make = Callable[..., Any]


@pytest.fixture
def make(dictionary: Dictionary, shake: Any) -> Make:
    """A tiny model in eval mode: ``make(ElmoLM, cell="gru")``."""

    def build(kind: Any, **flags: Any) -> Any:
        sizes = {"decoder_embed_dim": C, "decoder_layers": N, "tokens_per_sample": 60, "max_target_positions": 60}
        fields = RecurrentLMConfig.__dataclass_fields__.items()
        defaults = {name: spec.default for name, spec in fields if name[0] != "_" and name not in OF_TRAINING}
        return shake(kind({**defaults, **sizes, **flags}, dictionary)).eval()

    return build


def torch_stack(direction: Any, cell: str) -> nn.RNNBase:
    """torch.nn's stack of N layers with the weights of ours."""
    stack = KINDS[cell](C, C, num_layers=len(direction), batch_first=True)
    weights = {}
    for number, layer in enumerate(direction):
        weights.update({name.replace("_l0", f"_l{number}"): value for name, value in layer.state_dict().items()})
    stack.load_state_dict(weights)
    return stack


def inputs(lm: Any, row: list[int]) -> Tensor:
    """sqrt(C) times the embeddings, 1 x T x C."""
    return math.sqrt(C) * lm.token_embedding.weight[torch.tensor([row])]


@every_cell
@torch.no_grad()
def test_states_are_those_of_torch_nn(make: Make, batch: Any, cell: str) -> None:
    lm = make(RecurrentLM, cell=cell)
    stack, first = torch_stack(lm.layers, cell), torch_stack(lowest(lm.layers, 1), cell)
    states = lm.layer_states(batch(ROWS))
    for number, row in enumerate(ROWS):
        x = inputs(lm, row)
        for state, expected in zip(states, (x, first(x)[0], stack(x)[0]), strict=True):
            torch.testing.assert_close(state[number, : len(row)], expected[0], rtol=0, atol=1e-6)


def lowest(direction: Direction, layers: int) -> Any:
    return list(direction)[:layers]


@torch.no_grad()
def test_an_lstm_is_the_equations_of_the_text_book(make: Make) -> None:
    """f, i, o = sigmoid(W [h, x] + b), C = f C + i tanh(W [h, x] + b), h = o tanh(C)."""
    lm = make(RecurrentLM, cell="lstm", decoder_layers=1)
    weights = lm.layers[0].state_dict()
    h, c = torch.zeros(C), torch.zeros(C)
    for x, state in zip(inputs(lm, ROWS[0])[0], lm.top_state(torch.tensor([ROWS[0]]))[0], strict=True):
        gates = (
            weights["weight_ih_l0"] @ x + weights["bias_ih_l0"] + weights["weight_hh_l0"] @ h + weights["bias_hh_l0"]
        )
        i, f, new, o = gates.chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * new.tanh()
        h = o.sigmoid() * c.tanh()
        torch.testing.assert_close(state, h, rtol=0, atol=1e-6)


@every_cell
@torch.no_grad()
def test_elmo_is_two_stacks_on_the_text_and_on_the_reversed_text(make: Make, batch: Any, cell: str) -> None:
    lm = make(ElmoLM, cell=cell)
    ahead, back = torch_stack(lm.forward_layers, cell), torch_stack(lm.backward_layers, cell)
    found = lm.states(batch(ROWS, left=True), want={"layers", "top"})
    for number, row in enumerate(ROWS):
        x = inputs(lm, row)
        expected = torch.cat([ahead(x)[0], back(x.flip(1))[0].flip(1)], dim=-1)[0]
        torch.testing.assert_close(found.top[number, -len(row) :], expected, rtol=0, atol=1e-6)
        torch.testing.assert_close(found.layers[0][number, -len(row) :], torch.cat([x, x], -1)[0], rtol=0, atol=1e-6)
    assert [state.shape for state in found.layers] == [(3, 6, 2 * C)] * (N + 1)


@pytest.mark.parametrize(("layers", "crossing", "same"), [(1, 0.0, True), (2, 0.0, True), (2, 0.5, False)])
@torch.no_grad()
def test_elmo_is_torchs_bidirectional_stack_where_that_does_not_cross(
    make: Make, layers: int, crossing: float, same: bool
) -> None:
    """From its second layer on, torch's reads both directions; with zeros for the other one it is ELMo's."""
    lm = make(ElmoLM, cell="lstm", decoder_layers=layers)
    theirs = nn.LSTM(C, C, num_layers=layers, bidirectional=True, batch_first=True)
    for number in range(layers):
        for direction, end, start in ((lm.forward_layers, "", 0), (lm.backward_layers, "_reverse", C)):
            for name, value in direction[number].state_dict().items():
                weight = theirs.get_parameter(f"{name.replace('_l0', f'_l{number}')}{end}")
                if weight.shape == value.shape:
                    weight.copy_(value)
                else:
                    weight.fill_(crossing)[:, start : start + C].copy_(value)
    difference = (lm.top_state(torch.tensor([ROWS[0]])) - theirs(inputs(lm, ROWS[0]))[0]).abs().max().item()
    assert (difference < 1e-6) == same


@torch.no_grad()
def test_each_direction_of_elmo_sees_its_own_side_alone(make: Make) -> None:
    lm = make(ElmoLM)
    before, after = (lm.layer_states(torch.tensor([[2, 5, middle, 7, 2]])) for middle in (9, 13))
    for one, other in zip(before[1:], after[1:]):
        (ahead, back), (ahead_other, back_other) = one[0].chunk(2, -1), other[0].chunk(2, -1)
        assert torch.equal(ahead[:2], ahead_other[:2])
        assert torch.equal(back[3:], back_other[3:])
        assert (ahead[2:] - ahead_other[2:]).abs().amax(-1).min() > 1e-6
        assert (back[:3] - back_other[:3]).abs().amax(-1).min() > 1e-6


@every_cell
@torch.no_grad()
def test_step_by_step_is_the_whole_pass_also_after_a_prefix_and_a_reordering(make: Make, cell: str) -> None:
    lm = make(RecurrentLM, cell=cell)
    rows = torch.tensor([[2, 5, 9, 4, 7], [2, 6, 7, 8, 5], [2, 9, 9, 5, 6]])
    state: dict[str, Any] = {}
    first = lm.layer_states(rows[:, :2], state)  # two at once, as with --prefix-size
    order = torch.tensor([2, 0, 0])
    lm.reorder_incremental_state(state, order)
    rows = torch.cat([rows[order][:, :2], rows[:, 2:]], dim=1)
    rest = [lm.layer_states(rows[:, :length], state) for length in (3, 4, 5)]
    whole = lm.layer_states(rows)
    for number in range(N + 1):
        assert all(step[number].size(1) == 1 for step in rest)
        steps = torch.cat([first[number][order], *(step[number] for step in rest)], dim=1)
        torch.testing.assert_close(steps, whole[number], rtol=0, atol=1e-6)


@pytest.mark.parametrize(("cell", "gates"), [("rnn", 1), ("gru", 3), ("lstm", 4)])
def test_a_layer_has_as_many_parameters_as_the_equations(make: Make, cell: str, gates: int) -> None:
    lm = make(ElmoLM, cell=cell, share_decoder_input_output_embed=True)
    expected = 24 * C + 2 * N * gates * C * (C + C + 2)
    assert sum(parameter.numel() for parameter in lm.parameters()) == expected


def test_an_identity_start_carries_gradients_over_fifty_steps_unchanged(dictionary: Dictionary) -> None:
    flags = {"cell": "rnn", "identity_start": True, "decoder_embed_dim": C, "decoder_layers": 1, "dropout": 0.0}
    direction = Direction(flags)
    with torch.no_grad():
        direction[0].weight_ih_l0.abs_()
    x, start = torch.rand(1, 50, C), torch.rand(1, 1, C)
    change = torch.autograd.functional.jacobian(lambda h: direction(x, [h])[1][0], start).reshape(C, C)
    assert torch.equal(change, torch.eye(C))


@pytest.mark.parametrize("kind", [RecurrentLM, ElmoLM])
@every_cell
def test_a_checkpoint_reads_back(make: Make, save_lm: Any, kind: Any, cell: str) -> None:
    lm = make(kind, cell=cell)
    again = load_lm(save_lm(lm))
    assert (again.family, again.config) == (lm.family, lm.config)
    tokens = torch.tensor([ROWS[0]])
    assert torch.equal(again.top_state(tokens), lm.top_state(tokens))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"cell": "lstm", "identity_start": True}, "--identity-start belongs to --cell rnn"),
        ({"cell": "gru", "identity_start": True}, "--identity-start belongs to --cell rnn"),
        ({"cell": "elman"}, "--cell elman: give one of rnn, gru, lstm"),
        ({"decoder_layers": 0}, "--decoder-layers 0"),
    ],
)
def test_flags_that_contradict_the_cell_are_refused(make: Make, flags: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(RecurrentLM, **flags)


@pytest.mark.parametrize(
    ("kind", "target"),
    [(UniRecurrentLanguageModel, "self"), (BiRecurrentLanguageModel, "future"), (BiRecurrentLanguageModel, "self")],
)
def test_targets_that_a_model_does_not_predict_are_refused(dictionary: Dictionary, kind: Any, target: str) -> None:
    task = SimpleNamespace(targets=[target], target_dictionary=dictionary)
    with pytest.raises(InputError, match="_recurrent_lm cannot be trained with"):
        kind.build_model(RecurrentLMConfig(), task)


@every_cell
def test_cells_that_are_computed_again_have_the_same_gradients(make: Make, batch: Any, cell: str) -> None:
    """--checkpoint-activations wraps torch.nn's layers, which return their memory beside their states."""
    lm, tokens = make(ElmoLM, cell=cell, dropout=0.2).train(), batch(ROWS)
    found = []
    for again in (False, True):
        if again:
            recompute_layers(lm)
        lm.zero_grad()
        torch.manual_seed(3)
        lm.states(tokens, want={"top"}).top.sin().sum().backward()
        found.append({name: p.grad.clone() for name, p in lm.named_parameters() if p.grad is not None})
    assert len(found[0]) > 8
    assert all(torch.equal(found[1][name], gradient) for name, gradient in found[0].items())
