"""References of the shared tasks' test sets, which sacreBLEU knows by name and downloads once (to ~/.sacrebleu)."""

from __future__ import annotations

import difflib
import socket
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

from sacrebleu import utils

from lmfusion.errors import InputError
from lmfusion.scoring.text_files import read_lines

TIMEOUT_SECONDS = 60.0
"""sacreBLEU itself would wait for a silent network forever."""


def references(test_set: str, language_pair: str) -> list[list[str]]:
    """Read the references of a test set, downloaded first if they are not on this machine.

    Args:
        test_set: sacreBLEU's name for it: wmt18, wmt14/full, …
        language_pair: source and target language: en-de.

    Returns:
        One or more references, each with one text per sentence.

    Raises:
        InputError: sacreBLEU does not know such a test set or language pair, or the download fails.
    """
    known = utils.get_available_testsets()
    if test_set not in known:
        close = difflib.get_close_matches(test_set, known, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(close)}? " if close else ""
        raise InputError(f"sacreBLEU knows no test set {test_set}. {hint}All of them: sacrebleu --list")
    pairs = utils.get_langpairs_for_testset(test_set)
    if language_pair not in pairs:
        raise InputError(f"{test_set} has no language pair {language_pair}. It has: {', '.join(sorted(pairs))}")
    with _network_errors(test_set):
        files = utils.get_reference_files(test_set, language_pair)
    return [read_lines(path) for path in files]


@contextmanager
def _network_errors(test_set: str) -> Iterator[None]:
    """Turn every way in which sacreBLEU's download fails, process exit included, into one error."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT_SECONDS)
    try:
        yield
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, SystemExit) as error:
        stopped = isinstance(error, SystemExit)  # a wrong check sum; sacreBLEU has said so itself
        reason = "sacreBLEU gave up" if stopped else getattr(error, "reason", None) or error
        folder = f"{utils.SACREBLEU_DIR}/{test_set}"
        raise InputError(
            f"The test set {test_set} is not on this machine and cannot be downloaded ({reason}). Give the reference "
            f"with --ref, or copy {folder} from a machine that has it. If a download broke off there, delete that "
            "folder and try again."
        ) from error
    finally:
        socket.setdefaulttimeout(before)
