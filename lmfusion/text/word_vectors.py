"""Train word vectors with gensim: skip-gram or CBOW, with negative sampling or hierarchical softmax."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmfusion.errors import InputError, check_name
from lmfusion.text import textio
from lmfusion.text.progress import progress

MODES = ("cbow", "skipgram")
LOSSES = ("ns", "hs")
END = "</s>"
LAST_RATE = 0.0001
"""Learning rate at the end; gensim's."""
_MOST_WORDS = 10_000  # gensim drops what is behind them in a line
_OTHER_COMPRESSION = (".bz2", ".zst", ".zip")
_RANKS = (20, 50, 100, 200, 400)


@dataclass(frozen=True)
class Training:
    """Say how vectors are trained.

    Attributes:
        mode: ``"skipgram"``, a word predicts its neighbours, or ``"cbow"``, they predict it.
        loss: ``"ns"``, negative sampling, or ``"hs"``, hierarchical softmax.
        size: C, numbers of a vector.
        window: most words between a word and a neighbour, on either side.
        epochs: passes over the text.
        negative: words drawn against each neighbour; 0 with ``"hs"``.
        sample: threshold of subsampling: words with a larger share of the text are often passed over.
        min_count: how often a word must occur to get a vector.
        lr: learning rate at first; it falls linearly to 0.0001.
        seed: of the first vectors and of all draws.
        workers: threads; with more than one, two runs differ.
    """

    mode: str = "skipgram"
    loss: str = "ns"
    size: int = 100
    window: int = 5
    epochs: int = 5
    negative: int = 5
    sample: float = 1e-3
    min_count: int = 1
    lr: float = 0.025
    seed: int = 1
    workers: int = 1

    def __post_init__(self) -> None:
        for name, known in (("mode", MODES), ("loss", LOSSES)):
            if getattr(self, name) not in known:
                raise InputError(f"{name}={getattr(self, name)!r}: it is {' or '.join(known)}.")
        for name in ("size", "window", "epochs", "min_count", "lr", "workers", *(["negative"] * (self.loss == "ns"))):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"--{name.replace('_', '-')} {getattr(self, name):g}: give a number above 0.")
        if self.lr < LAST_RATE:
            raise InputError(f"--lr {self.lr:g}: it falls to {LAST_RATE}, so give {LAST_RATE} or more.")
        if not 0 <= self.sample < math.inf:
            raise InputError(f"--sample {self.sample:g}: give 0 or more.")


class Sentences:
    """The lines of files as lists of words with ``</s>`` at their end, to be gone through several times.

    Args:
        files: of text, one sentence a line, words between white space.
        passes: how often they will be gone through, for the progress bar.
    """

    def __init__(self, files: Sequence[Path], passes: int) -> None:
        self.files, self.passes, self.done = files, passes, 0
        self.total = sum(map(textio.count_lines, files))

    def __iter__(self) -> Iterator[list[str]]:
        label = f"pass {self.done} of {self.passes}" if self.done else "counting words"
        self.done += 1
        lines = (line for file in self.files for line in textio.read_lines(file))
        for line in progress(lines, total=self.total, label=label):
            words = line.split()
            sentence = [*words, END] if words else []
            for start in range(0, len(sentence), _MOST_WORDS):
                yield sentence[start : start + _MOST_WORDS]


def train(files: Sequence[Path], settings: Training, needed: Sequence[str] = ()) -> Any:
    """Train vectors.

    Args:
        files: of text, one sentence a line, encoded as the data that the vectors are for.
        settings: of the training.
        needed: words that must be there; see :func:`find_word`.

    Returns:
        gensim's ``KeyedVectors``, the most frequent words first.

    Raises:
        InputError: if there is no text, a needed word is not in it, or gensim is not installed.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError as error:
        raise InputError(
            "word vectors are trained by gensim, which is not installed: pip install 'lmfusion[static]'."
        ) from error
    logging.getLogger("gensim").setLevel(logging.ERROR)  # it warns of every small text
    model = Word2Vec(
        sg=int(settings.mode == "skipgram"),
        hs=int(settings.loss == "hs"),
        negative=settings.negative if settings.loss == "ns" else 0,
        vector_size=settings.size,
        window=settings.window,
        sample=settings.sample,
        min_count=settings.min_count,
        alpha=settings.lr,
        min_alpha=LAST_RATE,
        seed=settings.seed,
        workers=settings.workers,
    )
    sentences = Sentences(files, settings.epochs)
    model.build_vocab(sentences)
    if not len(model.wv):
        raise InputError(f"{', '.join(map(str, files))}: no word occurs {settings.min_count} times. Is there any text?")
    for word in needed:
        find_word(model.wv, word)
    model.train(sentences, total_examples=model.corpus_count, epochs=settings.epochs)
    return model.wv


def find_word(vectors: Any, word: str) -> str:
    """Return a word as it stands among the vectors, perhaps with the mark of sentencepiece in front.

    Raises:
        InputError: if it has no vector.
    """
    found = next((form for form in (word, f"\u2581{word}") if form in vectors.key_to_index), None)
    if found is None:
        raise InputError(f"{word!r} has no vector: it is none of the {len(vectors):,} words of the text.")
    return found


def common_words(vectors: Any) -> list[str]:
    """Return a few words from the more frequent ones, to look at their neighbours."""
    return [vectors.index_to_key[rank] for rank in _RANKS if rank < len(vectors)]


def check_output(path: Path) -> None:
    """Refuse a file that could not be written, or not be read again, before hours are spent on what goes into it.

    Raises:
        InputError: it is a folder, or its ending asks for a compression that ``--src-lm`` does not read.
        OSError: it cannot be written.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder: give the name of a file in it.")
    if path.suffix in _OTHER_COMPRESSION:
        raise InputError(f"{path}: files that end in {path.suffix} are not read again. End it in .gz, .xz or neither.")
    partial = _partial(path)
    partial.touch()
    partial.unlink()


def _partial(path: Path) -> Path:
    check_name(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f"lmfusion.partial.{path.name}")  # in front, for gensim compresses by the ending


def save(vectors: Any, path: Path, *, binary: bool) -> None:
    """Write vectors in word2vec's format; the file gets its name when it is whole.

    Args:
        vectors: gensim's ``KeyedVectors``.
        path: of the file; one that ends in ``.gz`` or ``.xz`` is compressed.
        binary: write the binary format, exact and smaller.

    Raises:
        CannotWriteError: naming the file, if the disk is full.
    """
    from lmfusion.checkpoint.atomic_files import CannotWriteError

    partial = _partial(path)
    try:
        vectors.save_word2vec_format(str(partial), binary=binary)
        partial.replace(path)
    except OSError as error:  # gensim's names no file
        raise CannotWriteError(path, error) from error
    finally:
        partial.unlink(missing_ok=True)
