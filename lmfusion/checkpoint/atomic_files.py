"""Write files that are whole at every moment: under another name, flushed to the disk, then renamed."""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from lmfusion.checkpoint.locks import try_lock
from lmfusion.errors import NO_SPACE, InputError, check_name

logger = logging.getLogger(__name__)

UNFINISHED = ".unfinished"
"""Ending of a file that is being written; before it stands the number of the process that writes it."""


class CannotWriteError(InputError):
    """Raised when a file cannot be written; nothing of it is left, and an earlier file of that name is unchanged."""

    def __init__(self, path: Path, cause: OSError) -> None:
        self.errno = cause.errno
        fix = "check that its folder exists and that you may write there"
        if cause.errno in NO_SPACE:
            fix = f"make room on its disk, which has {_free(path)} free"
        super().__init__(f"{path} could not be written ({cause.strerror or cause}): {fix}. Nothing was changed.")


def _free(path: Path) -> str:
    try:
        return f"{shutil.disk_usage(path.parent).free / 1e9:.2f} GB"
    except OSError:
        return "an unknown amount"


class _Stream:
    """A file that remembers why writing failed: torch.save may hide the cause behind an error of its own."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = error
            raise

    def flush(self) -> None:
        self._file.flush()


@contextmanager
def replacing(path: str | Path) -> Iterator[Any]:
    """Open a stream for a file's new content; after the block the file is whole and on the disk, or unchanged.

    Args:
        path: of the file to write or replace.

    Yields:
        A binary stream with ``write`` and ``flush``.

    Raises:
        InputError: if the path has no name.
        CannotWriteError: if there is no folder for it, no right to write, or no space left.
    """
    path = Path(path)
    check_name(path)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}{UNFINISHED}")
    stream: _Stream | None = None
    try:
        with unfinished.open("wb") as file:
            with suppress(OSError):  # without locks remove_unfinished() leaves such files alone
                try_lock(file.fileno())
            stream = _Stream(file)
            yield stream
            file.flush()
            os.fsync(file.fileno())
            os.replace(unfinished, path)  # while it is locked
        _flush_folder(path.parent)
    except BaseException as error:
        with suppress(OSError):  # where no file can be made, none can be removed: that would hide the cause
            unfinished.unlink(missing_ok=True)
        cause = stream.error if stream is not None and stream.error is not None else error
        if isinstance(cause, OSError):
            raise CannotWriteError(path, cause) from error
        raise


def remove_unfinished(folder: Path) -> None:
    """Remove unfinished checkpoints of processes that were killed; those of living processes stay.

    Args:
        folder: where a run saves its checkpoints.
    """
    for file in sorted(folder.glob(f"*.pt*{UNFINISHED}")):
        try:
            with file.open("r+b") as stream:
                if try_lock(stream.fileno()):
                    file.unlink(missing_ok=True)
        except FileNotFoundError:
            continue  # finished in the meantime
        except OSError as error:
            logger.warning(f"{file} was left as it is ({error.strerror}): remove it if no process is writing it.")


def _flush_folder(folder: Path) -> None:
    """Flush the folder, so that the new name is on the disk as well, where the file system supports that."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # one may write into it, and not list what is there
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # network file systems know no such thing
            raise
    finally:
        os.close(descriptor)
