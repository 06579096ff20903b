"""Errors that lmfusion raises on purpose, and one line for those of the operating system."""

from __future__ import annotations

import sys
from collections.abc import Callable


class LMFusionError(ValueError):
    """Base of every error that lmfusion raises on purpose."""


class InputError(LMFusionError):
    """Bad input: a file, flag or value that the user can fix.

    The ``lmfusion`` command catches it, prints its message as one line and exits with status 2; fairseq's commands end
    with the same line and a non-zero status (:mod:`lmfusion.fairseq_patches.one_line`). A program of one's own catches
    it around :func:`lmfusion.load_lm` and :func:`lmfusion.load_model`. Write the message as three short facts: what
    happened, to which file or flag (with both values where two things disagree), and how to fix it.
    """


UserError = InputError  # the former name, for programs that catch it


def describe_os_error(error: OSError) -> str:
    """Describe an error of the operating system in one line: the file, if the error names one, and the reason."""
    return f"{error.filename or 'the output'}: {error.strerror or error}. Nothing that was complete is lost."


def exit_status(run: Callable[[], int | None], describe: Callable[[OSError], str] = describe_os_error) -> int:
    """Run a command and return its exit status; an error that a person can fix becomes one line on stderr.

    Args:
        run: the command; what it returns is the status, None being 0.
        describe: function that makes a line of an error of the operating system.
    """
    try:
        return run() or 0
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {describe(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\n  interrupted; run the same command again to resume", file=sys.stderr)
        return 130
