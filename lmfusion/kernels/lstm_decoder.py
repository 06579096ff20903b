"""fairseq's LSTM decoder, trained faster in bfloat16 on a CPU: its parameters, fewer and larger matrix products.

fairseq makes every product at every position, and autograd adds a gradient of the weights' size each time. Here
embeddings enter the gates in one product for all positions, the attention's projections are those of the encoder's
states, for h W s = h (W s), and the gradients of weights wait for the last position. Only products are rounded to
bfloat16, not the cells, which an LSTM adds up. In float32 it would gain a tenth and change the last digits: there
fairseq's own is used. Figures: benchmarks/RESULTS.md.
"""

from __future__ import annotations

from typing import Any

import torch
from fairseq.models.lstm import AttentionLayer, LSTMDecoder
from torch import Tensor
from torch.autograd.function import once_differentiable

from lmfusion import plain_operations
from lmfusion.kernels.dropout import dropout
from lmfusion.kernels.matrix_product import linear, product


def lstm_features(
    decoder: LSTMDecoder, tokens: Tensor, encoder_out: Any, state: dict[str, Any] | None
) -> tuple[Tensor, Tensor | None]:
    """Compute what ``LSTMDecoder.extract_features`` does, faster in training with autocast on a CPU.

    Args:
        decoder: one layer with fairseq's attention trains faster; all others are left to fairseq.
        tokens: B x T, the output before each position.
        encoder_out: what the encoder returned.
        state: fairseq's decoding state, None in training.

    Returns:
        B x T x C, and attention, B x T x S, or None.
    """
    is_known = decoder.num_layers == 1 and not decoder.residuals and type(decoder.attention) is AttentionLayer
    if not (is_known and state is None and decoder.training and torch.is_autocast_enabled("cpu")):
        return plain_operations.lstm_features(decoder, tokens, encoder_out, state)
    x = decoder.dropout_in_module(decoder.embed_tokens(tokens)).transpose(0, 1)
    x = _all_positions(decoder, x, encoder_out).transpose(0, 1)
    if hasattr(decoder, "additional_fc"):
        x = decoder.dropout_out_module(decoder.additional_fc(x))
    return x, None


def _all_positions(decoder: LSTMDecoder, x: Tensor, encoder_out: Any) -> Tensor:
    """Return the output of the layer and its attention, T x B x H, of embeddings, T x B x C."""
    states, hidden, cell, padding = encoder_out[:4]
    hidden, cell = hidden[0], cell[0]
    if decoder.encoder_hidden_proj is not None:
        hidden, cell = decoder.encoder_hidden_proj(hidden), decoder.encoder_cell_proj(cell)
    layer, attention, width = decoder.layers[0], decoder.attention, decoder.hidden_size
    of_x, of_feed = layer.weight_ih.split([x.size(-1), width], dim=1)
    gates = linear(x, of_x, layer.bias_ih + layer.bias_hh)
    of_context, of_hidden = attention.output_proj.weight.split([states.size(-1), width], dim=1)
    states = states.transpose(0, 1)
    keys, values = linear(states, attention.input_proj.weight.t()), linear(states, of_context)
    rate, kept = decoder.dropout_out_module.p, None
    if rate > 0.0:
        kept = dropout(layer.bias_hh.new_ones(*gates.shape[:2], width), rate)
    weights = torch.cat((of_feed, layer.weight_hh), dim=1), of_hidden
    outputs: Tensor = _Positions.apply(gates, *weights, keys, values, padding.t(), hidden, cell, kept)
    return outputs


class _Positions(torch.autograd.Function):
    """One LSTM layer with attention and input feeding over all positions, and its gradients."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, *args: Any) -> Tensor:
        """Compute the outputs, T x B x H; arguments as of :class:`_Pass`."""
        ctx.steps = _Pass(gates, *args)
        with torch.autocast("cpu", enabled=False):
            return ctx.steps.forward(gates)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of ``forward``'s arguments."""
        gates, weight, of_hidden, keys, values, hidden, cell = ctx.steps.backward(grads[0])
        return gates, weight, of_hidden, keys, values, None, hidden, cell, None


