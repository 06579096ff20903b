"""The last words of a failed command: what a person needs of a long log."""

from __future__ import annotations

from pathlib import Path

MOST_LINES = 5
TAIL_BYTES = 200_000


def last_words(log: Path, start: int = 0) -> str:
    """Return the lines that say what went wrong: a traceback without its frames, or else the last lines.

    Args:
        log: a command's output.
        start: the byte at which the last attempt's output begins.
    """
    with log.open("rb") as stream:
        stream.seek(0, 2)
        stream.seek(max(start, stream.tell() - TAIL_BYTES))
        lines = stream.read().decode("utf-8", errors="replace").rstrip().splitlines()
    return "\n".join(f"    {line[:500]}" for line in _meaningful(lines)) or "    (nothing)"


def _meaningful(lines: list[str]) -> list[str]:
    """Return what follows the last traceback's frames, or the last error in one line; else the last lines."""
    for number in range(len(lines) - 1, -1, -1):
        if lines[number].startswith("Traceback (most recent call last)"):
            return [line for line in lines[number + 1 :] if line.strip() and not line.startswith(" ")][:MOST_LINES]
        if ": error: " in lines[number]:
            return [line for line in lines[number:] if line.strip()][:MOST_LINES]
    return [line for line in lines if line.strip()][-MOST_LINES:]
