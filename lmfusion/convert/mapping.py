"""Where every weight of the released format goes: a table of names, and applying it without losing or inventing any.

A row of a table says how weights of ours (a pattern) are called there. Which there are, and in which shapes, the model
itself says; weights of ours that have one name there are its rows, in the order of the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

from lmfusion.errors import InputError

FIRST_POSITION = Dictionary().pad() + 1  # fairseq numbers positions from here on
Shape = tuple[int, ...]


class Row(NamedTuple):
    """Say how weights of ours are called in the released format.

    Attributes:
        ours: regular expression of our names.
        released: replacement that makes the released name of it.
        skipped: rows that the released weight has in front and ours does not.
        lead: dimensions of size 1 that the released weight has in front and ours does not.
    """

    ours: str
    released: str
    skipped: int = 0
    lead: int = 0


_BLOCK = r"((?:forward_|backward_)?layers\.\d+\.)"
LM_TABLE = (
    Row(r"embed\.tokens\.weight", "embed_tokens.weight"),
    Row(r"embed\.learned_positions\.weight", "embed_positions.weight", skipped=FIRST_POSITION),
    Row(r"output_weight", "embed_out"),
    Row(_BLOCK + r"self_attn\.in_proj\.(\w+)", r"\1self_attn.in_proj_\2"),
    Row(_BLOCK + r"self_attn\.(bias_[kv])", r"\1self_attn.\2", lead=2),
    Row(_BLOCK + r"self_attn\.(out_proj\.\w+)", r"\1self_attn.\2"),
    Row(_BLOCK + r"layer_norm\.(\w+)", r"\1self_attn_layer_norm.\2"),
    Row(_BLOCK + r"ffn\.layer_norm\.(\w+)", r"\1final_layer_norm.\2"),
    Row(_BLOCK + r"ffn\.(fc[12]\.\w+)", r"\1\2"),
    Row(r"join\.proj\.(\w+)", r"full_linear_layer.\1"),
    Row(r"join\.([fb]wd_layer_norm\.\w+)", r"full_attn_layer.\1"),
    Row(r"join\.q_proj\.(\w+)", r"full_attn_layer.self_attn.in_proj_\1"),
    Row(r"join\.kv_proj\.(\w+)", r"full_attn_layer.self_attn.in_proj_\1"),
    Row(r"join\.(out_proj\.\w+)", r"full_attn_layer.self_attn.\1"),
    Row(r"join\.ffn\.layer_norm\.(\w+)", r"full_attn_layer.final_layer_norm.\1"),
    Row(r"join\.ffn\.(fc[12]\.\w+)", r"full_attn_layer.\1"),
)
# The query of --concat-final-q is made of both towers' states side by side and has a projection of its own.
CONCATENATED_QUERY = Row(r"join\.(q_proj\.\w+)", r"full_attn_layer.self_attn.\1")
# In the order of their numbers, by which the released encoder and older decoders call them.
NORMS = {
    "encoder": ("self_attn_layer_norm", "final_layer_norm"),
    "decoder": ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
}


def stack_table(part: str, weights: Mapping[str, Tensor]) -> list[Row]:
    """Return the table of an encoder or decoder without its embeddings.

    Args:
        part: ``"encoder"`` or ``"decoder"``.
        weights: in the released format, which number layer norms or name them.
    """
    block = rf"({part}\.layers\.\d+\.)"
    is_numbered = any(name.startswith(f"{part}.layers.") and ".layer_norms." in name for name in weights)
    norms = {norm: f"layer_norms.{number}" if is_numbered else norm for number, norm in enumerate(NORMS[part])}
    return [
        *(Row(block + rf"(\w+_attn\.){kind}_proj\.(\w+)", r"\1\2in_proj_\3") for kind in "qkv"),
        Row(block + r"(\w+_attn\.out_proj\.\w+|fc[12]\.\w+)", r"\1\2"),
        *(Row(block + rf"{norm}\.(\w+)", rf"\1{released}.\2") for norm, released in norms.items()),
        Row(rf"({part}\.(?:embed_positions|layer_norm)\.\w+)", r"\1"),
    ]


@dataclass(frozen=True)
class WeightMapping:
    """Say what becomes of one weight of the released format.

    Attributes:
        source: its name there.
        shape: that it must have.
        targets: the weights of ours that its rows become, in order, with their numbers of rows.
        skipped: rows in front of these, which ours lack.
        copy_of: another weight of the released format that it must equal (the released code saves a weight once for
            every place it is used at); it may then be missing.
    """

    source: str
    shape: Shape
    targets: dict[str, int] = field(default_factory=dict)
    skipped: int = 0
    copy_of: str | None = None

    def apply(self, value: Tensor) -> dict[str, Tensor]:
        """Return our weights of this one, by name."""
        rows = value.flatten() if self.shape[:2] == (1, 1) and len(self.shape) == 3 else value[self.skipped :]
        return dict(zip(self.targets, rows.split(list(self.targets.values()))))


def shapes_of(model: nn.Module) -> dict[str, Shape]:
    """Return the shapes of a model's parameters by name, tied ones under the first of theirs."""
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def map_names(
    table: Iterable[Row], shapes: Mapping[str, Shape], ours: str = "", released: str = ""
) -> list[WeightMapping]:
    """Return the mappings that a table gives for the weights of a model.

    Args:
        table: of names below both prefixes; the first row that a name fits is its own.
        shapes: of our weights, by name.
        ours: prefix of our names.
        released: prefix of the released names.
    """
    found: dict[str, WeightMapping] = {}
    left = {name[len(ours) :]: shape for name, shape in shapes.items() if name.startswith(ours)}
    for row in table:
        for name in [name for name in left if re.fullmatch(row.ours, name)]:
            source, shape = released + re.sub(row.ours, row.released, name), left.pop(name)
            before = found[source].targets if source in found else {}
            targets = {**before, ours + name: shape[0]}
            expected = (1,) * row.lead + (row.skipped + sum(targets.values()), *shape[1:])
            found[source] = WeightMapping(source, expected, targets, row.skipped)
    return list(found.values())


