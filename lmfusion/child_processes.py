"""Processes that are started for a command's work, and end with it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def die_with_parent() -> Callable[[], None] | None:
    """Return what a child calls first, so that the kernel ends it with its parent; None where none can."""
    if not sys.platform.startswith("linux"):
        return None
    libc, parent = ctypes.CDLL(None), os.getpid()

    def ask_kernel() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    return ask_kernel
