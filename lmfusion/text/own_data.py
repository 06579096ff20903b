"""From a user's files to a folder that ``lmfusion train`` trains on: split, tokenized, BPE, binarized, described."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lmfusion.text import own_corpus, prepare, textio
from lmfusion.text.own_corpus import Request
from lmfusion.text.prepared import SUMMARIZATION, TRANSLATION, Prepared
from lmfusion.text.textio import DataError

BPE_SIZES = ((5_000, 2000), (50_000, 4000), (500_000, 8000), (5_000_000, 16000))
"""(training pairs up to which, BPE symbols); above the last, LARGEST."""
LARGEST = 32000
WORDS_A_SYMBOL = 20
MAX_RATIO = 3.0
CORPUS, NOTES = "corpus", "notes.json"


@dataclass(frozen=True)
class Bpe:
    """Say which BPE: of so many symbols (None: by the amount of text), or a given model with its dictionary."""

    size: int | None = None
    model: Path | None = None
    dictionary: Path | None = None


def make(request: Request, out: Path, bpe: Bpe, *, max_length: int = 250, workers: int | None = None) -> Prepared:
    """Fill a folder; what is there already is not made again.

    Args:
        request: the user's files.
        out: the folder.
        bpe: which BPE.
        max_length: most BPE symbols of a sentence.
        workers: processes; None: one a core.

    Returns:
        The description of the folder, which is saved in it.

    Raises:
        DataError: something is wrong with a file, or the folder was made from other ones.
    """
    corpus = out / CORPUS
    notes = _split(request, corpus)
    words = _prepare_words(request, corpus, out, bpe, max_length, workers)
    prepare.Preparation(prepare.parse_args(words)).run()
    found = _describe(request, out, notes)
    found.save()
    show(found, notes["notes"])
    return found


def _split(request: Request, corpus: Path) -> dict[str, Any]:
    """Make the corpus folder, unless it was made from the same files in the same way."""
    asked = {name: str(value) for name, value in vars(request).items() if name not in ("text", *_FILES)}
    asked["files"] = str(sorted(own_corpus.file_hash(path) for path in request.inputs() if path.is_file()))
    path = corpus / NOTES
    if path.is_file():
        before: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if before["asked"] != asked:
            changed = sorted(name for name in asked if before["asked"].get(name) != asked[name])
            raise DataError(
                f"{corpus.parent}: was made otherwise ({', '.join(changed)}). Choose another --out, "
                f"or delete that folder."
            )
        return before
    summary = own_corpus.build(request, corpus)
    notes = {"asked": asked, **vars(summary)}
    with textio.writing(path) as stream:
        json.dump(notes, stream, indent=2)
    return notes


_FILES = ("pairs", "tsv", "jsonl", "tmx", "valid", "test")


def _prepare_words(
    request: Request, corpus: Path, out: Path, bpe: Bpe, max_length: int, workers: int | None
) -> list[str]:
    """Return the command line of :mod:`lmfusion.text.prepare`."""
    words = [str(corpus), "-s", request.source, "-t", request.target, "--out", str(out), "--seed", str(request.seed)]
    if bpe.model:
        words += ["--spm", str(bpe.model), "--dict", str(bpe.dictionary or bpe.model.with_name("dict.txt"))]
    else:
        words += ["--bpe-size", str(bpe.size or _bpe_size(request, corpus))]
    if request.text_language:
        words += ["--text-lang", request.text_language, "--cut-source"]
    words += ["--max-length", str(max_length), "--max-ratio", "0" if request.text_language else str(MAX_RATIO)]
    return words + (["--workers", str(workers)] if workers else [])


def _bpe_size(request: Request, corpus: Path) -> int:
    """Return a number of symbols by the number of pairs: few for few (Sennrich and Zhang 2019)."""
    pairs = textio.count_lines(corpus / f"train.{request.source}")
    words = sum(
        line.count(" ") + 1
        for language in request.languages()
        for line in textio.read_lines(corpus / f"mono.train.{language}")
    )
    size = next((size for limit, size in BPE_SIZES if pairs < limit), LARGEST)
    return max(200, min(size, words // WORDS_A_SYMBOL))


def _describe(request: Request, out: Path, notes: dict[str, Any]) -> Prepared:
    counts = json.loads((out / "prepare.json").read_text(encoding="utf-8"))["counts"]
    bitext = counts["bitext-all"]["train"]
    texts = {language: counts[f"lm.{language}"]["files"] for language in request.languages()}
    symbols = {
        language: sum(int(file["tokens"]) for name, file in files.items() if "train" in name)
        for language, files in texts.items()
    }
    kept = [f"{split}.{side}" for split in ("valid", "test") for side in (request.source, request.target)]
    return Prepared(
        out,
        request.source,
        request.target,
        SUMMARIZATION if request.text_language else TRANSLATION,
        bitext["kept"],
        request.text_language,
        symbols,
        max(_lengths(out / "bpe" / name)[1] for name in kept),
        {"sources": notes["sources"], "notes": notes["notes"]},
    )


def _lengths(path: Path) -> tuple[float, int]:
    """Return the mean and the greatest number of symbols in a line."""
    lengths = [line.count(" ") + 1 for line in textio.read_lines(path)]
    return sum(lengths) / max(1, len(lengths)), max(lengths, default=0)


def show(data: Prepared, notes: list[str]) -> None:
    """Print what a folder holds, and what to do next."""
    counts = json.loads((data.folder / "prepare.json").read_text(encoding="utf-8"))["counts"]
    table = Table(title=f"{data.folder}: {data.source} to {data.target}, {data.pairs:,} training pairs")
    for heading in ("text", "lines", "symbols", "a line", "longest", "unknown"):
        table.add_column(heading, justify="left" if heading == "text" else "right")
    for name, made in counts.items():
        for file, found in (made.get("files") or {}).items() if isinstance(made, dict) else ():
            mean, longest = _lengths(_bpe_text(data.folder, name, file))
            row = (f"{found['sentences']:,}", f"{found['tokens']:,}", f"{mean:.1f}", str(longest))
            table.add_row(f"{name}/{file}", *row, f"{found['unknown_percent']:.2g}%")
    console = Console()
    console.print(table)
    for name, made in counts.items():
        dropped = {why: n for why, n in made["train"].items() if why != "kept"} if isinstance(made, dict) else {}
        if dropped:
            notes = [*notes, f"{name}: " + ", ".join(f"{why.replace('_', ' ')} {n:,}" for why, n in dropped.items())]
    for note in notes:
        console.print(f"- {note}", markup=False, highlight=False)
    rows = "baseline,src_elmo_shdemb"
    console.print(f"Next: lmfusion train {data.folder} --rows {rows} --out runs/mine", markup=False, highlight=False)


def _bpe_text(folder: Path, made: str, file: str) -> Path:
    """Return the encoded text that a binarized file was made of; training text before it was filtered."""
    split, language = file.split(".")[0], file.split(".")[-1]
    return folder / "bpe" / (f"mono.{split}.{made[3:]}" if made.startswith("lm.") else f"{split}.{language}")
