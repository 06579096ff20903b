"""Lists of irregular words for ROUGE, which ROUGE-1.5.5.pl reads from a data base of WordNet's exceptions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from lmfusion.errors import InputError
from lmfusion.scoring.text_files import PathLike, read_lines


def read_exceptions(paths: Sequence[PathLike]) -> dict[str, str]:
    """Read base forms by irregular form, from files in WordNet's format: both words on a line, the irregular one first.

    Args:
        paths: of the files. Where two lines have the same irregular form, the last one counts.

    Raises:
        InputError: a file cannot be read, or a line has no two words.
    """
    exceptions = {}
    for path in paths:
        for number, line in enumerate(read_lines(path), start=1):
            words = line.split()
            if len(words) < 2:
                raise InputError(
                    f"{path}, line {number}, has no two words. Each line of a list of exceptions (WordNet's noun.exc "
                    "and so on) holds an irregular form and its base form."
                )
            exceptions[words[0]] = words[1]
    return exceptions


def fingerprint(exceptions: Mapping[str, str]) -> str:
    """Return a short name for a list of exceptions: their number and the start of a hash; "none" without any."""
    if not exceptions:
        return "none"
    text = "".join(f"{irregular} {base}\n" for irregular, base in sorted(exceptions.items()))
    return f"{len(exceptions)}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
