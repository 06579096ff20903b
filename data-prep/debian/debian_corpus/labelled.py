"""Labelled sentences and pairs of package descriptions: section, matching synopsis, overlap of debtags.

- *section*: a description's group of archive sections, from its first sentences;
- *synopsis*: does this synopsis belong to this description? A wrong one is the nearest to the right one of 200;
- *similarity*: 5 times the Jaccard similarity of two packages' debtags, from their synopses, over the whole range.

Splits are those of families as in :mod:`pools`, so that no text of a held-out family is seen in training, here or by a
language model that was trained on the corpus.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from .clean import usable
from .entries import Entry, descriptions, family, sources_by_package, stanzas
from .neardup import STRICT, resembled
from .pools import SEED, SPLITS, assign, rank
from .segment import sentences
from .text import count_words, key, words
from .units import synopsis_pair

GROUPS = {
    "development": "devel libdevel debug vcs",
    "libraries": "libs oldlibs introspection",
    "languages": "python perl ruby javascript java haskell golang rust php lisp ocaml gnu-r interpreters",
    "text": "doc localization text tex editors fonts",
    "science": "science math electronics hamradio education",
    "media": "graphics sound video games",
    "network": "net web mail news httpd comm database",
    "system": "admin utils kernel shells otherosfs embedded misc",
}
GROUP_OF = {section: group for group, sections in GROUPS.items() for section in sections.split()}
SIZES = {"train": 6000, "valid": 960, "test": 960}  # of each task
MAX_WORDS = 40  # of a description: its first sentences
MAX_PER_FAMILY = 6
CANDIDATES = 200  # among which the nearest wrong synopsis is looked for
BANDS = 5  # of similarity, with as many pairs each
HIGHEST = 5.0
_NO_TAGS = ("special::",)  # of the tags' own bookkeeping

Row = tuple[str, ...]


@dataclass(frozen=True)
class Described:
    """A description with what is known of its packages."""

    families: tuple[str, ...]
    split: str
    synopsis: str
    text: str
    group: str | None
    tags: frozenset[str] = field(default_factory=frozenset)


def described(packages: str, english: str) -> list[Described]:
    """All descriptions of usable text, in an order that depends on the texts alone."""
    sources = sources_by_package(packages)
    sections, tags = _facts(packages)
    lines: dict[str, list[str]] = {}
    members: dict[str, set[str]] = defaultdict(set)
    for package, md5, text in descriptions(english, "en"):
        lines.setdefault(md5, text)
        members[md5].add(package)
    entries = [
        Entry(md5, tuple(sorted({family(sources.get(name, name)) for name in members[md5]})), text[0], tuple(text[1:]))
        for md5, text in lines.items()
    ]
    splits = assign(entries)
    found: dict[str, Described] = {}
    for entry in sorted(entries, key=lambda entry: rank(entry.md5)):
        names = sorted(members[entry.md5])
        groups = {GROUP_OF.get(sections.get(name, "")) for name in names}
        pair = synopsis_pair(entry)
        text = "" if pair is None else _beginning(pair[0])
        if pair is not None and usable(text):
            known = frozenset(tag for name in names for tag in tags.get(name, ()))
            group = groups.pop() if len(groups) == 1 else None
            item = Described(entry.families, splits[entry.md5], pair[1], text, group, known)
            found.setdefault(key(text), item)
    return list(found.values())


def _facts(packages: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Section (without its component) and debtags of each package."""
    sections: dict[str, str] = {}
    tags: dict[str, list[str]] = {}
    for fields in stanzas(packages):
        if "Package" in fields:
            name = fields["Package"][0]
            sections[name] = fields.get("Section", [""])[0].rsplit("/", 1)[-1]
            given = " ".join(fields.get("Tag", [])).replace(",", " ").split()
            tags[name] = [tag for tag in given if not tag.startswith(_NO_TAGS)]
    return sections, tags


def _beginning(description: str) -> str:
    """The first sentences of a description, as many as fit."""
    kept: list[str] = []
    for sentence in sentences(description, "en"):
        if kept and count_words(" ".join([*kept, sentence])) > MAX_WORDS:
            break
        kept.append(sentence)
    text = " ".join(kept)
    return text if count_words(text) <= MAX_WORDS else ""


def sections(items: Sequence[Described], size: int) -> Iterator[tuple[Row, tuple[str, ...]]]:
    """(text, group), equally many of each group as far as there are."""
    drawn: Counter[str] = Counter()
    homes: Counter[str] = Counter()
    for item in items:
        home = item.families[0]
        if item.group and drawn[item.group] < size // len(GROUPS) and homes[home] < MAX_PER_FAMILY:
            drawn[item.group] += 1
            homes[home] += 1
            yield (item.text, item.group), (item.text,)


