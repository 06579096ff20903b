"""``lmfusion translate`` on pipes and on a terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def test_a_stream_is_answered_line_by_line_and_a_reader_may_leave(start: Any, text: Path, translations: Any) -> None:
    process = start(**PIPES)
    for line, expected in zip(text.read_bytes().splitlines(keepends=True)[:3], translations):
        process.stdin.write(line)
        process.stdin.flush()
        assert " ".join(process.stdout.readline().decode().split()) == " ".join(expected.split())
    process.stdout.close()
    process.stdin.write(text.read_bytes())
    process.stdin.flush()
    assert process.wait(60) == 0, "as of head"
    assert process.stderr.read() == b"", "though its input has not ended"


@pytest.mark.slow
def test_a_line_that_is_not_utf8_is_named_after_what_stands_before_it(start: Any, translations: list[str]) -> None:
    out, error = start(**PIPES).communicate(b"\xef\xbb\xbf\n\nA library.\r\ncaf\xe9\nA tool.\n", timeout=120)
    lines = out.decode().splitlines()
    assert (len(lines), lines[:2]) == (3, ["", ""])
    assert error.decode().count("\n") == 1
    assert "line 4" in error.decode()


@pytest.mark.slow
def test_a_pipe_may_stand_for_a_file(start: Any, text: Path, translations: list[str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    process = start(tmp_path / "fifo", **PIPES)
    with subprocess.Popen(["cp", str(text), str(tmp_path / "fifo")]) as writer:
        out, _ = process.communicate(timeout=120)
        writer.kill()
    assert [" ".join(line.split()) for line in out.decode().splitlines()] == [" ".join(t.split()) for t in translations]


@pytest.mark.slow
def test_what_is_typed_is_answered_before_the_next_prompt(start: Any, translations: list[str], text: Path) -> None:
    """On a terminal: a line, the same by the arrow key, an empty one, and Ctrl-D."""
    ours, theirs = pty.openpty()
    process = start(stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    sentence = text.read_bytes().splitlines()[0]

    def screen() -> str:
        """All up to the next prompt."""
        seen, end = b"", time.monotonic() + 120
        while not seen.endswith(b"> ") and time.monotonic() < end:
            if select.select([ours], [], [], 1)[0]:
                seen += os.read(ours, 4096)
        return seen.decode()

    assert screen().endswith("> ")
    os.write(ours, sentence + b"\n")
    assert translations[0].split()[0] in screen()
    os.write(ours, b"\n")
    assert screen().split() == [">"]
    os.write(ours, b"\x04")
    assert process.wait(60) == 0
    os.close(ours)
