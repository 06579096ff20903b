"""From a person's files to a folder that ``lmfusion train`` trains on: split, tokenized, BPE, binarized, described."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from lmfusion.errors import why_no_file
from lmfusion.text import bpe_size, data_table, own_corpus, prepare, prepared
from lmfusion.text.binarize import making_folder
from lmfusion.text.corpus import file_hash
from lmfusion.text.data_table import Text
from lmfusion.text.learn_bpe import load_processor
from lmfusion.text.own_preparation import LEFT_OUT, OwnPreparation
from lmfusion.text.own_request import Request
from lmfusion.text.prepared import SUMMARIZATION, TRANSLATION, Prepared
from lmfusion.text.printable import printable
from lmfusion.text.record import Record, locked
from lmfusion.text.textio import DataError
from lmfusion.text.tokenize_text import MOSES, NO_TOKENIZER

CORPUS, RECORD = "corpus", "made.json"
_FILES = ("pairs", "tsv", "jsonl", "tmx", "text", "valid", "test")


@dataclass(frozen=True)
class Settings:
    """Say how text becomes symbols.

    Attributes:
        bpe_size: symbols; None: by the amount of text.
        bpe_model: a sentencepiece model to take over instead.
        dictionary: fairseq's dictionary of that model; None: ``dict.txt`` beside it.
        max_length: most BPE symbols of a sentence.
        max_ratio: of the lengths of a training pair's sides; 0: any. None: 3, and any for summaries.
        workers: processes; None: one a core.
        tokenizer: ``none``, sentencepiece reads text as it is, or ``moses``; None: as this folder was made, or that
            of the BPE that is taken over, ``moses`` where that does not say; else none.
        source_model: folder of a Hugging Face model whose tokenizer encodes the source; None: Moses and BPE.
        target_model: the same of the target.
    """

    bpe_size: int | None = None
    bpe_model: Path | None = None
    dictionary: Path | None = None
    max_length: int = 250
    max_ratio: float | None = None
    workers: int | None = None
    tokenizer: str | None = None
    source_model: Path | None = None
    target_model: Path | None = None

    def check(self) -> None:
        """Refuse a BPE that is not there, before anything is read.

        Raises:
            DataError: naming the file.
        """
        for path in (self.bpe_model, self.given_dictionary):
            if path and not path.is_file():
                raise DataError(
                    f"{path}: no such file. --spm and --dict name a sentencepiece model and its dictionary."
                )
        if self.bpe_model:
            load_processor(self.bpe_model)

    @property
    def given_dictionary(self) -> Path | None:
        """Return the dictionary of the BPE that is taken over."""
        return self.dictionary or (self.bpe_model.with_name("dict.txt") if self.bpe_model else None)

    def tokenizer_of(self, out: Path) -> str:
        """Return the tokenizer of the folder ``out``."""
        folders = [out, *([self.bpe_model.parent] if self.bpe_model else [])]
        described = next((folder for folder in folders if (folder / prepared.FILE).is_file()), None)
        before = prepared.read(described).tokenizer if described else None
        return self.tokenizer or before or (MOSES if self.bpe_model else NO_TOKENIZER)

    def own_bpe(self, request: Request) -> tuple[str, ...]:
        """Return the languages of the sides with a BPE of their own; the others have a model's pieces."""
        sides = self._sides(request)
        return (request.languages if sides else ()) if request.text_language else sides

    def _sides(self, request: Request) -> tuple[str, ...]:
        """Return the sides with a BPE of their own."""
        models = (self.source_model, self.target_model)
        return tuple(side for side, model in zip(request.sides, models) if model is None)

    def words(self, request: Request, corpus: Path, out: Path) -> list[str]:
        """Return the command line of :mod:`lmfusion.text.prepare`."""
        one = request.text_language
        ratio = self.max_ratio if self.max_ratio is not None else 0 if one else 3
        words = [str(corpus), "-s", request.source, "-t", request.target, "--out", str(out)]
        words += ["--seed", str(request.seed), "--max-length", str(self.max_length), "--max-ratio", str(ratio)]
        for flag, folder in (("--src-hf", self.source_model), ("--tgt-hf", self.target_model)):
            words += [flag, str(folder)] if folder else []
        own = self.own_bpe(request)
        if self.bpe_model:
            words += ["--spm", str(self.bpe_model), "--dict", str(self.given_dictionary)]
        elif own or self.bpe_size:
            texts = [corpus / f"mono.train.{language}" for language in own]
            pairs = [corpus / f"train.{side}" for side in self._sides(request)]
            words += ["--bpe-size", str(self.bpe_size or bpe_size.choose(texts, pairs))]
        words += ["--tokenizer", self.tokenizer_of(out), *(["--text-lang", one] if one else [])]
        return words + (["--workers", str(self.workers)] if self.workers else [])


