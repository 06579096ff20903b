"""Locks that the system releases when the process that holds them ends, however it ends.

They are POSIX record locks: workers that a process forks do not inherit them, so that none outlives its owner.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import socket
import weakref
from pathlib import Path

from lmfusion.errors import InputError

logger = logging.getLogger(__name__)

LOCK_NAME = ".lock"
"""File in a run's folder; it stays there, and says nothing by being there."""

_OWNER = re.compile(rb"process \d+ on [\w.-]+")
_HELD_BY_ANOTHER = (errno.EACCES, errno.EAGAIN)


def try_lock(descriptor: int) -> bool:
    """Lock an open file for this process, and return whether no other process holds it.

    Closing any descriptor of the same file in this process releases the lock.

    Args:
        descriptor: of a file open for writing.

    Raises:
        OSError: if the file system has no locks.
    """
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD_BY_ANOTHER:
            return False
        raise
    return True


class FolderLock:
    """A lock that keeps other processes from training into a folder as long as this object lives."""

    def __init__(self, descriptor: int) -> None:
        self._close = weakref.finalize(self, os.close, descriptor)


_held: weakref.WeakValueDictionary[tuple[int, Path], FolderLock] = weakref.WeakValueDictionary()
"""Locks by process and folder: a second descriptor of the same file would release the lock when it is closed."""


def lock_folder(folder: Path) -> FolderLock:
    """Lock a folder for a training run of this process; only warn where the file system has no locks.

    Args:
        folder: an existing one. A file ``.lock`` in it says which process had the lock last.

    Returns:
        The lock; it is released when nothing refers to it any more.

    Raises:
        InputError: if another process trains into it, or the file cannot be written.
    """
    key = (os.getpid(), folder.resolve())
    if (held := _held.get(key)) is not None:
        return held
    file = folder / LOCK_NAME
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise InputError(f"{file} cannot be opened ({error.strerror}): choose another --save-dir.") from error
    lock = FolderLock(descriptor)
    try:
        free = try_lock(descriptor)
    except OSError as error:
        logger.warning(
            f"{folder} is on a file system without locks ({error.strerror}): make sure that no other process writes "
            f"into it."
        )
        return lock
    if not free:
        owner = _OWNER.match(os.read(descriptor, 300))
        raise InputError(
            f"--save-dir {folder} belongs to another training process that is running "
            f"({owner[0].decode() if owner else 'which one is unknown'}): wait for its end or stop it, or choose "
            f"another --save-dir."
        )
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
    except OSError as error:  # no room on its disk, for one
        raise InputError(f"{file} cannot be written ({error.strerror}): choose another --save-dir.") from error
    _held[key] = lock
    return lock
