"""Stages of a preparation: what is done is skipped, the disk space is checked before, a dry run only tells."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmfusion.text import record as records
from lmfusion.text import textio
from paper_corpora import fetch
from paper_corpora.sources import Source
from paper_corpora.workspace import Workspace

GIGABYTE = 1_000_000_000


@dataclass(frozen=True)
class Outcome:
    """What came of a stage: words for the screen, and numbers for prepare.json."""

    words: str
    counts: dict[str, Any]


@dataclass(frozen=True)
class Stage:
    """One step: the files it makes (each appears only when it is complete), and how."""

    corpus: str
    """The folder in DATA that it belongs to."""
    name: str
    outputs: tuple[Path, ...]
    make: Callable[[], Outcome]
    disk: int
    """Bytes it adds, estimated."""
    sources: tuple[Source, ...] = ()

    @property
    def title(self) -> str:
        """How it is called on the screen."""
        return f"{self.corpus}/{self.name}"

    def done(self) -> bool:
        """Whether all it makes is there."""
        return all(path.exists() for path in self.outputs)


def run(workspace: Workspace, stages: Sequence[Stage]) -> None:
    """Do what is left, in order.

    Raises:
        DataError: the folder holds data of other settings; too little disk space; bad input.
    """
    with records.locked(workspace.data):
        corpora = dict.fromkeys(stage.corpus for stage in stages)
        books = {name: records.Record(workspace.data / name, workspace.settings(), {}) for name in corpora}
        for source in _sources([stage for stage in stages if stage.done()]):
            workspace.downloads.check_unchanged(source)
        check_disk_space(workspace, stages)
        for number, stage in enumerate(stages, start=1):
            if not stage.done():
                _make(workspace, stage, books[stage.corpus], f"[{number}/{len(stages)}]")


def _make(workspace: Workspace, stage: Stage, book: records.Record, position: str) -> None:
    started = time.monotonic()
    print(f"{position} {stage.title} …", flush=True)
    for source in stage.sources:
        workspace.downloads.get(source)
        book.hashes[source.name] = workspace.downloads.verified[source.name]["sha256"]
    outcome = stage.make()
    if not stage.done():
        missing = next(path for path in stage.outputs if not path.exists())
        raise AssertionError(f"{stage.title} ended without {missing}")
    book.counts[stage.name] = outcome.counts
    book.save()
    print(textwrap.indent(f"{outcome.words} ({time.monotonic() - started:.0f} s)", "      "), flush=True)


def _sources(stages: Sequence[Stage]) -> list[Source]:
    """The sources of these stages, each once."""
    return list({source.name: source for stage in stages for source in stage.sources}.values())


def disk_need(workspace: Workspace, stages: Sequence[Stage]) -> int:
    """Bytes that what is left will add, downloads included."""
    left = [stage for stage in stages if not stage.done()]
    downloads = sum(source.size for source in _sources(left) if workspace.downloads.missing(source))
    return downloads + sum(stage.disk for stage in left)


def check_disk_space(workspace: Workspace, stages: Sequence[Stage]) -> None:
    """Tell what the stages that are left need.

    Raises:
        DataError: that is more than there is.
    """
    left = [stage for stage in stages if not stage.done()]
    if not left:
        print(f"{workspace.data}: everything is there ({len(stages)} stages)", flush=True)
        return
    need, free = disk_need(workspace, stages), fetch.free_space(workspace.data)
    print(
        f"{len(left)} of {len(stages)} stages to do; disk space: about {_gigabytes(need)} needed, "
        f"{_gigabytes(free)} free in {workspace.data}",
        flush=True,
    )
    if need > free:
        raise textio.DataError(
            f"{workspace.data}: {_gigabytes(free)} free, but about {_gigabytes(need)} needed. Free some space, or "
            f"choose another --out; finished stages are kept."
        )


def _gigabytes(size: int) -> str:
    return f"{size / GIGABYTE:.1f} GB" if size >= GIGABYTE / 10 else f"{size / 1_000_000:.1f} MB"


def tell(workspace: Workspace, stages: Sequence[Stage]) -> None:
    """A dry run: every stage, its downloads and what it makes; nothing is written."""
    for number, stage in enumerate(stages, start=1):
        print(f"[{number}/{len(stages)}] {stage.title}: {'done' if stage.done() else 'to do'}")
        if stage.done():
            continue
        for source in stage.sources:
            if source.local:
                print(f"      local {source.local}")
            elif workspace.downloads.missing(source):
                size = f"{'' if source.size_known else 'about '}{_gigabytes(source.size)}"
                print(f"      fetch {source.url} ({size})")
        for path in stage.outputs:
            print(f"      make  {path}")
    print(f"disk space: about {_gigabytes(disk_need(workspace, stages))} needed, ", end="")
    print(f"{_gigabytes(fetch.free_space(workspace.data))} free")
