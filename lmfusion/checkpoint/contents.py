"""Validate the content of a checkpoint, so that no later step fails at a value that fairseq never writes."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from lmfusion.checkpoint.nesting import check_nesting
from lmfusion.errors import InputError

# Sizes in a model's configuration from which memory is taken before any weight is looked at.
_LAYERS = re.compile(r".*_layers$")
_WIDTHS = re.compile(r".*(_dim|_heads)$")
_NEEDED = re.compile(r"(encoder|decoder)_(ffn_embed_dim|embed_dim|attention_heads)")
_LENGTHS = re.compile(r".*(_positions|tokens_per_sample)$")
_LONGEST = 10_000_000
# Bytes of tensors for each that is stored, and beyond these: some models have one layer at many places.
_SHARED, _SPARE = 8, 256 << 20


def check_contents(path: Path, state: Any) -> None:
    """Validate the structure of a checkpoint that was read.

    Args:
        path: of the file, for messages.
        state: its content.

    Raises:
        InputError: if it is no fairseq checkpoint; the message names the entry.
    """
    if not isinstance(state, dict) or not isinstance(state.get("model"), dict):
        raise InputError(f"{path} is not a fairseq checkpoint: it has no model weights in it.")
    try:
        check_nesting(state)
    except ValueError as error:
        raise InputError(f"{path} is damaged or not what it says: {error}. Copy or train it again.") from error
    odd = sorted(str(name) for name, value in state["model"].items() if not _is_weight(name, value))
    if odd:
        raise InputError(f"{path}: these are among its weights and are none: {', '.join(odd[:20])}.")
    _check_storages(path, state)
    if isinstance(state.get("args"), Tensor):
        raise InputError(f"{path} is damaged or not a fairseq checkpoint: its args are a tensor.")
    for name, kinds in (("cfg", (dict,)), ("extra_state", (dict,)), ("optimizer_history", (list,))):
        _check_kind(path, name, state.get(name), kinds)
    for entry in state.get("optimizer_history") or []:
        if not isinstance(entry, dict):
            raise InputError(f"{path} is damaged or not a fairseq checkpoint: its optimizer_history is none.")
        _check_kind(path, "num_updates", entry.get("num_updates"), (int,))
    for name, section in (state.get("cfg") or {}).items():
        _check_kind(path, f"cfg.{name}", section, (dict, Namespace) if name in ("model", "task") else (object,))


def _check_storages(path: Path, state: dict[str, Any]) -> None:
    """Refuse tensors that a copy would make far larger than what is stored of them, one by one and together."""
    stored, total = {}, 0
    for name, tensor in _tensors(state):
        storage, size = tensor.untyped_storage(), tensor.numel() * tensor.element_size()
        there = storage.nbytes() - tensor.storage_offset() * tensor.element_size()
        if size > there:
            raise InputError(
                f"{path} is damaged or not what it says: {name} of shape {tuple(tensor.shape)} would take {size:,} "
                f"bytes, and {there:,} are stored. Copy or train it again."
            )
        stored[storage.data_ptr()] = storage.nbytes()
        total += size
    if total > _SHARED * sum(stored.values()) + _SPARE:
        raise InputError(
            f"{path} is damaged or not what it says: its tensors are parts of one another and would take {total:,} "
            f"bytes by themselves, and {sum(stored.values()):,} are stored. Copy or train it again."
        )


def _tensors(value: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors in nested dictionaries and lists, each once, with their places."""
    todo, seen = [(name, value)], set()
    while todo:
        name, value = todo.pop()
        if isinstance(value, Tensor):
            yield name, value
        elif isinstance(value, (dict, list, tuple, Namespace)) and id(value) not in seen:
            seen.add(id(value))
            value = vars(value) if isinstance(value, Namespace) else value
            items = value.items() if isinstance(value, dict) else enumerate(value)
            todo += [(f"{name}.{key}" if name else str(key), inner) for key, inner in items]


def _is_weight(name: Any, value: Any) -> bool:
    return isinstance(name, str) and isinstance(value, Tensor)


def _check_kind(path: Path, name: str, value: Any, kinds: tuple[type, ...]) -> None:
    if value is not None and not isinstance(value, kinds):
        raise InputError(
            f"{path} is damaged or not a fairseq checkpoint: its {name} is a {type(value).__name__}, not a "
            f"{kinds[0].__name__}."
        )


def check_sizes(path: Path, state: dict[str, Any]) -> None:
    """Refuse a configuration whose sizes its weights cannot have, before a model of that size is built.

    Args:
        path: for messages.
        state: the checkpoint, complete.

    Raises:
        InputError: naming the size.
    """
    check_named_sizes(path, model_settings(state), state["model"])


def model_settings(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the configuration of a checkpoint's model, that of the paper's code as well; empty if it has none."""
    config = (state.get("cfg") or {}).get("model") or state.get("args") or {}
    return vars(config) if isinstance(config, Namespace) else config


def check_named_sizes(path: Path, values: Mapping[Any, Any], weights: Mapping[str, Tensor]) -> None:
    """Refuse sizes that weights cannot have: every layer has some of its own, and some weight is as wide as it says.

    Args:
        path: for messages.
        values: of a configuration, by name.
        weights: of the checkpoint, by name.

    Raises:
        InputError: naming the size.
    """
    numbers = sum(weight.numel() for weight in weights.values())
    for name, value in values.items():
        size = _whole(value)
        if not isinstance(name, str) or size is None:
            continue
        limits = ((_LAYERS, len(weights)), (_WIDTHS, max(numbers, 1)), (_LENGTHS, _LONGEST))
        limit = next((limit for pattern, limit in limits if pattern.match(name)), size)
        if size > limit or size < (1 if _NEEDED.fullmatch(name) else -1 if not _LAYERS.match(name) else size):
            raise InputError(
                f"{path} is damaged or not what it says: {name} is {size:,}, and it has {len(weights):,} tensors with "
                f"{numbers:,} numbers."
            )


def _whole(value: Any) -> int | None:
    """Return the whole number that OmegaConf would read in a value; None if there is none."""
    try:
        return int(value) if isinstance(value, (int, float, str)) else None
    except (ValueError, OverflowError):
        return None
