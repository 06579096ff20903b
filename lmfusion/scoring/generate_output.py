"""What fairseq-generate wrote (its log, or generate-test.txt of --results-path), as sentences in the order of the data.

It prints, for each sentence and in the order of its batches, lines that start with a letter and the sentence's
number: S-7 source, T-7 target, H-7 hypothesis, D-7 the hypothesis after fairseq's --bpe and --tokenizer (the same
text where these were not given). Hypotheses and detokenized lines carry a score before the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Callable

from lmfusion.errors import InputError
from lmfusion.scoring.model_pieces import piece_joiner
from lmfusion.scoring.text_files import PathLike, each_line

_LINE = re.compile(r"([STHD])-(\d{1,18})\t(.*)", re.DOTALL)
_CLOSING = re.compile(r"^Generate .* with beam=|\| Translated [\d,]+ sentences|\| Total time: ")
_SENTENCEPIECE_MARK = "\u2581"
_UNKNOWN_IN_TARGET = "<<unk>>"
_LETTERS_AROUND_SPACE = re.compile(r"[A-Za-z] [A-Za-z]")

Lines = dict[str, dict[int, str]]
"""The text of each kind of line (S, T, H, D) by sentence."""


@dataclass(frozen=True)
class GenerateOutput:
    """Sentences in the order of the data, without BPE; item k of each list belongs to sentence ids[k]."""

    ids: list[int]
    sources: list[str]
    hypotheses: list[str]
    references: list[str]
    """The file's own targets; empty where it has none."""


def read(path: PathLike, detokenize: str | None = None) -> GenerateOutput:
    """Read the best hypothesis of each sentence, with its source and target.

    Args:
        path: the file that fairseq-generate (or fairseq-interactive) wrote or printed.
        detokenize: language code for undoing Moses tokenization; None leaves the text as it is.

    Returns:
        Texts without BPE, in the order of the data.

    Raises:
        InputError: the file cannot be read; holds no hypotheses, two generations or an interrupted one; its text has
            lost its spaces; or its hypotheses are detokenized already and ``detokenize`` asks for it again.
    """
    lines = _collect(path)
    _check_finished(path, lines)
    lines = _without_bpe(lines, path)
    ids = sorted(lines["H"])
    finish = _detokenizer(detokenize) if detokenize else str
    if detokenize and _fairseq_detokenized(lines):
        raise InputError(
            f"{path} is detokenized already: fairseq-generate was run with --tokenizer. Leave out --detokenize."
        )
    return GenerateOutput(
        ids=ids,
        sources=[finish(lines["S"][i]) for i in ids if i in lines["S"]],
        hypotheses=[finish(lines["D"][i]) for i in ids],
        references=[finish(lines["T"][i]) for i in ids if i in lines["T"]],
    )


def trusted_references(path: PathLike, detokenize: str | None = None) -> list[str]:
    """Read the targets in fairseq-generate's output, if they are what the reference text was.

    Args:
        path: the file that fairseq-generate wrote or printed.
        detokenize: language code for undoing Moses tokenization; None leaves the text as it is.

    Returns:
        One text per sentence, in the order of the data.

    Raises:
        InputError: there are none, or they have lost words to <unk>, or they are still tokenized where the hypotheses
            are not. Each time the reference has to come from its own file.
    """
    lines = _collect(path)
    ids = sorted(lines["H"])
    fix = "Give the original text with --ref."
    if any(i not in lines["T"] for i in ids):
        raise InputError(f"{path} has no targets (T- lines) for some of its sentences. {fix}")
    unknown = [i for i in ids if _UNKNOWN_IN_TARGET in lines["T"][i]]
    if unknown:
        raise InputError(
            f"{path}: {len(unknown)} of {len(ids)} targets (the first is T-{unknown[0]}) hold {_UNKNOWN_IN_TARGET} in "
            f"place of words that the dictionary lacks, so they are not the reference text. {fix}"
        )
    if _fairseq_detokenized(_without_bpe(lines, path)):
        raise InputError(f"{path}: fairseq-generate detokenized the hypotheses, but not the targets. {fix}")
    return read(path, detokenize).references


def looks_like_generate_output(lines: Sequence[str]) -> bool:
    """Tell whether these lines are fairseq-generate's rather than plain text: both H- and D- lines are among them."""
    kinds = {match.group(1) for match in map(_LINE.fullmatch, lines) if match}
    return {"H", "D"} <= kinds


