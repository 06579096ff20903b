"""BPE: a sample of tokenized text, the model and dictionary learned on it, and text encoded by it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from lmfusion.text import encode_bpe, learn_bpe, textio
from paper_corpora import lines
from paper_corpora.parallel import write_lines
from paper_corpora.stages import Outcome
from paper_corpora.workspace import Workspace


def learn(
    workspace: Workspace, texts: list[Path], size: int, model: Path, dictionary: Path, words: tuple[str, ...] = ()
) -> Outcome:
    """Learn one BPE on a sample of each text; `words` are symbols of their own, see learn_bpe.py.

    Raises:
        DataError: the text is too small for so many symbols.
    """
    samples = [dictionary.with_name(f"sample.{number}.{path.name}") for number, path in enumerate(texts)]
    try:
        for path, text in zip(samples, texts):
            write_lines(path, lines.sample(text, workspace.scale.bpe_sample, workspace.seed))
        learn_bpe.learn_to_files(samples, size, workspace.seed, model, dictionary, words)
    finally:
        for path in samples:
            path.unlink(missing_ok=True)
    names = " and ".join(path.name for path in texts)
    return Outcome(f"{size:,} symbols learned on a sample of {names}", {"symbols": size})


def encode(workspace: Workspace, sources: list[Path], targets: list[Path], model: Path) -> Outcome:
    """Encode files.

    Raises:
        DataError: not a sentencepiece model.
    """
    for source, target in zip(sources, targets):
        encode_bpe.encode_file(source, target, model, workspace.workers)
    return Outcome("in BPE symbols: " + " ".join(path.name for path in targets), {})


def encode_missing(workspace: Workspace, files: dict[Path, Path], model: Path) -> None:
    """Encode those files (source: target) whose target is not there yet."""
    missing = {source: target for source, target in files.items() if not target.exists()}
    encode(workspace, list(missing), list(missing.values()), model)


def first_lines(path: Path, number: int | None) -> Iterator[str]:
    """The first lines of a file; all of them if `number` is None."""
    return islice(textio.read_lines(path), number)
