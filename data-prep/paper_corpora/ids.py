"""BPE symbols -> fairseq's binary data, and a check that no line was lost on the way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lmfusion.text import binarize, textio
from paper_corpora.stages import Outcome
from paper_corpora.workspace import Workspace

MAX_PAIR_SYMBOLS = 1022
"""fairseq's transformers have 1024 positions."""
MAX_SENTENCE_SYMBOLS = 250
"""What language models are trained on, as in prepare.py."""


@dataclass(frozen=True)
class Pairs:
    """Encoded parallel text of one corpus."""

    langs: tuple[str, str]
    train: tuple[Path, Path]
    valid: Path
    """Without the language."""
    tests: list[Path]
    """Without the language: fairseq calls them test, test1, test2 …"""
    dictionaries: tuple[Path, Path]


def binarize_pairs(workspace: Workspace, work: Path, pairs: Pairs, lines: int | None, log: Path) -> Outcome:
    """Binarize the first `lines` training pairs, valid and the test sets into `work`.

    Raises:
        DataError: too few pairs; fairseq-preprocess failed or lost lines.
    """
    source, target = pairs.langs
    train = work / f"train.{source}", work / f"train.{target}"
    counts = binarize.filter_pairs(pairs.train, train, lines, MAX_PAIR_SYMBOLS, 0)
    flags = ["-s", source, "-t", target, "--trainpref", str(work / "train"), "--validpref", str(pairs.valid)]
    flags += ["--testpref", ",".join(map(str, pairs.tests))]
    flags += ["--srcdict", str(pairs.dictionaries[0]), "--tgtdict", str(pairs.dictionaries[1])]
    flags += ["--workers", str(workspace.workers or binarize.workers_for(train[0]))]
    files = binarize.fairseq_preprocess(work, flags, log)
    expected = {path.name: textio.count_lines(path) for path in train}
    for prefix in (pairs.valid, *pairs.tests):
        sides = (prefix.with_name(f"{prefix.name}.{lang}") for lang in pairs.langs)
        expected.update((path.name, textio.count_lines(path)) for path in sides)
    check_counts(expected, files, log)
    for path in train:
        path.unlink()
    return outcome(counts, files)


def binarize_sentences(
    workspace: Workspace, work: Path, texts: dict[str, list[Path]], dictionary: Path, log: Path
) -> Outcome:
    """Binarize the text of each split into `work` for a language model.

    Raises:
        DataError: no sentence is left; fairseq-preprocess failed or lost lines.
    """
    flags, expected, counts = ["--only-source", "--srcdict", str(dictionary)], {}, {}
    for split, paths in texts.items():
        counts[split] = binarize.filter_sentences(paths, work / split, MAX_SENTENCE_SYMBOLS)
        expected[split] = counts[split]["kept"]
        flags += [f"--{split}pref", str(work / split)]
    flags += ["--workers", str(workspace.workers or binarize.workers_for(work / "train"))]
    files = binarize.fairseq_preprocess(work, flags, log)
    check_counts(expected, files, log)
    for split in texts:
        (work / split).unlink()
    return outcome(counts["train"], files)


def check_counts(expected: dict[str, int], files: dict[str, dict[str, float]], log: Path) -> None:
    """Check that fairseq binarized every line.

    Raises:
        DataError: it did not.
    """
    for name, number in expected.items():
        found = files.get(name, {}).get("sentences")
        if found != number:
            raise textio.DataError(
                f"fairseq-preprocess made {found} sentences of {number:,} in {name} (all it said: {log})"
            )


def outcome(counts: dict[str, int], files: dict[str, dict[str, float]]) -> Outcome:
    """What came of the training text, and how much of all text the dictionary does not know."""
    worst = max(file["unknown_percent"] for file in files.values())
    train = ", ".join(f"{word.replace('_', ' ')} {number:,}" for word, number in sorted(counts.items()))
    return Outcome(f"train {train}; at most {worst}% unknown symbols", {"train": counts, "files": files})
