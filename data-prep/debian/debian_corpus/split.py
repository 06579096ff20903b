"""Train / valid / test by package family, and nothing held out left in training text.

1. A family's name decides, by a hash, where its packages go: the same in every language and in every later suite.
2. Held-out candidates that resemble text of several training families are boilerplate ("This package contains the
   documentation."): nobody should be tested on them, and training would miss them. They are left out.
3. Test and validation sets are drawn from the rest; validation from what does not resemble the test set either.
4. Whatever in training text, of any of the corpora, resembles a drawn text is removed.
5. What was drawn is compared again with all training text (and validation with the test set), by stricter
   thresholds, and what still resembles any of it is dropped from the held-out side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from .leaks import Leaks
from .neardup import REMOVE, STRICT, HeldOut, Thresholds, held_out_atoms, matching_lines, resembled
from .pools import TASKS, Pool, Pools, Unit, rank, side_languages
from .text import words

MAX_PER_FAMILY = 12  # units of one family in a held-out set
SIZES = {  # monolingual text is for language models: its held-out part is for perplexity, one set is enough
    "valid": {"bitext": 1250, "synopsis": 1250, "mono.en": 2000, "mono.target": 2000},
    "test": {"bitext": 1250, "synopsis": 1250},
}
MIN_WORDS = 3  # of either side of a held-out unit

Corpus = dict[str, dict[str, list[Unit]]]  # task -> split -> units
Candidates = dict[str, list[tuple[Unit, str]]]  # task -> units in drawing order, each with a family
Lines = dict[str, set[str]]  # language -> lines


def make(all_pools: Pools, lang: str) -> Corpus:
    """Draw the held-out sets and take their near-duplicates out of the training text."""
    test, valid = (_candidates(all_pools, split) for split in ("test", "valid"))
    leaks = {
        language: Leaks(
            {*_lines(test, lang, language), *_lines(valid, lang, language)},
            _train_lines(all_pools, lang, language),
            language,
        )
        for language in ("en", lang)
    }

    def original(unit: Unit, task: str) -> bool:
        return not any(leaks[language].boilerplate(text) for text, language in _sides(unit, task, lang))

    drawn_test = _draw(test, SIZES["test"], original)
    like_test = _resembling(drawn_test, valid, lang, REMOVE)

    def fresh(unit: Unit, task: str) -> bool:
        return original(unit, task) and not _touches(unit, task, lang, like_test)

    drawn_valid = _draw(valid, SIZES["valid"], fresh)
    like_held_out = {
        language: leaks[language].lines_like(
            {*_lines(drawn_test, lang, language), *_lines(drawn_valid, lang, language)}
        )
        for language in leaks
    }
    train = {
        task: [unit for unit in _train(all_pools, task) if not _touches(unit, task, lang, like_held_out)]
        for task in TASKS
    }
    return _clean(train, drawn_valid, drawn_test, lang)


def _clean(train: dict[str, list[Unit]], valid: Candidates, test: Candidates, lang: str) -> Corpus:
    """The corpus, without the held-out units that resemble training text by the stricter thresholds."""
    corpus: Corpus = {task: {"train": units} for task, units in train.items()}
    known: dict[str, list[str]] = {}  # what the held-out set must not resemble, by language
    for language in ("en", lang):
        pairs = (side for task in TASKS for unit in train[task] for side in _sides(unit, task, lang))
        known[language] = [text for text, spoken in pairs if spoken == language]
    for split, drawn in (("test", test), ("valid", valid)):
        like_known: Lines = {
            language: set(resembled(_lines(drawn, lang, language), known[language], language, STRICT))
            for language in known
        }
        if split == "valid":  # containment has a direction: no test text may be quoted in validation text either
            for language, texts in _resembling(test, valid, lang, STRICT).items():
                like_known[language] |= texts
        for task, units in drawn.items():
            corpus[task][split] = [unit for unit, _ in units if not _touches(unit, task, lang, like_known)]
            for unit in corpus[task][split]:
                for text, spoken in _sides(unit, task, lang):
                    known[spoken].append(text)
    return corpus


def _sides(unit: Unit, task: str, lang: str) -> Iterator[tuple[str, str]]:
    """Each text of a unit with its language."""
    return zip(unit, side_languages(task, lang))


def _touches(unit: Unit, task: str, lang: str, lines: Lines) -> bool:
    """Whether any text of the unit is among `lines`."""
    return any(text in lines[language] for text, language in _sides(unit, task, lang))


def _lines(candidates: Candidates, lang: str, language: str) -> Iterator[str]:
    """The candidates' texts in one language."""
    for task, units in candidates.items():
        for unit, _ in units:
            yield from (text for text, spoken in _sides(unit, task, lang) if spoken == language)


def _train_lines(all_pools: Pools, lang: str, language: str) -> dict[str, set[str]]:
    """Every training text in one language -> the families it occurs in."""
    lines: dict[str, set[str]] = {}
    for task in TASKS:
        pool = all_pools[task]["train"]
        for name, unit in pool.units.items():
            for text, spoken in _sides(unit, task, lang):
                if spoken == language:
                    lines.setdefault(text, set()).update(pool.families[name])
    return lines


def _candidates(all_pools: Pools, split: str) -> Candidates:
    """Units that could be held out, in a random but repeatable order; no more of them than may be needed."""
    return {task: _ranked(all_pools[task][split])[: 6 * size] for task, size in SIZES[split].items()}


def _ranked(pool: Pool) -> list[tuple[Unit, str]]:
    fit = [name for name, unit in pool.units.items() if all(len(words(text)) >= MIN_WORDS for text in unit)]
    fit.sort(key=lambda name: rank("\n".join(name)))
    return [(pool.units[name], min(pool.families[name])) for name in fit]


def _draw(candidates: Candidates, sizes: dict[str, int], accept: Callable[[Unit, str], bool]) -> Candidates:
    """Of each task the first acceptable candidates, not too many of one family."""
    drawn: Candidates = {}
    for task, units in candidates.items():
        chosen: list[tuple[Unit, str]] = []
        taken: Counter[str] = Counter()
        for unit, home in units:
            if len(chosen) < sizes[task] and taken[home] < MAX_PER_FAMILY and accept(unit, task):
                chosen.append((unit, home))
                taken[home] += 1
        drawn[task] = chosen
    return drawn


def _resembling(drawn: Candidates, others: Candidates, lang: str, thresholds: Thresholds) -> Lines:
    """Those texts of `others` that resemble a drawn text."""
    found: Lines = {}
    for language in ("en", lang):
        texts = {atom for line in _lines(drawn, lang, language) for atom in held_out_atoms(line, language, thresholds)}
        asked: Iterable[str] = dict.fromkeys(_lines(others, lang, language))
        found[language] = set(matching_lines(HeldOut(sorted(texts), thresholds), asked, language))
    return found


def _train(all_pools: Pools, task: str) -> list[Unit]:
    """A task's training units, shuffled by their hash: any first N lines are a random sample."""
    return sorted(all_pools[task]["train"].units.values(), key=lambda unit: rank("\n".join(unit)))
