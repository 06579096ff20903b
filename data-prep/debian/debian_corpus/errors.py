"""The one exception that means "tell the user and stop", and telling it."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from pathlib import Path


class CorpusError(Exception):
    """Something the user can fix; its text says what is wrong and what to do."""


def exit_status(program: str, build: Callable[[], None], out: Path) -> int:
    """What a builder ends with: 0, or 1 after one clear message.

    Args:
        program: the script's name, which the message begins with.
        build: does the work.
        out: the folder it writes, named where the system names no file.
    """
    try:
        build()
    except CorpusError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        fix = " Free some space, or give --out and TMPDIR on another disk." if error.errno == errno.ENOSPC else ""
        print(f"{program}: {error.strerror}: {error.filename or out}.{fix}", file=sys.stderr)
        return 1
    return 0
