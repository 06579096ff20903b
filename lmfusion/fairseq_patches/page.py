"""The table as a page: ``python -m lmfusion.fairseq_patches.page > docs/fairseq_changes.md``."""

from __future__ import annotations

from collections.abc import Sequence

from lmfusion.fairseq_patches.patch import Patch
from lmfusion.fairseq_patches.table import TABLE

_HEAD = """# What lmfusion changes in fairseq

Written from `lmfusion/fairseq_patches/table.py` by `python -m lmfusion.fairseq_patches.page`. Each row replaces one
attribute when fairseq loads lmfusion as `--user-dir`, or at the first use of `lmfusion.install()`, `load_lm` or
`load_model`. Importing lmfusion changes nothing, and `lmfusion.plugin.uninstall()` gives the originals back. Where no
row says otherwise, models of fairseq are trained and decoded as without lmfusion. The faults were seen in ve-fairseq
0.12.3 with PyTorch 2 and NumPy 2.

| what is replaced | by | because otherwise | needless since |
|---|---|---|---|
"""


def as_markdown(table: Sequence[Patch]) -> str:
    """Return the page of a table, a row for every patch."""
    rows = []
    for patch in table:
        place = f"{patch.owner.replace(':', '.')}.{patch.name}"
        make = f"{patch.make.__module__.rpartition('.')[2]}.{patch.make.__name__}"
        rows.append(f"| `{place}` | `{make}` | {patch.why} | {patch.needless_since} |\n")
    return _HEAD + "".join(rows)


if __name__ == "__main__":
    print(as_markdown(TABLE), end="")
