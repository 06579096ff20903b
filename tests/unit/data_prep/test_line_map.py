"""Work on lines in several processes, when one of them is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lmfusion.text import line_map, textio

LINES = [f"line {number}" for number in range(4 * line_map.CHUNK_LINES)]

# Two workers that note their numbers and work on.
WORK = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from lmfusion.text import line_map
def convert(lines):
    open(os.path.join(sys.argv[2], str(os.getpid())), "w").close()
    time.sleep(600)
    return lines
list(line_map.map_lines(convert, ["line"] * 2000, 2000, "work", workers=2))
"""


def killed_at_line_700(lines: list[str]) -> list[str]:
    if "line 700" in lines:
        os.kill(os.getpid(), signal.SIGKILL)
    return lines


def test_a_killed_worker_is_one_error() -> None:
    with pytest.raises(textio.DataError, match=r"a worker process was killed.*run the same command again"):
        list(line_map.map_lines(killed_at_line_700, LINES, len(LINES), "work", workers=2))


def runs(process: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(") ")[2][0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_workers_end_with_a_killed_command(tmp_path: Path) -> None:
    folder = str(Path(textio.__file__).parent)
    with subprocess.Popen([sys.executable, "-c", WORK, folder, str(tmp_path)]) as command:
        while len(workers := [int(path.name) for path in tmp_path.iterdir()]) < 2:
            assert command.poll() is None
            time.sleep(0.05)
        command.kill()
    while any(map(runs, workers)):  # for ever, if they do not end
        time.sleep(0.05)
