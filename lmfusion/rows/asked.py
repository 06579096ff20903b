"""What a command asks to be trained, and what of it cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmfusion.errors import InputError
from lmfusion.rows import scripts
from lmfusion.text import prepared
from lmfusion.text.prepared import Prepared

GIVEN = {scripts.SOURCE_LM: "src", scripts.TARGET_LM: "tgt"}
"""The side whose language model a script trains."""


@dataclass(frozen=True)
class Asked:
    """Hold what the command line asks for.

    Attributes:
        data: prepared text.
        rows: names of rows.
        out: folder of all runs.
        minutes: for everything; None: by the amount of text.
        language_models: given ones, by side ("src", "tgt").
        seed: of all runs.
        jobs: scripts at once; None: by cores and GPUs.
        numbers: of the scripts, set by hand.
        title: of the report.
    """

    data: Prepared
    rows: Sequence[str]
    out: Path
    minutes: float | None = None
    language_models: dict[str, Path] = field(default_factory=dict)
    seed: int = 1
    jobs: int | None = None
    numbers: dict[str, str] = field(default_factory=dict)
    title: str = ""

    def lms(self) -> list[str]:
        """Return the scripts of the language models to be trained."""
        needed = {script for row in self.rows for script in scripts.needs(row)}
        return sorted(script for script in needed if GIVEN.get(script) not in self.language_models)


def check(asked: Asked) -> None:
    """Refuse what cannot be trained, before anything is.

    Raises:
        InputError: naming the row, the data or the language model.
    """
    scripts.check_rows(asked.rows)
    if asked.out.resolve() == asked.data.folder.resolve():
        raise InputError(f"--out {asked.out} is the folder of the prepared text: give the runs one of their own.")
    for part in (asked.data.bitext, *(asked.data.plain_text(lang) for lang in asked.data.symbols)):
        if not part.is_dir():
            raise InputError(f"{part} is missing: run `lmfusion data` again with --out {asked.data.folder}.")
    names = {"src": asked.data.source, "tgt": asked.data.target}
    for side, path in asked.language_models.items():
        _check_lm(side, path, asked, names[side])
    noised = [row for row in asked.rows if row in scripts.DENOISERS]
    if noised and asked.data.tokenizers:
        raise InputError(
            f"--rows {','.join(noised)}: a denoiser needs one dictionary for both sides, and {asked.data.folder} has "
            f"the pieces of a model of Hugging Face on one: prepare the text again without --src-hf and --tgt-hf."
        )
    _check_back_translation(asked)
    for script, side in GIVEN.items():
        if script in asked.lms() and names[side] in asked.data.tokenizers:
            raise InputError(
                f"{asked.data.folder}: {names[side]} is in the pieces of a model of Hugging Face, its language model: "
                f"give the folder of that by --{side}-lm."
            )


def _check_back_translation(asked: Asked) -> None:
    """Refuse rows with back-translation where there is nothing to translate, or no way back."""
    rows = [row for row in asked.rows if scripts.is_back_translated(row)]
    if not rows:
        return
    if asked.data.kind != prepared.TRANSLATION or asked.data.tokenizers:
        raise InputError(
            f"--rows {','.join(rows)}: back-translation is for translation, with one BPE for both sides; "
            f"{asked.data.folder} is not prepared for that. Leave these rows out."
        )
    if asked.data.target not in asked.data.symbols:
        raise InputError(
            f"--rows {','.join(rows)}: {asked.data.folder} has no plain text of {asked.data.target} to translate: "
            f"prepare it again with --text."
        )


def _check_lm(side: str, path: Path, asked: Asked, name: str) -> None:
    """Refuse a language model that cannot read the data of the side with this name."""
    if not path.exists():
        raise InputError(f"--{side}-lm {path}: does not exist.")
    import lmfusion
    from lmfusion.text.dictionaries import read_dictionary

    lm, dictionary = lmfusion.load_lm(path), asked.data.dictionary_of(name)
    _check_tokenizer(side, path, asked.data, name, lm)
    if not lm.by_symbol:
        lm.serve(list(read_dictionary(dictionary).symbols), what=str(dictionary))
    if asked.data.longest > lm.max_positions():
        raise InputError(
            f"{asked.data.folder} has a sentence of {asked.data.longest} symbols to validate or test on; {path} reads "
            f"{lm.max_positions()}: prepare it with --max-length {lm.max_positions()}."
        )


def _check_tokenizer(side: str, path: Path, data: Prepared, name: str, lm: Any) -> None:
    """Refuse a language model with another tokenizer than its side was encoded with."""
    tokenizer = getattr(lm.vocabulary, "tokenizer", None)
    expected, found = data.tokenizers.get(name), tokenizer.hash if tokenizer is not None else None
    if expected == found:
        return
    again = f"prepare the text again by lmfusion data … --{side}-hf {path}"
    if path.is_file():  # of hf save or hf import, which --src-hf does not read
        again = (
            f"prepare the text by lmfusion data … --{side}-hf FOLDER, the folder of Hugging Face that {path.name} was "
            f"made from (or one that lmfusion hf export makes of a BERT), and give --{side}-lm FOLDER"
        )
    if expected is None:
        raise InputError(
            f"--{side}-lm {path} brings its own tokenizer, and {name} in {data.folder} has another BPE: {again}."
        )
    raise InputError(
        f"--{side}-lm {path}: its tokenizer is not that by which {name} in {data.folder} was encoded, or has changed "
        f"since: give the folder of then, or {again}."
    )
