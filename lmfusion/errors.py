"""Errors that lmfusion raises on purpose, and one line for those of the operating system."""

from __future__ import annotations


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
