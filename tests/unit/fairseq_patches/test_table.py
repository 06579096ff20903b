"""One table of all that is changed: applied once, taken back whole, told in one page."""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lmfusion
from lmfusion import fairseq_patches, plugin
from lmfusion.fairseq_patches.page import as_markdown
from lmfusion.fairseq_patches.patch import Patch
from lmfusion.fairseq_patches.table import TABLE

PAGE = Path(__file__).parents[3] / "docs" / "fairseq_changes.md"
ABSENT = object()


def standing(patch: Patch) -> Any:
    """What stands in the owner itself just now."""
    return vars(patch.find_owner()).get(patch.name, ABSENT)


@pytest.fixture
def originals() -> Iterator[list[Any]]:
    """What stands in every place of the table without lmfusion."""
    plugin.uninstall()
    yield [standing(patch) for patch in TABLE]
    lmfusion.install()


@pytest.fixture
def replaced() -> list[Any]:
    return [standing(patch) for patch in TABLE]


def test_each_attribute_is_replaced_in_one_row() -> None:
    assert [place for place, count in Counter((p.owner, p.name) for p in TABLE).items() if count > 1] == []


@pytest.mark.parametrize("patch", TABLE, ids=lambda patch: f"{patch.owner}.{patch.name}")
def test_every_row_gives_back_the_original_itself(patch: Patch) -> None:
    plugin.uninstall()
    try:
        original = standing(patch)
        lmfusion.install()
        assert standing(patch) is not original
        plugin.uninstall()
        assert standing(patch) is original
    finally:
        lmfusion.install()


def test_installing_twice_wraps_once(replaced: list[Any]) -> None:
    lmfusion.install()
    fairseq_patches.install()
    importlib.import_module("lmfusion.models.plugin")
    assert all(standing(patch) is now for patch, now in zip(TABLE, replaced))


def test_after_taking_back_a_second_installation_works(originals: list[Any]) -> None:
    lmfusion.install()
    assert not any(standing(patch) is original for patch, original in zip(TABLE, originals))
    plugin.uninstall()
    plugin.uninstall()
    assert all(standing(patch) is original for patch, original in zip(TABLE, originals))


def test_an_excepthook_of_the_users_own_still_prints_other_errors(
    originals: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: seen.append(error[0]))
    lmfusion.install()
    sys.excepthook(KeyError, KeyError("theirs"), None)
    plugin.uninstall()
    assert seen == [KeyError]


def test_every_row_says_why() -> None:
    for patch in TABLE:
        assert len(patch.why) > 40, patch
        assert patch.needless_since


def test_the_page_is_the_table() -> None:
    """python -m lmfusion.fairseq_patches.page > docs/fairseq_changes.md"""
    assert PAGE.read_text(encoding="utf-8") == as_markdown(TABLE)
