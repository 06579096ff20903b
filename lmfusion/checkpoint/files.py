"""Check that a checkpoint file is whole, without unpickling it.

torch writes a check sum of every tensor into its files and does not look at it when reading: a bit that was flipped on
a disk would be a silently wrong weight.
"""

from __future__ import annotations

import os
import zipfile
from functools import lru_cache
from pathlib import Path

_ZIP_START = b"PK\x03\x04"
_PICKLE_START = b"\x80\x02"
_ANY_PICKLE_START = b"\x80"


def damage(path: Path) -> str | None:
    """Return what the check sums of a file written by torch show to be damaged; None if nothing is.

    Files of torch's old format, which the paper's released code wrote, have none.

    Args:
        path: of the file.

    Raises:
        OSError: if it cannot be read.
    """
    about = os.stat(path)
    return _damage(str(path), about.st_size, about.st_mtime_ns, about.st_ino)


def is_zip(path: Path) -> bool:
    """Return True if a file begins like torch's present (zip) format."""
    with path.open("rb") as stream:
        return stream.read(len(_ZIP_START)) == _ZIP_START


def is_checkpoint(path: Path) -> bool:
    """Return True if a file begins like one that torch wrote, in its present format or the old one."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(_ZIP_START)).startswith((_ZIP_START, _PICKLE_START))


def other_kind(path: Path) -> str | None:
    """Return what a file is if its first bytes rule out a checkpoint ("it is a text file …"); None if they do not.

    Raises:
        OSError: if it cannot be read.
    """
    with path.open("rb") as stream:
        head = stream.read(200)
    if not head:
        return "it is empty (0 bytes)"
    if head.startswith((_ZIP_START, _ANY_PICKLE_START)):
        return None
    line = head.decode("utf-8", errors="ignore").split("\n")[0].strip()  # the last character may be cut
    if b"\0" not in head and len(line.encode()) > 0.9 * len(head.split(b"\n")[0].strip()):
        return f"it is a text file that begins with {line[:60]!r}"
    return f"it begins with the bytes {head[:8].hex(' ')}, as no file of torch.save does"


@lru_cache(maxsize=64)
def _damage(path: str, size: int, *_: int) -> str | None:
    """Check a file once per content: a run that resumes reads its checkpoint several times."""
    if not is_zip(Path(path)):
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            return _first_damaged(archive, size)
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, RuntimeError, LookupError) as error:
        return str(error).strip() or type(error).__name__


def _first_damaged(archive: zipfile.ZipFile, size: int) -> str | None:
    entries = archive.infolist()
    # Neither is ever written by torch; unpacking such a file could take forever.
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        return "its entries are compressed"
    if sum(entry.file_size for entry in entries) > size:
        return "its entries overlap"
    name = archive.testzip()
    return f"the check sum of {name} does not match" if name else None
