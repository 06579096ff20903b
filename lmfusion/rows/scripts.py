"""The scripts of ``recipes/own``: one for each row and each language model."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from lmfusion.errors import InputError
from lmfusion.runs.live import SHOW, STARTED_BY
from lmfusion.text.prepared import SUMMARIZATION, Prepared

PACKAGE = Path(__file__).resolve().parents[1]
SOURCE_LM, TARGET_LM, SOURCE_BERT = "lm", "causal_lm", "bert_lm"
DENOISERS = {"denoising": "denoiser", "lstm_denoising": "lstm_denoiser"}
"""Rows that start from a denoiser, and its script, which its run folder is called as: it is of both languages."""
REVERSE = "reverse"
"""The script that translates the other way, for rows with back-translation, and its run folder."""
FOLDERS = {SOURCE_LM: "lm", TARGET_LM: "causal", SOURCE_BERT: "bert"}
"""What the run folders of language models are called, in front of the language."""
LATER = {"LSTM_LAYERS": "1", "MADE_UP": "20000"}
"""Numbers that are not among those which a folder is begun with, so that older folders can have rows with them."""
_NUMBER = re.compile(r'"\$\{([A-Z][A-Z0-9_]*):=([^}]*)\}"')


@cache
def recipes() -> Path:
    """Return the folder of recipes: of the clone, or of the installed package.

    Raises:
        InputError: it is in neither place.
    """
    for folder in (PACKAGE.parent / "recipes", PACKAGE / "recipes"):
        if (folder / "own" / "_corpus.sh").is_file():
            return folder
    raise InputError(f"{PACKAGE} has no recipes beside it or in it: install lmfusion again.")


def rows() -> list[str]:
    """Return the names of the rows."""
    names = (path.stem for path in (recipes() / "own").glob("[a-z]*.sh"))
    return sorted(name for name in names if not pretrains(name))


def pretrains(script: str) -> bool:
    """Tell whether a script trains what rows read or start from, and is no row."""
    return script in FOLDERS or script in DENOISERS.values() or script == REVERSE


def is_back_translated(row: str) -> bool:
    """Tell whether a row trains on plain text of the target language and its translation, too."""
    return "back_translation" in row


def check_rows(names: Sequence[str]) -> None:
    """Refuse names that are no rows.

    Raises:
        InputError: naming it, and those that there are.
    """
    known = rows()
    if not names:
        raise InputError(f"--rows names no row. There are: {', '.join(known)}.")
    for name in names:
        if name not in known:
            like = get_close_matches(name.lower().replace("-", "_"), known, n=1)
            meant = f" Did you mean {like[0]}?" if like else ""
            raise InputError(f"--rows {name}: there is no such row.{meant} There are: {', '.join(known)}.")


def needs(row: str) -> list[str]:
    """Return the scripts of the language models that a row uses."""
    if row.endswith("_bert"):
        return [SOURCE_BERT]
    if row in DENOISERS:
        return [DENOISERS[row]]
    if row.endswith("_causal"):
        return [TARGET_LM]
    lms = [script for side, script in (("src_", SOURCE_LM), ("tgt_", TARGET_LM)) if side in row]
    return [*lms, *([REVERSE] if is_back_translated(row) else [])]


@cache
def defaults() -> dict[str, str]:
    """Return the numbers that the scripts know, with their defaults."""
    files = (recipes() / "_common.sh", recipes() / "_rows.sh", recipes() / "own" / "_corpus.sh")
    return {**dict(found for file in files for found in _NUMBER.findall(file.read_text(encoding="utf-8"))), **LATER}


def run_folder(script: str, data: Prepared) -> str:
    """Return the name of the run folder that a script fills."""
    if script not in FOLDERS:
        return script
    return f"{FOLDERS[script]}.{data.language(data.target if script == TARGET_LM else data.source)}"


def command(script: str) -> list[str]:
    """Return the words that run a script."""
    return ["bash", str(recipes() / "own" / f"{script}.sh")]


def environment(data: Prepared, out: Path, numbers: Mapping[str, str], threads: int) -> dict[str, str]:
    """Return the environment of a script: this process's, and what it asks for.

    Args:
        data: prepared text.
        out: folder of all runs.
        numbers: that differ from the scripts' defaults.
        threads: of a process, unless OMP_NUM_THREADS says how many.
    """
    own = {name: value for name, value in os.environ.items() if name not in defaults()}
    return {
        **own,
        **numbers,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), own.get("PATH", os.defpath)]),
        "DATA_DIR": str(data.folder),
        "OUT": str(out),
        "SRC": data.source,
        "TGT": data.target,
        "PAIRS": str(data.pairs),
        "TEXT_LANG": data.text_language or "",
        "TOKENIZER": data.tokenizer,
        "SRC_PIECES": str(data.pieces(data.source) or ""),
        "TGT_PIECES": str(data.pieces(data.target) or ""),
        "NO_SETUP": "1",
        "OMP_NUM_THREADS": own.get("OMP_NUM_THREADS", str(threads)),
        SHOW: "1",
        STARTED_BY: str(os.getpid()),
        **_source_limit(data, numbers),
    }


def _source_limit(data: Prepared, numbers: Mapping[str, str]) -> dict[str, str]:
    """Return the number that says how much of an article is read: fairseq counts its </s>."""
    if data.kind != SUMMARIZATION or data.source_limit is None or "MAX_SOURCE" in numbers:
        return {}
    return {"MAX_SOURCE": str(data.source_limit + 1)}
