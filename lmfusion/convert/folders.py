"""Our own language models as folders of Hugging Face, by family."""

from __future__ import annotations

from pathlib import Path

from lmfusion.convert import bert, causal_folder
from lmfusion.errors import InputError
from lmfusion.lm.bert import BertLM
from lmfusion.lm.loading import load_lm


def to_folder(path: str | Path, out: str | Path, *, licence: str | None = None) -> None:
    """Write a checkpoint as a folder that transformers loads: a causal LM as OPT, a BERT as ``BertForPreTraining``.

    Args:
        path: of the checkpoint.
        out: folder to write; it must not exist.
        licence: of a causal LM, for its model card.

    Raises:
        InputError: if the checkpoint is of another family, the folder exists, or a licence is given for a BERT.
    """
    if not isinstance(load_lm(path), BertLM):
        causal_folder.to_folder(path, out, licence=licence)
        return
    if licence is not None:
        raise InputError(f"--licence {licence}: the folder of a BERT has no model card yet: leave it out.")
    bert.to_folder(path, out)