def map_lm(config: Mapping[str, Any], shapes: Mapping[str, Shape], ours: str, released: str) -> list[WeightMapping]:
    """Return the mappings of a whole language model.

    Args:
        config: our flags of it.
        shapes: of our weights, by name.
        ours: prefix of our names.
        released: prefix of the released names.
    """
    table = (CONCATENATED_QUERY, *LM_TABLE) if config.get("concat_final_q") else LM_TABLE
    mappings = map_names(table, shapes, ours, released)
    if config.get("single_tower"):  # one module, saved under two names
        forward = f"{released}forward_layers."
        for mapping in [mapping for mapping in mappings if mapping.source.startswith(forward)]:
            name = f"{released}backward_layers.{mapping.source[len(forward) :]}"
            mappings.append(WeightMapping(name, mapping.shape, copy_of=mapping.source))
    return mappings


def names_without_weights(prefix: str) -> list[str]:
    """Return names below a prefix that are no weights: a version, and traces of sinusoidal positions."""
    return [f"{prefix}{name}" for name in ("version", "embed_positions._float_tensor", "embed_positions.weights")]


def apply_mapping(
    mappings: Sequence[WeightMapping], weights: Mapping[str, Tensor], *, ignored: Iterable[str] = (), origin: str
) -> dict[str, Tensor]:
    """Return our weights by name.

    Args:
        mappings: at least one for each weight there has to be.
        weights: in the released format, by name.
        ignored: names that may be there and are no weights.
        origin: the file, for the message.

    Raises:
        InputError: listing by name what is missing, not expected, of another shape, not finite, or no copy of what it
            must be.
    """
    _check(mappings, weights, set(ignored), origin)
    result: dict[str, Tensor] = {}
    for mapping in mappings:
        if mapping.targets:
            result.update(mapping.apply(weights[mapping.source]))
    return result


def _check(mappings: Iterable[WeightMapping], weights: Mapping[str, Tensor], ignored: set[str], origin: str) -> None:
    expected = {mapping.source: mapping for mapping in mappings}
    there = {name: mapping for name, mapping in sorted(expected.items()) if name in weights}
    copies = [(name, step.copy_of) for name, step in there.items() if step.copy_of in weights]
    problems = {
        "missing": sorted(name for name, step in expected.items() if name not in weights and step.copy_of is None),
        "not expected": sorted(set(weights) - set(expected) - ignored),
        "of another shape": [
            f"{name} {tuple(weights[name].shape)} instead of {step.shape}"
            for name, step in there.items()
            if tuple(weights[name].shape) != step.shape
        ],
        "not finite numbers": [
            name for name in there if not weights[name].is_floating_point() or not weights[name].isfinite().all()
        ],
        "different from what they must be copies of": [
            f"{name} (of {other})" for name, other in copies if not torch.equal(weights[name], weights[str(other)])
        ],
    }
    found = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in problems.items() if names)
    if found:
        raise InputError(f"the weights in {origin} are not those of the model its flags describe. {found}.")
