"""Everything that changes fairseq: one table (:mod:`~.table`), applied once, taken back whole."""

from __future__ import annotations

from lmfusion.fairseq_patches import patch
from lmfusion.fairseq_patches.table import TABLE


def install() -> None:
    """Apply the table; a second call changes nothing."""
    patch.apply(TABLE)


def uninstall() -> None:
    """Give fairseq its originals back."""
    patch.take_back()
