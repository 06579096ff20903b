"""errors.py: interruptions wait while libraries are imported."""

from __future__ import annotations

import os
import signal

import pytest

from lmfusion.errors import interruptions_wait


def test_an_interruption_waits_until_the_block_is_over() -> None:
    reached: list[str] = []
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may have begun without
    with pytest.raises(KeyboardInterrupt):
        _interrupted(reached)
    assert reached == ["end of the block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _interrupted(reached: list[str]) -> None:
    with interruptions_wait():
        os.kill(os.getpid(), signal.SIGINT)
        reached.append("end of the block")
    reached.append("behind the block")
