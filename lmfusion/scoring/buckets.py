"""Where a system gains: BLEU of the parts of a test set that differ in length, rare words, names and known phrases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import regex
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from lmfusion.errors import InputError
from lmfusion.scoring.bleu import reference_streams
from lmfusion.scoring.bleu_metric import make_metric
from lmfusion.scoring.unicode_words import SPACELESS

LENGTHS = (10, 20, 30)
"""Upper ends of the parts by length, in words of the source."""
SHARED_WORDS = 5
"""Words in a row that make a phrase known to a language model's text."""
RARE = 5
"""A word that the training targets have less often than this is rare."""
LENGTH, RARITY, COPIES, PHRASES = "words in the source", "rare words", "names", "phrases of the LM's text"
_split = Tokenizer13a()
_CHARACTER = regex.compile(rf"[[\p{{L}}\p{{N}}]&&[{SPACELESS}]]\p{{M}}*", regex.V1)


@dataclass(frozen=True)
class Part:
    """The sentences of a test set that are alike in a question.

    Attributes:
        question: what they are divided by.
        name: what is alike.
        lines: their numbers in the test set, from 0.
    """

    question: str
    name: str
    lines: tuple[int, ...]


@dataclass(frozen=True)
class PartScores:
    """BLEU (0..100) of each system on one part."""

    part: Part
    bleu: dict[str, float]


def words(line: str) -> list[str]:
    """Split a line as sacreBLEU's 13a does; where a script has no spaces between words, each character is a word."""
    return str(_split(line if line.isascii() else _CHARACTER.sub(r" \g<0> ", line))).split()


def parts(
    sources: Sequence[str],
    references: Sequence[str],
    *,
    training_targets: Iterable[str] | None = None,
    lm_text: Iterable[str] | None = None,
) -> list[Part]:
    """Divide a test set by each question that can be answered.

    Args:
        sources: raw lines.
        references: as many raw lines.
        training_targets: the target side of the training pairs; without it rare words are not asked for.
        lm_text: what a target language model was trained on; without it phrases are not asked for.

    Raises:
        InputError: the training targets have no words.

    Returns:
        The parts, question by question; together those of a question are the test set. Empty ones are left out.
    """
    targets = [words(line) for line in references]
    found = _divide(LENGTH, [_length_name(len(words(line))) for line in sources], _length_names())
    if training_targets is not None:
        counts = Counter(word for line in training_targets for word in words(line))
        if not counts:
            raise InputError("the target side of the training pairs (--train) has no words: is the file empty?")
        rare = [sum(counts[word] < RARE for word in line) for line in targets]
        names = ("no rare word", "one", "two or more")
        found += _divide(RARITY, [names[min(number, 2)] for number in rare], names)
    copies = ["none in source and reference", "one or more"]
    has = [bool(names_of(source, reference)) for source, reference in zip(sources, references)]
    found += _divide(COPIES, [copies[each] for each in has], copies)
    if lm_text is not None:
        known = _shared_phrases(targets, lm_text)
        kinds = [f"no {SHARED_WORDS} words in a row", f"{SHARED_WORDS} words in a row or more"]
        found += _divide(PHRASES, [kinds[each] for each in known], kinds)
    return found


def names_of(source: str, reference: str) -> set[str]:
    """Return what a translator copies: words with a capital letter, of three letters or more, that stand in both."""
    shared = set(words(source)) & set(words(reference))
    # A word that only begins with a capital may begin a sentence in both languages; two letters are often no name.
    return {word for word in shared if len(word) > 2 and word != word.lower()}


def copied(sources: Sequence[str], references: Sequence[str], hypotheses: Sequence[str]) -> float:
    """Return the share (0..1) of names in source and reference that the hypotheses have, too; NaN without any."""
    found = [
        name in line
        for source, reference, line in zip(sources, references, map(words, hypotheses))
        for name in names_of(source, reference)
    ]
    return float(np.mean(found)) if found else float("nan")


def untranslated(sources: Sequence[str], references: Sequence[str], hypotheses: Sequence[str]) -> float:
    """Return the share (0..1) of a system's words with a letter that the source has and the reference has not.

    NaN where the hypotheses have no such words. Some are right, for references translate freely; a system that copies
    what it cannot translate has more of them than others.
    """
    found = [
        word in source and word not in reference
        for source, reference, line in zip(*(map(words, text) for text in (sources, references, hypotheses)))
        for word in line
        if any(map(str.isalpha, word))
    ]
    return float(np.mean(found)) if found else float("nan")


COPIED, UNTRANSLATED = "names copied", "words left"
"""What is told of a system besides BLEU, in short; :data:`SHARES` has what it is computed by."""
SHARES: Mapping[str, Callable[..., float]] = {COPIED: copied, UNTRANSLATED: untranslated}
SAID: Mapping[str, str] = {
    COPIED: "names in source and reference that are copied",
    UNTRANSLATED: "words that stand in the source and not in the reference",
}


def score(
    divided: Sequence[Part],
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    language_pair: str | None = None,
    tokenizer: str | None = None,
) -> list[PartScores]:
    """Compute corpus BLEU of every system on each part.

    Args:
        divided: of the test set.
        systems: hypotheses by name, one per sentence.
        references: one per sentence.
        language_pair, tokenizer: as :func:`lmfusion.scoring.bleu.score` takes them.

    Raises:
        InputError: if numbers of sentences differ.
    """
    metric: Any = make_metric(language_pair, tokenizer)
    counts = {}
    for name, hypotheses in systems.items():
        streams = reference_streams(hypotheses, references, name)
        counts[name] = np.array(metric._extract_corpus_statistics(hypotheses, streams))
    return [
        PartScores(
            part,
            {
                name: float(metric._compute_score_from_stats(rows[list(part.lines)].sum(0)).score)
                for name, rows in counts.items()
            },
        )
        for part in divided
    ]


def _divide(question: str, names: Sequence[str], order: Sequence[str]) -> list[Part]:
    lines = {name: tuple(number for number, each in enumerate(names) if each == name) for name in order}
    return [Part(question, name, found) for name, found in lines.items() if found]


def _length_names() -> list[str]:
    firsts = [1, *(end + 1 for end in LENGTHS)]
    return [f"{first} to {end}" for first, end in zip(firsts, LENGTHS)] + [f"{firsts[-1]} or more"]


def _length_name(length: int) -> str:
    return _length_names()[sum(length > end for end in LENGTHS)]


def _shared_phrases(targets: Sequence[Sequence[str]], text: Iterable[str]) -> list[bool]:
    """Return for each line whether it has a phrase of the text; the text is read once, and not kept."""
    wanted = {phrase: False for line in targets for phrase in _phrases(line)}
    has_words = False
    for line in text:
        found = words(line)
        has_words |= bool(found)
        for phrase in _phrases(found):
            if phrase in wanted:
                wanted[phrase] = True
    if not has_words:
        raise InputError("--lm-text has no words: give the plain text that the language model learned from.")
    return [any(wanted[phrase] for phrase in _phrases(line)) for line in targets]


def _phrases(line: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(line[at : at + SHARED_WORDS]) for at in range(len(line) - SHARED_WORDS + 1)]
