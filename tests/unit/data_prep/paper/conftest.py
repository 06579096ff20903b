"""A workspace at the tiny scale with stand-ins for the sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from paper_corpora import sources
from paper_corpora.workspace import SCALES, Workspace


@pytest.fixture
def workspace(tmp_path: Path, standin_sources: Path) -> Callable[..., Workspace]:
    """``workspace("europarl-v7=other.tgz")``: a fresh folder, with these local files."""

    def make(*local: str) -> Workspace:
        table = sources.with_local_files(sources.read_table(standin_sources), list(local))
        return Workspace(tmp_path / "data", SCALES["tiny"], table, workers=1)

    return make
