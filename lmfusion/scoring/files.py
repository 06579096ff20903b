"""A system's hypotheses and their references from files, with errors that name the files."""

from __future__ import annotations

from collections.abc import Sequence

from lmfusion.errors import InputError
from lmfusion.scoring import generate_output, named_test_sets
from lmfusion.scoring.text_files import PathLike, read_lines


def read_system(path: PathLike, generated: bool, detokenize: str | None = None) -> list[str]:
    """Read a system's hypotheses.

    Args:
        path: text with one hypothesis per line or, with ``generated``, fairseq-generate's output.
        detokenize: language code for undoing Moses tokenization in fairseq-generate's output.

    Returns:
        One text per sentence.

    Raises:
        InputError: the file cannot be read, or is plain text where the other is expected or the reverse.
    """
    if generated:
        return generate_output.read(path, detokenize).hypotheses
    lines = read_lines(path)
    if generate_output.looks_like_generate_output(lines):
        raise InputError(f"{path} is fairseq-generate's output, not plain text. Give it by --generate.")
    return lines


def read_test_set(
    hypotheses: PathLike | None,
    generated: PathLike | None,
    references: Sequence[PathLike],
    detokenize: str | None = None,
) -> tuple[list[str], list[list[str]]]:
    """Read a system's hypotheses, from one of its two kinds of file, and one or more references.

    Args:
        hypotheses: text with one hypothesis per line; or None, where ``generated`` is given.
        generated: fairseq-generate's output; or None.
        references: files with one line per sentence. Without any, fairseq-generate's own targets are the reference.
        detokenize: language code for undoing Moses tokenization in fairseq-generate's output.

    Returns:
        Hypotheses, one text per sentence, and as many texts of each reference.

    Raises:
        InputError: a file cannot be read, the numbers of lines differ, or there is no reference to be had.
    """
    system = _system(hypotheses, generated)
    if not references and generated is None:
        raise InputError(f"There is no reference for {system}. Give one with --ref.")
    lines = read_system(system, generated is not None, detokenize)
    if not references:
        return lines, [generate_output.trusted_references(system, detokenize)]
    streams = [read_lines(path) for path in references]
    for path, stream in zip(references, streams):
        if len(stream) != len(lines):
            raise InputError(_different_numbers(system, len(lines), path, len(stream), generated))
    return lines, streams


def read_named_test_set(
    hypotheses: PathLike | None,
    generated: PathLike | None,
    test_set: str,
    language_pair: str,
    detokenize: str | None = None,
) -> tuple[list[str], list[list[str]]]:
    """Read a system's hypotheses, and the references of a test set that sacreBLEU knows.

    Args:
        hypotheses, generated, detokenize: as :func:`read_test_set` takes them.
        test_set: sacreBLEU's name for it: wmt18, wmt14/full, …
        language_pair: source and target language: en-de.

    Returns:
        Hypotheses, one text per sentence, and as many texts of each reference.

    Raises:
        InputError: a file cannot be read, the test set cannot be had, or the numbers of lines differ.
    """
    system = _system(hypotheses, generated)
    lines = read_system(system, generated is not None, detokenize)
    streams = named_test_sets.references(test_set, language_pair)
    for stream in streams:
        if len(stream) != len(lines):
            name = f"{test_set} {language_pair}"
            raise InputError(_different_numbers(system, len(lines), name, len(stream), generated))
    return lines, streams


def _system(hypotheses: PathLike | None, generated: PathLike | None) -> PathLike:
    system = generated or hypotheses
    if system is None:
        raise InputError("There is nothing to score. Give --hyp or --generate.")
    return system


def _different_numbers(
    system: PathLike, have: int, reference: PathLike, expected: int, generated: PathLike | None
) -> str:
    message = f"{system} has {have} hypotheses, but {reference} has {expected} lines."
    if generated is None:
        return f"{message} Both need one line per sentence of the same test set, in the same order."
    missing = sorted(set(range(expected)) - set(generate_output.read(generated).ids))
    named = f" It has no sentence {missing[0]} (counted from 0)." if missing else ""
    return f"{message}{named} Generate again without leaving out sentences, or give the reference of this test set."
