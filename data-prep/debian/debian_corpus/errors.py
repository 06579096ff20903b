"""The one exception that means "tell the user and stop"."""

from __future__ import annotations


class CorpusError(Exception):
    """Something the user can mend; its text says what is wrong and what to do."""
