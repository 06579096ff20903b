"""One line on the terminal that is rewritten as work goes on; a line now and then where there is no terminal."""

from __future__ import annotations

import shutil
import time
from typing import TextIO

LIVE_INTERVAL, LOG_INTERVAL = 0.2, 20.0
CLEAR = "\r\x1b[2K"


class LiveLine:
    """Progress of one piece of work on `stream`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._shown_at = time.monotonic() - (LIVE_INTERVAL if self._live else LOG_INTERVAL / 2)

    def show(self, text: str) -> None:
        """Show `text` in place of what was shown last, if it is time for something new."""
        now = time.monotonic()
        if now - self._shown_at < (LIVE_INTERVAL if self._live else LOG_INTERVAL):
            return
        self._shown_at = now
        if self._live:
            self._stream.write(CLEAR + text[: shutil.get_terminal_size().columns - 1])
        else:
            self._stream.write(text + "\n")
        self._stream.flush()

    def keep(self, text: str) -> None:
        """Write a line that stays."""
        self._stream.write((CLEAR if self._live else "") + text + "\n")
        self._stream.flush()


def clock(seconds: float) -> str:
    """Return seconds as minutes:seconds, or hours:minutes:seconds."""
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
