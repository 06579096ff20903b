"""One file to hand on: a model's weights, dictionaries, BPE, tokenizer, licence and model card."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmfusion.checkpoint.reading import model_config, read_checkpoint
from lmfusion.checkpoint.rewriting import exported, refuse_to_overwrite, write_checkpoint
from lmfusion.described import why_no_translator
from lmfusion.errors import InputError
from lmfusion.text import kit as kits
from lmfusion.text.codec import check


def pack(
    checkpoint: Path,
    out: str | Path,
    *,
    card: str,
    licence: str = "",
    half: bool = True,
    data: str | None = None,
    bpe_model: str | None = None,
) -> None:
    """Write a translation model as one file, from which :func:`lmfusion.load_model` translates plain text.

    It is a checkpoint of fairseq's with three entries more, and nothing in it can run.

    Args:
        checkpoint: of the model.
        out: file to write.
        card: what the model is, as Markdown.
        licence: text of its licence, or its name.
        half: store the weights in half precision.
        data: folder with the dictionaries, of a checkpoint that does not hold them.
        bpe_model: sentencepiece model, likewise.

    Raises:
        InputError: if it is no such model, or its BPE or dictionaries are nowhere.
    """
    refuse_to_overwrite([checkpoint], out)
    state = read_checkpoint(checkpoint)
    if reason := why_no_translator(model_config(checkpoint, state), state["model"]):
        raise InputError(f"{checkpoint} {reason}. What is packed translates.")
    kit = _complete_kit(checkpoint, state, data, bpe_model)
    try:
        check(kit)
    except InputError as error:
        raise InputError(f"{checkpoint} names files that are not what it says, and none is packed: {error}") from error
    content = exported(state, half=half)
    content[kits.ENTRY] = kit.to_state()
    content[kits.CARD], content[kits.LICENCE] = (kits.to_tensor(text.encode("utf-8")) for text in (card, licence))
    write_checkpoint(content, out)


def _complete_kit(checkpoint: Path, state: Mapping[str, Any], data: str | None, bpe_model: str | None) -> kits.TextKit:
    """Return what a checkpoint holds, and what it lacks from the files that are given or that it names."""
    stored = kits.from_state(checkpoint, state) or kits.TextKit()
    cfg = _with_files(state["cfg"], data, bpe_model)
    bpe, words = stored, stored
    if bpe_model or not stored.bpe:
        bpe = kits.collect({**cfg, "task": {}}) or kits.TextKit()
    if data or not stored.dictionaries:
        words = kits.collect({**cfg, "bpe": {}}) or kits.TextKit()
    parts = (
        ("BPE", "--spm", bpe_model or "FILE", stored.bpe_file, bpe.bpe_file),
        ("dictionaries", "--data", data or "FOLDER", stored.dictionaries, words.dictionaries),
    )
    for what, flag, value, own, found in parts:
        if own and not found:
            raise InputError(f"{flag} {value} has no {what} to read, and {checkpoint} holds its own: leave it out.")
        if own and own != found:
            raise InputError(f"{flag} {value}: {checkpoint} holds other {what}, its own. Leave out {flag}.")
    if missing := [(what, f"{flag} {value}") for what, flag, value, _, found in parts if not found]:
        names, flags = (" and ".join(each) for each in zip(*missing))
        raise InputError(f"{checkpoint} does not hold its {names}: give {flags}, where they are to be found.")
    tokenizer = stored.tokenizer or bpe.tokenizer
    return kits.TextKit(words.languages, tokenizer, bpe.bpe, bpe.bpe_file, words.dictionaries)


def _with_files(cfg: Mapping[str, Any], data: str | None, bpe_model: str | None) -> dict[str, Any]:
    """Return a checkpoint's configuration with these files in the place of those that it names."""
    task, bpe = dict(cfg.get("task") or {}), dict(cfg.get("bpe") or {})
    if data:
        task["data"] = data
    if bpe_model:
        bpe = {**bpe, "_name": "sentencepiece", "sentencepiece_model": bpe_model}
    return {**cfg, "task": task, "bpe": bpe}


def texts(path: str | Path) -> dict[str, str]:
    """Return the model card and the licence in a packed file; empty texts where it has none.

    Raises:
        InputError: if it cannot be read, or they are no texts.
    """
    state = read_checkpoint(path)
    return {name: kits.written(path, state, name) for name in (kits.CARD, kits.LICENCE)}
