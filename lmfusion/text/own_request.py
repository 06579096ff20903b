"""What a person gives to `lmfusion data`: their text and how it is to be split, checked before anything is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lmfusion.errors import why_no_file
from lmfusion.text import corpus, textio
from lmfusion.text.formats import JsonPairs, Pairs, PlainPairs, TablePairs
from lmfusion.text.prepared import NAME
from lmfusion.text.textio import DataError
from lmfusion.text.tmx import TmxPairs


@dataclass(frozen=True)
class Request:
    """Description of what a person gives: the text, by one of pairs, tsv, jsonl and tmx, and how it is split.

    Attributes:
        source: language of the source side, or its name where both sides are in one language.
        target: likewise.
        pairs: source and target file, line by line.
        tsv: a table with two columns.
        jsonl: a file with one JSON object a line.
        tmx: a translation memory.
        fields: names or numbers of the two columns, or the two keys.
        text: monolingual files; each ends in its language: plain.en, plain.en.gz.
        held_out: how many pairs valid and test get each, where they are not given.
        seed: another one holds out other pairs.
        text_language: the language of both sides, where there is one.
        valid: source and target file of a validation set that exists.
        test: likewise of a test set.
    """

    source: str
    target: str
    pairs: tuple[Path, Path] | None
    tsv: Path | None
    jsonl: Path | None
    tmx: Path | None
    fields: tuple[str, str] | None
    text: tuple[Path, ...]
    held_out: int
    seed: int
    text_language: str | None
    valid: tuple[Path, Path] | None
    test: tuple[Path, Path] | None

    @property
    def sides(self) -> tuple[str, str]:
        """Return the endings of the source's and the target's files."""
        return self.source, self.target

    @property
    def given(self) -> dict[str, PlainPairs]:
        """Return the held-out sets that exist, by split."""
        sets = {"test": self.test, "valid": self.valid}
        languages = self._languages
        return {split: PlainPairs(*paths, languages=languages) for split, paths in sets.items() if paths is not None}

    @property
    def languages(self) -> tuple[str, ...]:
        """Return the languages of the language models' text."""
        return (self.text_language,) if self.text_language else self.sides

    @property
    def _languages(self) -> tuple[str, str]:
        """Return the languages of source and target."""
        return (self.text_language, self.text_language) if self.text_language else self.sides

    def reader(self) -> Pairs:
        """Return the reader of the pairs.

        Raises:
            DataError: not one kind of text is given, but none or several.
        """
        kinds = {"--pairs": self.pairs, "--tsv": self.tsv, "--jsonl": self.jsonl, "--tmx": self.tmx}
        asked = [flag for flag, value in kinds.items() if value is not None]
        if len(asked) != 1:
            raise DataError(f"{' and '.join(asked) or 'no text'} given: give one of {', '.join(kinds)}.")
        if self.tsv is not None:
            return TablePairs(self.tsv, self.fields, self.sides)
        if self.jsonl is not None:
            return JsonPairs(self.jsonl, self.fields or self.sides, self._languages)
        if self.fields is not None:
            raise DataError(f"--fields goes with --tsv and --jsonl, not with {asked[0]}.")
        if self.tmx is not None:
            return TmxPairs(self.tmx, self.sides)
        assert self.pairs is not None, "one is given"
        return PlainPairs(*self.pairs, languages=self._languages)

    def inputs(self) -> list[Path]:
        """Return all files that are read, each once."""
        held_out = [path for pairs in self.given.values() for path in pairs.paths]
        return list(dict.fromkeys([*self.reader().paths, *held_out, *self.text]))

    def texts(self) -> dict[str, list[Path]]:
        """Return the monolingual files of each language; none where the pairs' own side serves.

        Raises:
            DataError: a file's name does not say its language.
        """
        found: dict[str, list[Path]] = {language: [] for language in self.languages}
        for path in self.text:
            language = self.text_language or ending(path)
            if language not in found:
                raise DataError(
                    f"{path}: which language is it? Its name must end in {' or '.join(f'.{x}' for x in found)}."
                )
            found[language].append(path)
        return found

    def check(self, folder: Path) -> None:
        """Refuse what cannot be meant, before anything is read or written.

        Raises:
            DataError: naming the flag and the fix.
        """
        for name in (*self.sides, *self.languages):
            if not NAME.fullmatch(name):
                raise DataError(f"{name!r} cannot name a side or a language: letters, digits, - and _ can.")
        if self.source == self.target:
            raise DataError(f"source and target are both {self.source!r}: give two names, and --text-lang for both.")
        if self.held_out < 1 and len(self.given) < 2:
            raise DataError(f"--held-out {self.held_out}: give how many pairs valid and test get each, e.g. 1000.")
        for flag, pair in (("--pairs", self.pairs), ("--valid", self.valid), ("--test", self.test)):
            _check_two_files(flag, pair, self.sides)
        written = [f"{split}.{side}" for split in corpus.BITEXT_SPLITS for side in self.sides]
        written += [f"mono.{split}.{language}" for split in corpus.MONO_SPLITS for language in self.languages]
        inputs = self.inputs()
        for name in written:
            textio.refuse_overwriting(folder / name, inputs)
        for path in inputs:
            if not path.is_file():
                raise DataError(f"{path}: {why_no_file(path)}. Give the path of a regular file.")


def ending(path: Path) -> str:
    """Return what ends a file's name, compression aside: its language."""
    return (path.with_suffix("") if path.suffix in corpus.SUFFIXES[1:] else path).suffix[1:]


def _check_two_files(flag: str, pair: tuple[Path, Path] | None, sides: tuple[str, str]) -> None:
    if pair is None:
        return
    if pair[0].resolve() == pair[1].resolve():
        raise DataError(f"{flag}: {pair[0]} is given for both sides. Give the source file, then the target file.")
    if (ending(pair[0]), ending(pair[1])) == sides[::-1]:
        raise DataError(
            f"{flag} {pair[0]} {pair[1]}: their names say {sides[1]} to {sides[0]}, and {sides[0]} to {sides[1]} is "
            f"asked for. Swap the two files, or the languages."
        )
