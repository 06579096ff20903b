"""Parameters of a model by the part they belong to."""

from __future__ import annotations

from dataclasses import dataclass

from fairseq.models import FairseqLanguageModel
from torch import nn

OUTPUT = ("output_projection", "embed_out", "adaptive_softmax", "fc_out")
_INSIDE = ".representation.lm."


@dataclass(frozen=True)
class Part:
    """A part of a model.

    Attributes:
        name: for people.
        parameters: number of them; a matrix that several parts share is counted in the first.
        trained: number of those that training changes.
    """

    name: str
    parameters: int
    trained: int


def parts(model: nn.Module) -> list[Part]:
    """Count the parameters of a model, on any device, by part."""
    modules = dict(model.named_modules())
    alone = isinstance(model, FairseqLanguageModel)
    found: dict[str, list[int]] = {}
    for name, weight in model.named_parameters():  # a shared one once
        counted = found.setdefault(_part(name, modules[name.rpartition(".")[0]], alone), [0, 0])
        counted[0] += weight.numel()
        counted[1] += weight.numel() * weight.requires_grad
    return [Part(name, *numbers) for name, numbers in found.items()]


def _part(name: str, owner: nn.Module, alone: bool) -> str:
    side, _, inside = name.partition(_INSIDE)
    if inside:
        return ("source" if side.startswith("encoder") else "target") + " LM: " + _within_lm(inside, owner)
    if alone:
        return _within_lm(name.partition(".")[2], owner)
    if isinstance(owner, (nn.Embedding, nn.EmbeddingBag)):
        return "embeddings"
    if any(word in name for word in OUTPUT):
        return "output"
    return name.partition(".")[0]


def _within_lm(name: str, owner: nn.Module) -> str:
    """Return the part of a language model; of one tied matrix the embedding, which comes first, has it."""
    if isinstance(owner, (nn.Embedding, nn.EmbeddingBag)):
        return "embeddings"
    if any(word in name for word in OUTPUT):
        return "output"
    return "joining block" if name.startswith("join.") else "towers"
