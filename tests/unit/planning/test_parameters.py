"""The part of a model that a parameter belongs to."""

from __future__ import annotations

from torch import nn

from lmfusion.planning.parameters import Part, parts


def linear(numbers: int) -> nn.Linear:
    """A matrix of so many numbers."""
    return nn.Linear(numbers, 1, bias=False)


def language_model(first: int) -> nn.ModuleDict:
    """A language model, with 1, 10, 100 and 1000 times so many parameters in its parts."""
    return nn.ModuleDict(
        {
            "embed_tokens": nn.Embedding(first, 1),
            "forward_layers": linear(10 * first),
            "join": linear(100 * first),
            "output_projection": linear(1000 * first),
        }
    )


def holding(lm: nn.Module, **more: nn.Module) -> nn.ModuleDict:
    """An encoder or decoder with a language model in the place of embeddings."""
    return nn.ModuleDict({"embed_tokens": nn.ModuleDict({"representation": nn.ModuleDict({"lm": lm})}), **more})


def test_parameters_are_those_of_their_part() -> None:
    frozen = language_model(2).requires_grad_(False)
    output = linear(5)
    model = nn.ModuleDict(
        {
            "encoder": holding(frozen, layers=linear(7), embed_positions=nn.Embedding(3, 1)),
            "decoder": holding(language_model(1), layers=linear(8), output_projection=output, tied=output),
        }
    )
    numbers = {"embeddings": 1, "towers": 10, "joining block": 100, "output": 1000}
    assert sorted(parts(model), key=lambda part: part.name) == sorted(
        [
            *(Part(f"source LM: {name}", 2 * number, 0) for name, number in numbers.items()),
            *(Part(f"target LM: {name}", number, number) for name, number in numbers.items()),
            *(Part("encoder", 7, 7), Part("decoder", 8, 8), Part("embeddings", 3, 3), Part("output", 5, 5)),
        ],
        key=lambda part: part.name,
    )
