"""Errors that lmfusion raises on purpose, and one line for those of the operating system."""

from __future__ import annotations


class LMFusionError(ValueError):
    """Base of every error that lmfusion raises on purpose."""


class UserError(LMFusionError):
    """A mistake that the person at the keyboard can mend.

    The message is all that person will see: the ``lmfusion`` command prints it as one line and exits with
    status 2, without a traceback. Write it as three short facts: what happened, to which file or flag (with both
    values where two things disagree), and what to do about it.
    """


def describe_os_error(error: OSError) -> str:
    """Describe an error of the operating system in one line: the file, if the error names one, and the reason."""
    return f"{error.filename or 'the output'}: {error.strerror or error}. Nothing that was complete is lost."
