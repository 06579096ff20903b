"""One training process a folder; the system gives the lock back when its owner is gone, whatever it left running."""

from __future__ import annotations

import errno
import fcntl
import gc
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lmfusion.checkpoint.atomic_files import remove_unfinished, replacing
from lmfusion.checkpoint.locks import lock_folder
from lmfusion.errors import InputError

HOLD = """
import os, sys, time
from pathlib import Path
from lmfusion.checkpoint.locks import lock_folder
lock = lock_folder(Path(sys.argv[1]))
worker = os.fork()  # as a data loader does
if worker:
    print(worker, flush=True)
time.sleep(600)
"""
WRITE = """
import sys, time
from lmfusion.checkpoint.atomic_files import replacing
with replacing(sys.argv[1]) as stream:
    stream.write(b"half")
    stream.flush()
    print(flush=True)
    time.sleep(600)
"""


@contextmanager
def process(code: str, argument: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that runs this; it is killed at the end. Its first line has been read into ``first_line``."""
    words = [sys.executable, "-c", code, str(argument)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        running.first_line = running.stdout.readline()  # type: ignore[attr-defined]
        try:
            yield running
        finally:
            running.kill()


def test_a_second_process_is_refused_and_told_which_is_the_first(tmp_path: Path) -> None:
    with process(HOLD, tmp_path) as owner:
        worker = int(owner.first_line)  # type: ignore[attr-defined]
        try:
            with pytest.raises(InputError, match=rf"{tmp_path} .*process {owner.pid} on "):
                lock_folder(tmp_path)
            owner.kill()
            owner.wait()
            os.kill(worker, 0)  # alive, with a copy of all its parent's open files
            assert lock_folder(tmp_path) is not None
        finally:
            os.kill(worker, signal.SIGKILL)


def test_a_link_in_a_folder_from_elsewhere_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("mine")
    (tmp_path / ".lock").symlink_to(other)
    with pytest.raises(InputError, match=r"\.lock"):
        lock_folder(tmp_path)
    assert other.read_text() == "mine"


def test_the_lock_ends_with_the_run_that_took_it(tmp_path: Path) -> None:
    """As in a program that trains, and then starts a command that goes on with the run."""
    code = "import sys; from pathlib import Path; from lmfusion.checkpoint.locks import lock_folder as lock\n"
    code += "lock(Path(sys.argv[1]))"

    def status_of_another() -> int:
        return subprocess.run([sys.executable, "-c", code, tmp_path], check=False, stderr=subprocess.DEVNULL).returncode

    first = lock_folder(tmp_path)
    assert lock_folder(tmp_path) is first
    assert status_of_another() == 1
    del first
    gc.collect()
    assert status_of_another() == 0


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without locks."""

    def lockf(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "lockf", lockf)


def test_a_file_system_without_locks_is_warned_of(
    tmp_path: Path, no_locks: None, caplog: pytest.LogCaptureFixture
) -> None:
    left = tmp_path / "checkpoint_last.pt.1.unfinished"
    left.touch()
    with caplog.at_level(logging.WARNING):
        lock_folder(tmp_path)
        remove_unfinished(tmp_path)
    assert str(tmp_path) in caplog.messages[0]
    assert str(left) in caplog.messages[1]
    assert left.exists()


def test_unfinished_files_of_the_dead_are_removed_and_those_of_the_living_stay(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint_last.pt"
    old = tmp_path / "checkpoint_best.pt.unfinished"  # as files were named before they had their process's number
    old.touch()
    with process(WRITE, path) as writer:
        unfinished = tmp_path / f"checkpoint_last.pt.{writer.pid}.unfinished"
        with replacing(path) as stream:  # of two processes each has its own
            stream.write(b"whole")
        remove_unfinished(tmp_path)
        assert sorted(os.listdir(tmp_path)) == [path.name, unfinished.name]
        assert unfinished.read_bytes() == b"half"
        writer.kill()
        writer.wait()
        remove_unfinished(tmp_path)
    assert os.listdir(tmp_path) == [path.name]
    assert path.read_bytes() == b"whole"


def test_a_file_system_without_locks_is_written_to(tmp_path: Path, no_locks: None) -> None:
    with replacing(tmp_path / "checkpoint_last.pt") as stream:
        stream.write(b"whole")
    assert (tmp_path / "checkpoint_last.pt").read_bytes() == b"whole"


def test_a_file_that_is_finished_in_the_meantime_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gone, left = tmp_path / "checkpoint_1.pt.1.unfinished", tmp_path / "checkpoint_2.pt.1.unfinished"
    left.touch()
    monkeypatch.setattr(Path, "glob", lambda *_: [gone, left])  # as it was when the folder was listed
    remove_unfinished(tmp_path)
    assert not left.exists()
    assert caplog.messages == []


def test_files_of_other_programs_stay(tmp_path: Path) -> None:
    other = tmp_path / "notes.txt.1.unfinished"
    other.touch()
    remove_unfinished(tmp_path)
    assert other.exists()


@pytest.mark.parametrize("number", [errno.EACCES, errno.EAGAIN], ids=errno.errorcode.get)
def test_both_answers_of_a_system_to_a_lock_that_is_taken_are_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def lockf(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "lockf", lockf)
    (tmp_path / ".lock").write_bytes(b"\x1b]0;whatever was here before\n")
    with pytest.raises(InputError, match=rf"{tmp_path} belongs to another .* \(which one is unknown\)"):
        lock_folder(tmp_path)


def test_a_folder_by_another_name_is_the_same(tmp_path: Path) -> None:
    """A second descriptor of its file would release the lock when it is closed."""
    (tmp_path / "run").mkdir()
    (tmp_path / "link").symlink_to("run")
    assert lock_folder(tmp_path / "run") is lock_folder(tmp_path / "link")


def test_the_owner_is_all_that_a_lock_file_says(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("process 123456789 on a host with a long name\nand more lines\n" * 9)
    held = lock_folder(tmp_path)
    assert (tmp_path / ".lock").read_text() == f"process {os.getpid()} on {socket.gethostname()}\n"
    del held


def test_programs_that_a_run_starts_get_no_copy_of_the_lock(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    held = lock_folder(tmp_path)
    about = (tmp_path / ".lock").stat()
    mine = [number for number in map(int, os.listdir("/proc/self/fd")) if is_file(number, about)]
    assert [os.get_inheritable(number) for number in mine] == [False]
    del held


def is_file(descriptor: int, about: os.stat_result) -> bool:
    """Whether an open file is this one."""
    try:
        return os.path.samestat(os.fstat(descriptor), about)
    except OSError:  # that of the list of descriptors itself
        return False


def test_a_lock_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    """As on a full disk, where an empty file can still be made."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        with pytest.raises(InputError, match=r"\.lock cannot be written \(File too large\)"):
            lock_folder(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
