"""Count what a model costs a token: operations of training and decoding, and memory that waits for the backward pass.

All is counted on sentences of one length in the real model and criterion, so any architecture can be counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lmfusion.lm.interface import PretrainedLM
from lmfusion.planning.counting import Saved, operations, saved
from lmfusion.planning.model import Request


@dataclass(frozen=True)
class Cost:
    """Hold what one token costs; multiply-adds are those of matrix products.

    Attributes:
        train: multiply-adds of the forward and backward pass; a pair of sentences counts its target's tokens.
        read: multiply-adds of reading the source, by target token; 0 for a language model.
        write: multiply-adds of a decoding step of one hypothesis; None: the model cannot write.
        saved: bytes in float32 that wait for the backward pass.
    """

    train: float
    read: float
    write: float | None
    saved: Saved


def count(request: Request, length: int) -> Cost:
    """Count the costs on sentences of ``length`` tokens, with memory for one weight's gradient at a time."""
    model, task = request.build(meta=False), request.task
    criterion = task.build_criterion(request.cfg.criterion)
    vocabulary = len(task.target_dictionary)
    for weight in model.parameters():
        if weight.requires_grad:
            weight.register_post_accumulate_grad_hook(_forget)
    model.train()

    def loss(sentences: int) -> Tensor:
        found: Tensor = criterion(model, _sample(request, task, sentences, length))[0]
        return found

    weights = [*model.parameters(), *model.buffers()]
    # Of the third sentence alone: what is kept once (packed weights, masks) is in both. Of one sentence less is kept
    # than its share: what a batch copies to have it in order is in order there.
    more = saved(lambda: loss(3), weights, vocabulary) - saved(lambda: loss(2), weights, vocabulary)
    train = operations(lambda: loss(1).backward()) / 2 / length
    read, write = _decoding(request, model.eval(), _sample(request, task, 1, length)["net_input"], length)
    return Cost(train, read, write, more)


def _forget(weight: Tensor) -> None:
    weight.grad = None


def _sample(request: Request, task: Any, sentences: int, length: int) -> dict[str, Any]:
    """Make a batch of sentences of the same made-up words."""
    dictionary = task.target_dictionary
    words = torch.full((sentences, length), dictionary.unk())
    words[:, -1] = dictionary.eos()
    lengths = torch.full((sentences,), length)
    shifted = words.roll(1, dims=1)
    if request.sequence_to_sequence:
        inputs = {"src_tokens": words, "src_lengths": lengths, "prev_output_tokens": shifted}
        return {"net_input": inputs, "target": words, "ntokens": words.numel(), "id": torch.arange(sentences)}
    cloze = list(getattr(task, "targets", ["future"]))
    inputs = {"src_tokens": shifted if cloze == ["future"] else words, "src_lengths": lengths}
    target: Any = words if len(cloze) == 1 else [words] * len(cloze)
    return {"net_input": inputs, "target": target, "ntokens": words.numel(), "id": torch.arange(sentences)}


@torch.no_grad()
def _decoding(request: Request, model: nn.Module, inputs: dict[str, Tensor], length: int) -> tuple[float, float | None]:
    """Return multiply-adds of reading, and of a step of writing, by token."""
    decoder: Any = model.decoder
    if not request.sequence_to_sequence:
        if isinstance(decoder, PretrainedLM) and not decoder.incremental:
            return operations(lambda: model(**inputs)) / 2 / length, None
        return 0.0, operations(lambda: _write(decoder, inputs["src_tokens"], {})) / 2 / length
    encoder: Any = model.encoder
    read: dict[str, Any] = {}

    def run() -> None:
        read["encoder_out"] = encoder(inputs["src_tokens"], src_lengths=inputs["src_lengths"])

    reading = operations(run)
    writing = operations(lambda: _write(decoder, inputs["prev_output_tokens"], read))
    return reading / 2 / length, writing / 2 / length


def _write(decoder: Any, tokens: Tensor, more: dict[str, Any]) -> None:
    """Run the decoder step by step, as fairseq's generator does."""
    state: dict[str, Any] = {}
    for end in range(1, tokens.shape[1] + 1):
        decoder(tokens[:, :end], incremental_state=state, **more)
