"""Checkpoints are written whole or not at all: a full disk, a lost connection, a failure in the middle."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import stat
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils

from lmfusion.checkpoint.atomic_files import CannotWriteError, replacing
from lmfusion.errors import InputError
from lmfusion.fairseq_patches import early_stop, saving


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file can grow beyond this many bytes: a full disk as the operating system has it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def state(updates: int, numbers: int = 50_000) -> dict[str, Any]:
    """What fairseq's trainer saves, as far as saving is concerned."""
    history = [{"num_updates": updates}]
    model = {"weight": torch.full((numbers,), float(updates))}
    return {"model": model, "optimizer_history": history, "extra_state": {}}


def save(updates: int, path: Path) -> None:
    checkpoint_utils.torch_persistent_save(state(updates), str(path))


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    with replacing(path) as stream:
        stream.write(b"after")
        stream.flush()
        assert path.read_bytes() == b"before"
    assert path.read_bytes() == b"after"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_block_that_fails_leaves_the_file_as_it_was(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def fail() -> None:
        with replacing(path) as stream:
            stream.write(b"after")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["file"]


def test_full_disk_stops_training_with_one_line_and_spares_what_there_is(tmp_path: Path) -> None:
    last = tmp_path / "checkpoint_last.pt"
    save(3, last)
    whole = last.read_bytes()
    with largest_file(100_000), pytest.raises(InputError) as caught:
        save(4, last)
    assert str(caught.value).startswith(f"{last} could not be written (File too large): make room")
    assert last.read_bytes() == whole
    assert os.listdir(tmp_path) == ["checkpoint_last.pt"]


def test_full_disk_that_shows_when_the_file_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(InputError, match=r"\(No space left on device\): make room"):
        save(4, tmp_path / "checkpoint_last.pt")
    assert os.listdir(tmp_path) == []


def test_copies_are_whole_or_not_there(tmp_path: Path) -> None:
    """fairseq copies each checkpoint onto checkpoint_best.pt and checkpoint_last.pt."""
    first, last = tmp_path / "checkpoint_1_4.pt", tmp_path / "checkpoint_last.pt"
    save(3, last)
    save(4, first)
    whole = last.read_bytes()
    with largest_file(100_000), pytest.raises(InputError, match=r"last\.pt could not be written"):
        checkpoint_utils.PathManager.copy(str(first), str(last), overwrite=True)
    assert last.read_bytes() == whole
    assert checkpoint_utils.PathManager.copy(str(first), str(last), overwrite=True)
    assert last.read_bytes() == first.read_bytes() != whole
    assert sorted(os.listdir(tmp_path)) == [first.name, last.name]


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    named = pytest.raises(CannotWriteError, match=r"no/x could not be written \(No such file or directory\): check")
    with named, replacing(tmp_path / "no" / "x"):
        pass


def test_configuration_of_models_without_a_dataclass_is_a_namespace(tmp_path: Path) -> None:
    saving.save({**state(1), "cfg": {"model": Namespace(arch="transformer")}}, tmp_path / "checkpoint_last.pt")
    assert (tmp_path / "checkpoint_last.pt").exists()


def test_the_counts_of_patience_are_kept_and_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def should_stop_early() -> None:
        """fairseq_cli.train's, which keeps its counts as attributes."""

    module = ModuleType("fairseq_cli.train")
    module.should_stop_early = should_stop_early  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fairseq_cli.train", module)
    saving.save(state(1), tmp_path / "first.pt")
    should_stop_early.best, should_stop_early.num_runs = 6.5, 1  # type: ignore[attr-defined]
    saving.save(state(2), tmp_path / "second.pt")
    kept = [torch.load(tmp_path / name, weights_only=True)["extra_state"] for name in ("first.pt", "second.pt")]
    assert kept == [{}, {early_stop.KEY: {"best": 6.5, "num_runs": 1}}]
    del should_stop_early.best, should_stop_early.num_runs  # type: ignore[attr-defined]
    early_stop.restore(kept[0].get(early_stop.KEY))
    assert not hasattr(should_stop_early, "best")
    early_stop.restore(kept[1].get(early_stop.KEY))
    assert (should_stop_early.best, should_stop_early.num_runs) == (6.5, 1)  # type: ignore[attr-defined]


@pytest.mark.parametrize("place", ["file/x", "a" * 300], ids=["a file as a folder", "a long name"])
def test_where_no_file_can_be_made_the_reason_is_said(tmp_path: Path, place: str) -> None:
    """Nor can one be removed there, which fails in the same way."""
    (tmp_path / "file").write_bytes(b"before")
    said = r"could not be written \((Not a directory|File name too long)\): check"
    named = pytest.raises(CannotWriteError, match=said)
    with named, replacing(tmp_path / place):
        pass
    assert os.listdir(tmp_path) == ["file"]


@pytest.fixture
def folder_flush(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let flushing a folder fail: ``folder_flush(errno.EIO)`` returns the descriptors that it was called with."""

    def fail_with(number: int) -> list[int]:
        flush, folders = os.fsync, []

        def fsync(descriptor: int) -> None:
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                return flush(descriptor)
            folders.append(descriptor)
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", fsync)
        return folders

    return fail_with


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP], ids=errno.errorcode.get)
def test_a_file_system_that_flushes_no_folders_is_written_to(tmp_path: Path, folder_flush: Any, number: int) -> None:
    folders = folder_flush(number)
    save(3, tmp_path / "checkpoint_last.pt")
    assert os.listdir(tmp_path) == ["checkpoint_last.pt"]
    assert len(folders) == 1
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(folders[0])  # closed


def test_a_name_that_does_not_reach_the_disk_is_an_error(tmp_path: Path, folder_flush: Any) -> None:
    folders = folder_flush(errno.EIO)
    with pytest.raises(CannotWriteError, match="Input/output error"):
        save(3, tmp_path / "checkpoint_last.pt")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(folders[0])


def test_a_folder_that_may_not_be_listed_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refuse(path: Any, *more: Any, **options: Any) -> int:
        if Path(path) == tmp_path:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(path, *more, **options)

    monkeypatch.setattr(os, "open", refuse)
    save(3, tmp_path / "checkpoint_last.pt")
    assert os.listdir(tmp_path) == ["checkpoint_last.pt"]


def test_all_bytes_are_handed_to_the_system_before_they_are_flushed_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush, sizes = os.fsync, []

    def fsync(descriptor: int) -> None:
        sizes.append(os.fstat(descriptor).st_size)
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with replacing(tmp_path / "file") as stream:
        stream.write(b"a few bytes")  # fewer than Python keeps back
    assert sizes[0] == len(b"a few bytes")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG], ids=errno.errorcode.get)
def test_room_that_there_is_not_is_said_in_gigabytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    cause = OSError(number, os.strerror(number))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1_250_000_000))
    assert "make room on its disk, which has 1.25 GB free" in str(CannotWriteError(tmp_path / "x", cause))

    def fail(_: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(shutil, "disk_usage", fail)
    assert "make room" in str(CannotWriteError(tmp_path / "x", cause))