class _Pass:
    """What one pass over a batch keeps of every position for its gradients.

    Products are of the type of ``keys``, which autocast makes bfloat16; everything else is of the weights' own.

    Args:
        gates: T x B x 4H, what embeddings and biases give to the gates.
        weight: 4H x 2H, gates of the output before and of the hidden state.
        of_hidden: H x H, outputs of the hidden state.
        keys, values: B x S x H, what hidden states are compared with, and what attention adds to the output.
        padding: B x S, true where there is no token.
        hidden, cell: B x H, before the first position.
        kept: T x B x H, what outputs are multiplied by: dropout; None for none.
    """

    def __init__(
        self,
        gates: Tensor,
        weight: Tensor,
        of_hidden: Tensor,
        keys: Tensor,
        values: Tensor,
        padding: Tensor,
        hidden: Tensor,
        cell: Tensor,
        kept: Tensor | None,
    ) -> None:
        length, rows, _ = gates.shape
        self.width, self.low, self.full = hidden.size(1), keys.dtype, weight.dtype
        self.weight, self.of_hidden = weight.to(self.low), of_hidden.to(self.low)
        self.keys, self.values, self.padding, self.kept = keys, values, padding, kept

        def new(positions: int, size: int) -> Tensor:
            return weight.new_empty(positions, rows, size)

        self.entered, self.active = new(length, 2 * self.width), new(length, 4 * self.width)
        self.squashed, self.outputs = new(length, self.width), new(length, self.width)
        self.attended = new(length, keys.size(1))
        self.cells, self.hiddens = new(length + 1, self.width), new(length + 1, self.width)
        self.cells[0], self.hiddens[0] = cell, hidden

    def forward(self, gates: Tensor) -> Tensor:
        """Return the outputs, T x B x H."""
        by_entered, by_hidden = self.weight.t().contiguous(), self.of_hidden.t().contiguous()
        feed = torch.zeros_like(self.outputs[0])
        for t in range(len(self.outputs)):
            torch.cat((feed, self.hiddens[t]), dim=1, out=self.entered[t])
            torch.add(torch.mm(self.entered[t].to(self.low), by_entered), gates[t], out=self.active[t])
            state = self._enter_cell(t).to(self.low)
            scores = (
                torch.bmm(self.keys, state.unsqueeze(2)).squeeze(2).to(self.full).masked_fill_(self.padding, -torch.inf)
            )
            torch.softmax(scores, dim=1, out=self.attended[t])
            context = torch.bmm(self.attended[t].to(self.low).unsqueeze(1), self.values).squeeze(1)
            torch.tanh(torch.add(torch.mm(state, by_hidden), context).to(self.full), out=self.outputs[t])
            feed = self.outputs[t] if self.kept is None else self.outputs[t] * self.kept[t]
        return self.outputs.clone() if self.kept is None else self.outputs * self.kept

    def _enter_cell(self, t: int) -> Tensor:
        """Return the hidden state of a position, B x H, whose gates are there but for their activation."""
        width = self.width
        self.active[t, :, : 2 * width].sigmoid_()
        self.active[t, :, 2 * width : 3 * width].tanh_()
        self.active[t, :, 3 * width :].sigmoid_()
        enter, keep, new, leave = self.active[t].chunk(4, dim=1)
        torch.mul(keep, self.cells[t], out=self.cells[t + 1]).addcmul_(enter, new)
        torch.tanh(self.cells[t + 1], out=self.squashed[t])
        return torch.mul(leave, self.squashed[t], out=self.hiddens[t + 1])

    def backward(self, grad: Tensor) -> tuple[Tensor, ...]:
        """Return the gradients of gates, weight, of_hidden, keys, values, hidden and cell."""
        low = self.low
        of_gates, of_outputs = torch.empty_like(self.active), torch.empty_like(self.outputs)
        of_scores = torch.empty_like(self.attended)
        entered, cell = torch.zeros_like(self.entered[0]), torch.zeros_like(self.cells[0])
        for t in reversed(range(len(grad))):
            feed, hidden = entered.chunk(2, dim=1)
            output = grad[t] + feed
            if self.kept is not None:
                output *= self.kept[t]
            output = of_outputs[t].copy_(_tanh_backward(output, self.outputs[t])).to(low)
            weights = torch.bmm(self.values, output.unsqueeze(2)).squeeze(2).to(self.full)
            of_scores[t] = torch.ops.aten._softmax_backward_data(weights, self.attended[t], 1, self.full)
            context = torch.bmm(of_scores[t].to(low).unsqueeze(1), self.keys).squeeze(1)
            hidden = hidden + torch.mm(output, self.of_hidden) + context
            cell = self._leave_cell(t, hidden, cell, of_gates[t])
            entered = torch.mm(of_gates[t].to(low), self.weight).to(self.full)
        return of_gates, *self._of_weights(of_gates, of_outputs, of_scores), entered[:, self.width :], cell

    def _leave_cell(self, t: int, hidden: Tensor, cell: Tensor, gates: Tensor) -> Tensor:
        """Fill in the gradient of a position's gates, B x 4H; return that of the cell before it, B x H."""
        enter, keep, new, leave = self.active[t].chunk(4, dim=1)
        cell = cell + _tanh_backward(hidden * leave, self.squashed[t])
        of_enter, of_keep, of_new, of_leave = gates.chunk(4, dim=1)
        torch.ops.aten.sigmoid_backward.grad_input(cell * new, enter, grad_input=of_enter)
        torch.ops.aten.sigmoid_backward.grad_input(cell * self.cells[t], keep, grad_input=of_keep)
        torch.ops.aten.tanh_backward.grad_input(cell * enter, new, grad_input=of_new)
        torch.ops.aten.sigmoid_backward.grad_input(hidden * self.squashed[t], leave, grad_input=of_leave)
        return cell * keep

    def _of_weights(self, of_gates: Tensor, of_outputs: Tensor, of_scores: Tensor) -> tuple[Tensor, ...]:
        """Return the gradients of weight, of_hidden, keys and values, each of all positions at once."""
        low, full, states = self.low, self.full, self.hiddens[1:]
        weight = product(of_gates.to(low).flatten(0, 1).t(), self.entered.to(low).flatten(0, 1)).to(full)
        of_hidden = product(of_outputs.to(low).flatten(0, 1).t(), states.to(low).flatten(0, 1)).to(full)
        keys = torch.bmm(of_scores.to(low).permute(1, 2, 0), states.to(low).transpose(0, 1))
        values = torch.bmm(self.attended.to(low).permute(1, 2, 0), of_outputs.to(low).transpose(0, 1))
        return weight, of_hidden, keys, values


_tanh_backward: Any = torch.ops.aten.tanh_backward
