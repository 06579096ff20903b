"""Errors that lmfusion raises on purpose, and one line for those of the operating system."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]+")  # all but tabs and line ends
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers of a full disk, a used-up quota and a file that is too large."""
_ENDING = signal.SIGINT, signal.SIGTERM


class LMFusionError(ValueError):
    """Base of every error that lmfusion raises on purpose."""


class InputError(LMFusionError):
    """Bad input: a file, flag or value that the user can fix.

    The ``lmfusion`` command catches it, prints its message as one line and exits with status 2; fairseq's commands end
    with the same line and a non-zero status (:mod:`lmfusion.fairseq_patches.one_line`). A program of one's own catches
    it around :func:`lmfusion.load_lm` and :func:`lmfusion.load_model`. Write the message as three short facts: what
    happened, to which file or flag (with both values where two things disagree), and how to fix it.
    """


def check_dropout(value: Any, given: str) -> None:
    """Refuse a dropout that is no probability below 1.

    Args:
        value: the dropout.
        given: how it was given, flag and value, for the message.

    Raises:
        InputError: it is none.
    """
    if not (isinstance(value, (int, float)) and 0 <= value < 1):
        raise InputError(f"{given}: give a probability, 0 or more and below 1.")


def check_name(path: Path) -> None:
    """Refuse a path that no file can be written to: without a name (``.``, ``/``), of a device, a pipe or a socket.

    A file is written under another name and renamed, so that a device would be gone and a file in its place.

    Raises:
        InputError: it is such a path.
    """
    if path.name in ("", ".."):
        raise InputError(f"{str(path)!r} is no name of a file to write: give one.")
    if path.parent.absolute() == Path("/dev") or (os.path.exists(path) and not (path.is_file() or path.is_dir())):
        raise InputError(f"{path} is a device or a pipe, whose place a file would take: give the name of a file.")


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Put a file's path before the message of every :class:`InputError` that does not name it yet.

    Args:
        path: of the file that is used inside.
    """
    try:
        yield
    except InputError as error:
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}") from error


def shown(error: BaseException) -> str:
    """Return an error's message for a terminal: a space for control characters, which a file may have brought."""
    return _CONTROL.sub(" ", str(error))


UserError = InputError  # the former name, for programs that catch it


def why_no_file(path: Path) -> str:
    """Say why a path is no file that can be read more than once: what is there in its place, if anything."""
    if path.is_dir():
        return "is a folder, not a file"
    return "is a pipe or a device: write what it gives to a file, and give that" if path.exists() else "no such file"


def file_of(error: OSError) -> str | None:
    """Return the name of the file that an error is about, of a copy to a full disk that of the copy; None: no name."""
    return (error.filename2 if error.errno in NO_SPACE else None) or error.filename


def describe_os_error(error: OSError) -> str:
    """Describe an error of the operating system in one line: the file, if the error names one, and the reason."""
    name = file_of(error) or "the output"
    if isinstance(error, FileExistsError):
        return f"{name}: is a file, where a folder is needed. Give another name. Nothing that was complete is lost."
    fix = " Make room on its disk, or give another folder." if error.errno in NO_SPACE else ""
    return f"{name}: {error.strerror or error}.{fix} Nothing that was complete is lost."


@contextmanager
def interruptions_wait() -> Iterator[None]:
    """Let Ctrl-C and the signal to end wait until the block is over; in the main thread, which alone they interrupt.

    For the import of large libraries: some turn an interruption at that time into an error of their own (omegaconf
    into an AttributeError), which would be shown with its traceback.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    before = {each: signal.signal(each, lambda number, _: arrived.append(number)) for each in _ENDING}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    for number in arrived[:1]:
        signal.raise_signal(number)


def exit_status(run: Callable[[], int | None], describe: Callable[[OSError], str] = describe_os_error) -> int:
    """Run a command and return its exit status; an error that a person can fix becomes one line on stderr.

    Args:
        run: the command; what it returns is the status, None being 0.
        describe: function that makes a line of an error of the operating system.
    """
    try:
        return run() or 0
    except InputError as error:
        print(f"error: {shown(error)}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {describe(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\n  interrupted; run the same command again to resume", file=sys.stderr)
        return 130
