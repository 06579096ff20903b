"""A training step as fairseq makes it: forward, its criterion, backward, Adam's update; on made-up sentences."""

from __future__ import annotations

import argparse
from typing import Any

import torch
from counting import operations
from fairseq.criterions import CRITERION_REGISTRY
from models import Sizes, task_of
from options import BF16, autocast, device
from torch import Tensor, nn

PAD, EOS = 1, 2
SHORTEST, LONGEST = 20, 36  # tokens of a sentence
SMOOTHING = 0.1
Sample = dict[str, Any]


def pairs(count: int, sizes: Sizes, seed: int, longest: int = LONGEST, shortest: int | None = None) -> Sample:
    """A batch of the translation task: sentences of 20 to 36 tokens, or all of one length, sources padded on the left.

    Args:
        count: B.
        sizes: for the vocabulary.
        seed: of the words.
        longest, shortest: tokens of a sentence, </s> included; the latter is 5/9 of the former by default.
    """
    generator = torch.Generator().manual_seed(seed)
    source = _padded(count, sizes.vocabulary, generator, longest, shortest)
    target = _left_aligned(_padded(count, sizes.vocabulary, generator, longest, shortest))
    previous = torch.cat([torch.full((count, 1), EOS), target[:, :-1]], 1).masked_fill(target.eq(PAD), PAD)
    lengths = source.ne(PAD).sum(1)
    return _sample(target, src_tokens=source, src_lengths=lengths, prev_output_tokens=previous)


def sentences(count: int, sizes: Sizes, seed: int, *, cloze: bool) -> Sample:
    """A batch of the language modeling task: ``</s> w1 … wn </s>`` for a cloze LM, cut at its end or shifted else."""
    generator = torch.Generator().manual_seed(seed)
    words = _left_aligned(_padded(count, sizes.vocabulary, generator, LONGEST, None))
    tokens = torch.cat([torch.full((count, 1), EOS), words], 1)
    target = tokens if cloze else words
    tokens = tokens if cloze else tokens[:, :-1].masked_fill(words.eq(PAD), PAD)
    return _sample(target, src_tokens=tokens, src_lengths=tokens.ne(PAD).sum(1))


def _padded(count: int, vocabulary: int, generator: torch.Generator, longest: int, shortest: int | None) -> Tensor:
    """B x T with </s> at the end and padding on the left."""
    least = longest * SHORTEST // LONGEST if shortest is None else shortest
    lengths = torch.randint(least, longest + 1, (count,), generator=generator)
    width = int(lengths.max())
    words = torch.randint(4, vocabulary, (count, width), generator=generator)
    words[:, -1] = EOS
    return words.masked_fill(torch.arange(width) < (width - lengths).unsqueeze(1), PAD)


def _left_aligned(rows: Tensor) -> Tensor:
    return torch.stack([torch.cat([row[row != PAD], row[row == PAD]]) for row in rows])


def _sample(target: Tensor, **net_input: Tensor) -> Sample:
    return {"net_input": net_input, "target": target, "ntokens": int(target.ne(PAD).sum())}


def to_device(value: Any, where: str) -> Any:
    """A sample's tensors on a device."""
    if isinstance(value, dict):
        return {name: to_device(item, where) for name, item in value.items()}
    return value.to(where) if isinstance(value, Tensor) else value


class Training:
    """A model in training, with one of fairseq's criterions by name.

    Args:
        model: any of fairseq's.
        samples: an epoch's batches.
        args: ``precision`` counts: bf16 weights, or fp32 weights with or without autocast to bf16.
        criterion: its name; label smoothing is for the one that has it.
    """

    def __init__(self, model: nn.Module, samples: list[Sample], args: argparse.Namespace, criterion: str) -> None:
        self.model = model.to(device(), torch.bfloat16 if args.precision == BF16 else torch.float32).train()
        self.samples = [to_device(sample, device()) for sample in samples]
        self.args = args
        settings: dict[str, Any] = {"label_smoothing": SMOOTHING} if "label_smoothed" in criterion else {}
        vocabulary = args.sizes
        self.criterion = CRITERION_REGISTRY[criterion](task_of(vocabulary), sentence_avg=False, **settings)
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.Adam(trained, lr=1e-5, betas=(0.9, 0.98))

    @property
    def tokens(self) -> int:
        """Targets of an epoch, without padding."""
        return sum(sample["ntokens"] for sample in self.samples)

    def loss(self, sample: Sample) -> Tensor:
        """Of a batch, summed over its targets."""
        with autocast(self.args):
            loss: Tensor = self.criterion(self.model, sample)[0]
        return loss

    def step(self, sample: Sample) -> None:
        """One update."""
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(sample).backward()
        self.optimizer.step()

    def epoch(self) -> None:
        """A step on every batch."""
        for sample in self.samples:
            self.step(sample)

    def operations(self) -> int:
        """Floating-point operations of an epoch's forward and backward passes."""
        with torch.no_grad():
            for sample in self.samples:
                self.loss(sample)  # what can be stored is stored now
        found = sum(operations(lambda sample=sample: self.loss(sample).backward()) for sample in self.samples)
        self.optimizer.zero_grad(set_to_none=True)
        return found
