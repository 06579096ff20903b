"""Prepared text of 10,000 pairs, and the plan of its runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion.rows import plan
from lmfusion.rows.plan import Plan
from lmfusion.text.prepared import TRANSLATION, Prepared


@pytest.fixture
def data(tmp_path: Path) -> Prepared:
    """A folder of prepared text."""
    (tmp_path / "data.json").write_text("{}", encoding="utf-8")
    return Prepared(tmp_path, "en", "fr", TRANSLATION, pairs=10_000, symbols={"en": 4_000_000, "fr": 1_000_000})


@pytest.fixture
def fresh(data: Prepared) -> Plan:
    """8,000 updates and 20,000 lines of back-translation."""
    return plan.new(data, 1, {}, {})
