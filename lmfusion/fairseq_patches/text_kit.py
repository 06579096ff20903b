"""Checkpoints that hold their BPE and dictionaries: written by training, used where a command does not name them."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY

from lmfusion.errors import InputError
from lmfusion.text.codec import built_bpe, built_tokenizer
from lmfusion.text.kit import ENTRY, TextKit, collect, from_state

logger = logging.getLogger(__name__)

_TWO_SIGNS = re.compile(r"@ ?@ ")  # a tokenizer may have parted them
MARKS = {"sentencepiece": re.compile("▁"), "subword_nmt": _TWO_SIGNS, "fastbpe": _TWO_SIGNS}
"""Of pieces of words, by the kind of BPE; plain text of other kinds may have either."""
_reading_text = False
"""Whether ``fairseq-interactive`` is at work on plain text."""
_kits: list[TextKit | None] = []
"""Of every checkpoint that this process has read."""


def add(state: dict[str, Any]) -> None:
    """Add its kit to a checkpoint that is about to be written, if its model is ours."""
    cfg = state.get("cfg") or {}
    model = cfg.get("model") or {}
    name = getattr(model, "_name", None) or (model.get("_name") if isinstance(model, dict) else None)
    known = MODEL_REGISTRY.get(name) or ARCH_MODEL_REGISTRY.get(name)
    if known is None or not known.__module__.startswith("lmfusion."):
        return
    if (kit := collect(cfg) or _of_the_run(cfg)) is not None:
        state[ENTRY] = kit.to_state()


def _of_the_run(cfg: Any) -> TextKit | None:
    """Return the kit in the checkpoint from which a run resumed, whose files are gone; None if there is none."""
    task = cfg.get("task") or {}
    sides = tuple((task if isinstance(task, dict) else vars(task)).get(f"{side}_lang") for side in ("source", "target"))
    return next((kit for kit in _kits if kit is not None and kit.bpe and kit.languages == sides), None)


def remember(path: Path, state: dict[str, Any]) -> None:
    """Keep the kit of a checkpoint that was read, for :func:`use_for_bpe` and :func:`use_for_tokenizer`."""
    _kits.append(from_state(path, state))


def _kit(asked: Any) -> TextKit | None:
    """Return the kit of the models of this process, where the command line asks for nothing itself."""
    if not _reading_text or (asked is not None and getattr(asked, "_name", asked) is not None):
        return None
    return _kits[0] if _kits and all(kit == _kits[0] for kit in _kits) else None


@contextmanager
def reads_text(cfg: Any, main: Callable[..., Any]) -> Iterator[None]:
    """Note while a command runs whether it is ``fairseq-interactive`` on plain text.

    ``fairseq-generate`` reads and prints symbols; what ``--remove-bpe`` is given with is encoded already.
    """
    global _reading_text
    source = getattr(getattr(main, "__code__", None), "co_filename", "")
    _reading_text = Path(source).parts[-2:] == ("fairseq_cli", "interactive.py") and not cfg.common_eval.post_process
    try:
        yield
    finally:
        _reading_text = False


def use_for_bpe(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``build_bpe`` of a task take the checkpoint's BPE where none is asked for."""

    def build_bpe(self: Any, args: Any) -> Any:
        kit = _kit(args)
        if kit is None or not kit.bpe:
            return original(self, args)
        logger.info(
            f"BPE: {kit.bpe['_name']}, from the checkpoint (text that is encoded already: --tokenizer space --bpe none)"
        )
        bpe = built_bpe(kit)
        if mark := MARKS.get(kit.bpe["_name"]):
            bpe.encode = _plain_only(bpe.encode, mark)
        return bpe

    return build_bpe


def _plain_only(encode: Callable[[str], str], mark: re.Pattern[str]) -> Callable[[str], str]:
    """Return the encoding of a checkpoint's BPE, which refuses text that is encoded already, by the mark of pieces."""

    def checked(text: str) -> str:
        if found := mark.search(text):
            raise InputError(
                f"{text[:80]!r}: by its {found[0].strip()!r} this is text in pieces of words, which the checkpoint's "
                "BPE would encode once more: add --tokenizer space --bpe none to give pieces, or join them."
            )
        return encode(text)

    return checked


def use_for_tokenizer(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``build_tokenizer`` of a task take the checkpoint's tokenizer where none is asked for."""

    def build_tokenizer(self: Any, args: Any) -> Any:
        kit = _kit(args)
        if kit is None or not kit.tokenizer:
            return original(self, args)
        logger.info(f"tokenizer: {kit.tokenizer['_name']}, from the checkpoint")
        return built_tokenizer(kit)

    return build_tokenizer
