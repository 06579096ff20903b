"""prepare.json of an output folder: with what it was made, and the counts; and the lock on the folder."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lmfusion.text import textio
from lmfusion.text.json_text import parse
from lmfusion.text.printable import told

_CONSEQUENCE = "what was made beside it has to be made again"


class Record:
    """Keep settings, hashes of the input and counts of one output folder, in OUT/prepare.json or another file."""

    def __init__(
        self,
        out: Path,
        settings: dict[str, Any],
        hashes: dict[str, str],
        name: str = "prepare.json",
        made: Sequence[str] = (),
    ) -> None:
        """Read the folder's record, or start one.

        Args:
            out: the folder.
            settings: what has to be the same every time.
            hashes: SHA-256 of every file that is read, by name.
            name: of the record's file.
            made: patterns of what is not made again where it is there, and so needs a record.

        Raises:
            DataError: the folder holds data prepared from other files or with other settings, or without a record.
        """
        self.out = out
        self.path = out / name
        self.counts: dict[str, Any] = {}
        self.settings = settings
        self.hashes = hashes
        if self.path.is_file():
            self._continue_from(read_json(self.path, _CONSEQUENCE))
        elif found := [path for pattern in made for path in sorted(out.glob(pattern))]:
            raise textio.DataError(
                f"{found[0]}: is there already, and no {self.path} says what it was made of. Choose another --out, or "
                f"move away what is called so: {', '.join(made)}."
            )
        self.save()

    def _continue_from(self, before: dict[str, Any]) -> None:
        if not all(isinstance(before.get(name), dict) for name in ("settings", "corpus_sha256", "counts")):
            raise textio.DataError(f"{self.path}: is damaged (not all is there). Delete it: {_CONSEQUENCE}.")
        now = {**self.settings, **self.hashes}
        # Records from before there was more text, or pieces of models, do not name them.
        then = {"more_text": False, "models": {}, **before["settings"], **before["corpus_sha256"]}
        for name in now.keys() & then.keys():
            if now[name] != then[name]:
                raise textio.DataError(
                    f"{self.out}: was prepared with {name} = {told(then[name])}, now it is {told(now[name])}. "
                    f"Choose another --out, or delete that folder."
                )
        self.counts = before["counts"]
        self.hashes = {**before["corpus_sha256"], **self.hashes}

    def save(self) -> None:
        """Write the file."""
        record = {"settings": self.settings, "corpus_sha256": self.hashes, "counts": self.counts}
        with textio.writing(self.path) as stream:
            json.dump(record, stream, indent=2, sort_keys=True)
            stream.write("\n")


def read_json(path: Path, consequence: str) -> dict[str, Any]:
    """Return a record of ours.

    Args:
        path: the file.
        consequence: what it means to do without it.

    Raises:
        DataError: it is damaged; tells that it can be deleted, and the consequence.
    """
    try:
        content = parse(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise textio.DataError(f"{path}: is damaged ({error}). Delete it: {consequence}.") from error
    if not isinstance(content, dict):
        raise textio.DataError(f"{path}: is damaged (no JSON object). Delete it: {consequence}.")
    return content


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Let one process at a time work in a folder; others wait."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / ".lock").open("w", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{out}: another preparation is at work there; waiting for it", flush=True)
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