def remove_bpe(text: str) -> str:
    """Join a text's sentencepiece or subword-nmt pieces; return other text as it is."""
    if _SENTENCEPIECE_MARK in text:
        return _join_sentencepiece(text)
    return f"{text} ".replace("@@ ", "").rstrip(" ")


def _join_sentencepiece(text: str) -> str:
    return text.replace(" ", "").replace(_SENTENCEPIECE_MARK, " ").strip()


def _collect(path: PathLike) -> Lines:
    """Return the text of each kind of line by sentence; of an n-best list, the first hypothesis, the best one."""
    texts: Lines = {"S": {}, "T": {}, "H": {}, "D": {}}
    for line in each_line(path):
        match = _LINE.fullmatch(line)
        if not match:
            continue  # fairseq's own log, P- lines
        kind, sentence, text = match.group(1), int(match.group(2)), match.group(3)
        if kind == "S" and sentence in texts["S"]:
            raise InputError(f"{path} holds more than one generation: S-{sentence} is there twice. Keep only one.")
        if kind in "HD":
            text = text.partition("\t")[2]
        texts[kind].setdefault(sentence, text)
    return texts


def _check_finished(path: PathLike, lines: Lines) -> None:
    if not lines["H"]:
        raise InputError(
            f"{path} has no hypotheses (H- lines). It has to be what fairseq-generate printed, without --quiet, or the "
            "file generate-*.txt that it wrote to --results-path."
        )
    unfinished = sorted((set(lines["S"]) | set(lines["H"])) - set(lines["D"]))
    if unfinished:
        raise InputError(
            f"{path} stops before sentence {unfinished[0]} is complete (no D-{unfinished[0]} line): the generation was "
            "interrupted. Run fairseq-generate again."
        )
    absent = next(number for number in range(len(lines["H"]) + 1) if number not in lines["H"])
    if absent < len(lines["H"]) and not any(map(_CLOSING.search, each_line(path))):
        raise InputError(
            f"{path} has no sentence {absent} (no H-{absent} line), but later ones, and no closing line (Generate … "
            "with beam=…): the generation was interrupted. Run fairseq-generate again, or keep all of its output."
        )


def _without_bpe(lines: Lines, path: PathLike) -> Lines:
    """Return the same lines with their pieces joined.

    Whether they are sentencepiece's is asked of all lines together: a model that has learned little may well print
    sentences without a single piece that starts a word, and "e e" alone could be two words.
    """
    source, target = list(lines["S"].values()), [*lines["T"].values(), *lines["H"].values()]
    join_source, join_target = piece_joiner(source) or _joiner(source), _joiner(target)
    if not lines["T"] and not any("@@ " in text for text in target):
        join_target = _joiner(source + target)  # fairseq-interactive, which has no targets
    decoded = any(lines["D"][i] != text for i, text in lines["H"].items())
    joined = {
        "S": {i: join_source(text) for i, text in lines["S"].items()},
        "T": {i: join_target(text) for i, text in lines["T"].items()},
        "H": {i: join_target(text) for i, text in lines["H"].items()},
        "D": {i: (remove_bpe if decoded else join_target)(text) for i, text in lines["D"].items()},
    }
    _check_spaces(path, joined)
    return joined


def _joiner(texts: Iterable[str]) -> Callable[[str], str]:
    return _join_sentencepiece if any(_SENTENCEPIECE_MARK in text for text in texts) else remove_bpe


def _check_spaces(path: PathLike, lines: Lines) -> None:
    """Find text decoded twice.

    fairseq decodes source and target as it does hypotheses: where they have spaces, hypotheses without any are what a
    model that has learned little prints.
    """
    if any(_LETTERS_AROUND_SPACE.search(text) for kind in "ST" for text in lines[kind].values()):
        return
    spaced = [(h, lines["D"][i]) for i, h in lines["H"].items() if _LETTERS_AROUND_SPACE.search(h)]
    if spaced and all(d == h.replace(" ", "") for h, d in spaced):
        raise InputError(
            f"{path}: the text of its D- lines has no spaces. That happens when fairseq-generate is given both --bpe "
            "and --remove-bpe (--post-process); run it again with only one of them."
        )


def _fairseq_detokenized(lines: Lines) -> bool:
    """Tell whether fairseq did more to a hypothesis than removing its BPE; the lines are without it."""
    return any(text.split() != lines["D"][i].split() for i, text in lines["H"].items())


def _detokenizer(language: str) -> Callable[[str], str]:
    from sacremoses import MosesDetokenizer

    moses = MosesDetokenizer(lang=language)
    return lambda text: str(moses.detokenize(text.split()))
