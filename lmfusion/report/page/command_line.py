"""The flags of a fairseq command that a run folder has recorded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

_SHORT = {"-s": "source-lang", "-t": "target-lang", "-a": "arch"}
_HYDRA = {"model._name": "arch", "model": "arch", "task._name": "task"}
_NUMBER = re.compile(r"-[\d.]")
ON = "on"

# Where things lie and how they are logged; no experiment differs by these alone.
_BOOKKEEPING = {
    *("src-lm-cache", "save-dir", "user-dir", "path", "results-path", "restore-file", "sentencepiece-model", "seed"),
    *("num-workers", "log-format", "log-interval", "log-file", "tensorboard-logdir", "wandb-project"),
    *("save-interval", "save-interval-updates", "keep-interval-updates", "keep-last-epochs", "keep-best-checkpoints"),
    *("no-epoch-checkpoints", "no-last-checkpoints", "no-save-optimizer-state", "no-progress-bar"),
}


@dataclass(frozen=True)
class Flags:
    """A command's flags by name without dashes; one without a value is "on"."""

    program: str
    data: str | None
    """The first word after the program that is no flag: fairseq's data folder."""
    values: Mapping[str, str]

    def get(self, name: str) -> str | None:
        """Return a flag's value; None if it was not given."""
        return self.values.get(name)

    def has(self, name: str) -> bool:
        """Tell whether a flag was given, and not as ``--name=false``."""
        return self.values.get(name, "false").lower() != "false"

    def settings(self) -> dict[str, str]:
        """Return the flags that decide what comes out: without paths to be written, seed and logging."""
        return {name: value for name, value in self.values.items() if name not in _BOOKKEEPING}


def parse(command: Sequence[str]) -> Flags:
    """Read a command's words: ``--name value``, ``--name=value``, ``-s en``, or ``a.name=value`` as Hydra has it."""
    words = list(command)
    start = _program(words)
    values: dict[str, str] = {}
    data, name = None, ""
    for word in words[start + 1 :]:
        if word.startswith("-") and not _NUMBER.match(word):
            name, separator, value = word.lstrip("-").partition("=")
            name = _SHORT.get(word, name.replace("_", "-"))
            values[name] = value if separator else ON
        elif name:
            values[name] = word if values[name] == ON else f"{values[name]} {word}"
        elif re.match(r"\+*[\w.]+=", word):
            key, _, value = word.lstrip("+").partition("=")
            values[_HYDRA.get(key) or key.rpartition(".")[2].replace("_", "-")] = value
        elif data is None:
            data = word
    return Flags(PurePath(words[start]).name if words else "", data or values.get("data"), values)


def _program(words: Sequence[str]) -> int:
    """Return where the program is: past python, and past its -m."""
    for number, word in enumerate(words):
        name = PurePath(word).name
        if not name.startswith("python") and not word.startswith("-"):
            return number
    return 0