def synopses(items: Sequence[Described], size: int, random: Random) -> Iterator[tuple[Row, tuple[str, ...]]]:
    """(synopsis, text, 1 or 0): every second one wrong, by the nearest of some synopses of other families."""
    homes: Counter[str] = Counter()
    count = 0
    for item in items:
        home = item.families[0]
        if count == size or homes[home] >= MAX_PER_FAMILY:
            continue
        homes[home] += 1
        right = count % 2 == 0
        shown = item.synopsis if right else _nearest(item, random.choices(items, k=CANDIDATES))
        if shown:
            count += 1
            yield (shown, item.text, str(int(right))), (shown, item.text)


def _nearest(item: Described, others: Iterable[Described]) -> str:
    own = set(words(item.synopsis))
    foreign = [
        other
        for other in others
        if not set(other.families) & set(item.families) and key(other.synopsis) != key(item.synopsis)
    ]
    best = max(foreign, key=lambda other: (_jaccard(own, set(words(other.synopsis))), other.synopsis), default=None)
    return "" if best is None else best.synopsis


def similarities(items: Sequence[Described], size: int, random: Random) -> Iterator[tuple[Row, tuple[str, ...]]]:
    """(synopsis, synopsis, 0.00 to 5.00): pairs of different families, equally many of each band of similarity."""
    tagged = [item for item in items if len(item.tags) > 2]
    by_tag: dict[str, list[Described]] = defaultdict(list)
    for item in tagged:
        for tag in sorted(item.tags):
            by_tag[tag].append(item)
    drawn: Counter[int] = Counter()
    seen: set[tuple[str, ...]] = set()
    homes: Counter[str] = Counter()
    for item in [*tagged, *tagged]:
        near = by_tag[min(sorted(item.tags), key=lambda tag: len(by_tag[tag]))]
        shared = by_tag[random.choice(sorted(item.tags))]
        for other in [*random.choices(near, k=20), *random.choices(shared, k=10), *random.choices(tagged, k=3)]:
            score = HIGHEST * _jaccard(set(item.tags), set(other.tags))
            band = min(int(score), BANDS - 1)
            name = tuple(sorted((key(item.synopsis), key(other.synopsis))))
            pair_homes = (item.families[0], other.families[0])
            if (
                drawn[band] < size // BANDS
                and name not in seen
                and name[0] != name[1]
                and not set(item.families) & set(other.families)
                and all(homes[home] < 3 * MAX_PER_FAMILY for home in pair_homes)
            ):
                drawn[band] += 1
                seen.add(name)
                homes.update(pair_homes)
                yield (item.synopsis, other.synopsis, f"{score:.2f}"), (item.synopsis, other.synopsis)
                break


def _jaccard(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0


HEADERS = {
    "section": ("sentence", "label"),
    "synopsis": ("sentence1", "sentence2", "is_match"),
    "similarity": ("sentence1", "sentence2", "similarity"),
}


def files(packages: str, english: str) -> tuple[dict[str, list[str]], dict[str, int]]:
    """All files, name -> lines, and how many held-out rows were dropped for a near-duplicate in training text."""
    items = described(packages, english)
    rows: dict[tuple[str, str], list[tuple[Row, tuple[str, ...]]]] = {}
    for split in SPLITS:
        chosen = [item for item in items if item.split == split]
        size = SIZES[split]
        random = Random(f"{SEED} {split}")
        rows["section", split] = list(sections(chosen, size))
        rows["synopsis", split] = list(synopses(chosen, size, random))
        rows["similarity", split] = list(similarities(chosen, size, random))
    dropped: dict[str, int] = {}
    known = {text for task in HEADERS for _, texts in rows[task, "train"] for text in texts}
    for split in ("test", "valid"):  # a test text may not be in validation text either
        held = {text for task in HEADERS for _, texts in rows[task, split] for text in texts}
        like = resembled(sorted(held), sorted(known), "en", STRICT)
        for task in HEADERS:
            clean = [row for row in rows[task, split] if not any(text in like for text in row[1])]
            dropped[f"{task}.{split}"] = len(rows[task, split]) - len(clean)
            rows[task, split] = clean
        known |= held
    made = {}
    for (task, split), found in rows.items():
        lines = sorted(("\t".join(row) for row, _ in found), key=rank)
        made[f"{task}-{split}.tsv"] = ["\t".join(HEADERS[task]), *lines]
    return made, dropped