def make(request: Request, out: Path, settings: Settings) -> Prepared:
    """Fill a folder, print what it holds, and describe it for training; what is there already is not made again.

    Args:
        request: the files, and how they are split.
        out: the folder.
        settings: how text becomes symbols.

    Returns:
        The description, which is saved in the folder.

    Raises:
        DataError: something is wrong with a file, or the folder was made from other files or in another way.
    """
    settings.check()
    found = split(request, out)
    _print_notes(found["notes"])
    given = {name: files for name, files in (("valid", request.valid), ("test", request.test)) if files}
    words = settings.words(request, out / CORPUS, out)
    preparation = OwnPreparation(prepare.parse_args(words), given, chosen=settings.bpe_size is None)
    preparation.run()
    texts = data_table.measure(out, request.sides, settings.own_bpe(request), preparation.counts)
    hashes = {side: tokenizer.hash for side, tokenizer in preparation.tokenizers.items()}
    made = replace(describe(request, out, settings, texts, found["sources"]), tokenizers=hashes)
    made.save()
    data_table.show(made, texts, preparation.counts.get(LEFT_OUT, {}))
    _print_notes(found.get("doubts", []))  # again, as the first are far above by now; older folders have none
    return made


def _print_notes(notes: list[str]) -> None:
    for note in notes:
        print(f"note: {printable(str(note))}", flush=True)


def split(request: Request, out: Path) -> dict[str, Any]:
    """Make the corpus folder unless it is there; return the counts, notes and sources of when it was made.

    Raises:
        DataError: something is wrong with a file, or the folder was made from other files or in another way.
    """
    files = given_files(request)
    for path in files.values():
        if not path.is_file():
            raise DataError(f"{path}: {why_no_file(path)}. Give a file of text; it may be compressed (.gz, .xz).")
    asked: dict[str, Any] = {name: value for name, value in vars(request).items() if name not in _FILES}
    asked["fields"] = list(request.fields or ())
    asked["files"] = sorted(files)
    for flag in ("pairs", "valid", "test"):  # the first is the source
        asked[f"--{flag}"] = [path.name for path in getattr(request, flag) or ()]
    with locked(out):
        hashes = {name: file_hash(path) for name, path in files.items()}
        if (out / CORPUS).is_dir():
            if not (out / CORPUS / RECORD).is_file():
                raise DataError(
                    f"{out / CORPUS}: has no {RECORD}, which says what it was made of. Delete that folder, and the "
                    f"text is split again; if it is not of lmfusion's making, choose another --out."
                )
            return Record(out, asked, hashes, f"{CORPUS}/{RECORD}").counts
        with making_folder(out / CORPUS) as work:
            summary = own_corpus.build(request, work)
            record = Record(out, asked, hashes, f"{work.name}/{RECORD}")
            record.counts.update(asdict(summary))
            record.save()
        return record.counts


def given_files(request: Request) -> dict[str, Path]:
    """Return every file that is given, by its flag and name."""
    found: dict[str, Path] = {}
    for flag in _FILES:
        value = getattr(request, flag)
        for number, path in enumerate([value] if isinstance(value, Path) else value or (), start=1):
            name = f"--{flag} {path.name}"
            found[name if name not in found else f"{name} ({number})"] = path
    return found


def describe(request: Request, out: Path, settings: Settings, texts: list[Text], sources: dict[str, str]) -> Prepared:
    """Return the description of a folder that is filled."""
    by_name = {text.name: text for text in texts}
    return Prepared(
        folder=out,
        source=request.source,
        target=request.target,
        kind=SUMMARIZATION if request.text_language else TRANSLATION,
        pairs=by_name[f"train {request.source}"].lines,
        text_language=request.text_language,
        symbols={language: by_name[f"text {language} train"].symbols for language in settings.own_bpe(request)},
        longest=max(text.longest for text in texts),
        source_limit=settings.max_length if request.text_language else None,
        tokenizer=settings.tokenizer_of(out),
        origin={"files": sources},
    )
