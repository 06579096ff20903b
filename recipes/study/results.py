"""Finished runs that are committed: small files from which every table can be made, and what need not be run again.

recipes/debian_ende/results/cpu/
    numbers.json                        what the runs have in common
    tries.json                          configurations that were trained, with their validation losses
    choices.json                        settings, and the validation losses they were chosen by
    bitext-10000/baseline/seed-1/       run.json, scores.json, train.log (in short), test.hyp, and
                                        blind.hyp where the task has a blind test
    bitext-10000/reverse/               run.json, train.log, and synthetic.xz, which rows with back-translation read
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmfusion.errors import InputError
from lmfusion.rows.scripts import REVERSE
from lmfusion.runs.run_folder import RUN_FILE, SCORES_FILE, RunFolder
from study.search import Setting, Tried, reading

if TYPE_CHECKING:
    from study.plan import Cell

ROOT = Path(__file__).resolve().parents[2]
NUMBERS, TRIES, CHOICES = "numbers.json", "tries.json", "choices.json"
BLIND = "blind.hyp"
"""In a run folder, the blind test's translation."""
SYNTHETIC = "synthetic.xz"
"""In the run folder of the model of the other direction, what it made of plain text."""
LOG_EVERY = 50
"""Updates between the training log's lines that are kept."""
_TRAINING = re.compile(r'\| INFO \| train_inner \|.*"num_updates": "?(\d+)')
_USER_DIR = re.compile(r'"--user-dir",\s*"([^"]+)/lmfusion"')
_GIVEN = ("EARLIER", "SRC_LM_CACHE")
"""Variables that name folders of files which runs read, wherever they lie."""
_KEPT = re.compile(r"\| INFO \| valid \||loaded [\d,]+ examples from: \S*train\.")


@dataclass(frozen=True)
class Results:
    """A folder of committed runs of one budget; None where what is run has no such folder."""

    folder: Path | None
    settings: Path | None = None
    """The folder of committed runs whose choices hold for these, too, where there are none of their own."""

    def check(self, now: Mapping[str, Any]) -> None:
        """Refuse a folder whose runs were made with other numbers.

        Raises:
            InputError: they were.
        """
        if self.folder and (path := self.folder / NUMBERS).is_file():
            before = json.loads(path.read_text(encoding="utf-8"))
            if said := differing(before, now):
                raise InputError(f"{self.folder}: its runs were made with other numbers ({said}). Move it away.")

    def path(self, cell: Cell) -> Path | None:
        """Where a cell's run lies if it is here."""
        if self.folder is None:
            return None
        parts = [f"bitext-{cell.size}", cell.row, f"seed-{cell.seed}"] if cell.size else ["untrained", cell.row]
        return self.folder.joinpath(*parts)

    def has(self, cell: Cell) -> bool:
        """Whether a cell's run is here, with its score."""
        path = self.path(cell)
        return path is not None and bool(RunFolder(path).scores.get("test"))

    def has_blind(self, cell: Cell) -> bool:
        """Whether a cell's translation of the blind test is here."""
        path = self.path(cell)
        return path is not None and (path / BLIND).is_file()

    def choices(self) -> list[dict[str, Any]]:
        """Return what was chosen, as ``Plan.choices`` gives it."""
        return _choices(self.folder)

    def tries(self) -> dict[tuple[str, int, int], Tried]:
        """Return the configurations that were trained, by row, size and number.

        Raises:
            InputError: their file is damaged.
        """
        path = self.folder / TRIES if self.folder else None
        if path is None or not path.is_file():
            return {}
        found = {}
        with reading(path):
            for line in path.read_text(encoding="utf-8").splitlines():
                each = json.loads(line)
                found[each["row"], each["size"], each["number"]] = Tried.from_json(line)
        return found

    def chosen(self) -> dict[tuple[str, int], Tried]:
        """Return the settings and their losses by row and size."""
        return {**_chosen(self.settings), **_chosen(self.folder)}

    def add(self, cell: Cell, run: RunFolder, out: Path) -> bool:
        """Copy what is small of a finished run, without this machine's paths; False if all of it is here already."""
        path = self.path(cell)
        if path is None:
            return False
        path.mkdir(parents=True, exist_ok=True)
        texts = {} if self.has(cell) else small(run, out)
        if run.file(BLIND).is_file() and not self.has_blind(cell):
            texts = {BLIND: run.file(BLIND).read_text(encoding="utf-8"), **texts}  # scores last: with them it is whole
        for name, text in texts.items():
            (path / name).write_text(text, encoding="utf-8")
        return bool(texts)

    def synthetic(self, size: int) -> Path | None:
        """Return the committed translation that rows with back-translation read, if it is here."""
        path = self.folder / f"bitext-{size}" / REVERSE / SYNTHETIC if self.folder else None
        return path if path and path.is_file() else None

    def add_synthetic(self, size: int, run: RunFolder, out: Path) -> None:
        """Copy that translation of a finished model of the other direction, and how it was trained."""
        if self.folder is None or self.synthetic(size) or not run.file(SYNTHETIC).is_file():
            return
        path = self.folder / f"bitext-{size}" / REVERSE
        path.mkdir(parents=True, exist_ok=True)
        for name, text in _training(run, out).items():
            (path / name).write_text(text, encoding="utf-8")
        shutil.copyfile(run.file(SYNTHETIC), path / SYNTHETIC)

    def describe(
        self,
        numbers: Mapping[str, Any],
        choices: Iterable[dict[str, Any]],
        tries: Mapping[tuple[str, int, int], Tried],
    ) -> None:
        """Write what the runs have in common, and what was tried and chosen, besides what was before."""
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        known = {(each["row"], each["size"]): each for each in [*choices, *self.choices()]}
        for name, content in ((NUMBERS, dict(numbers)), (CHOICES, [known[name] for name in sorted(known)])):
            (self.folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        if every := {**tries, **self.tries()}:  # what is committed stays as it was
            lines = [_line(*name, every[name]) for name in sorted(every)]
            (self.folder / TRIES).write_text("".join(lines), encoding="utf-8")


def small(run: RunFolder, out: Path) -> dict[str, str]:
    """Return what is kept of a finished run by file name, scores and texts if it has any; without the path ``out``."""
    texts = _training(run, out)
    if "test" in run.scores:
        hypotheses = run.scores["test"]["hypotheses"]
        texts[hypotheses] = run.file(hypotheses).read_text(encoding="utf-8")
        texts[SCORES_FILE] = without_paths(run.file(SCORES_FILE).read_text(encoding="utf-8"), out)
    return texts


def _training(run: RunFolder, out: Path) -> dict[str, str]:
    texts = {RUN_FILE: run.file(RUN_FILE).read_text(encoding="utf-8")}
    if run.log("train").is_file():
        texts["train.log"] = shortened(run.log("train").read_text(encoding="utf-8", errors="replace").splitlines())
    return {name: without_paths(text, out) for name, text in texts.items()}


def _choices(folder: Path | None) -> list[dict[str, Any]]:
    path = folder / CHOICES if folder else None
    if path is None or not path.is_file():
        return []
    with reading(path):
        found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _chosen(folder: Path | None) -> dict[tuple[str, int], Tried]:
    if folder is None:
        return {}
    names = [field.name for field in dataclasses.fields(Setting)]
    found = {}
    with reading(folder / CHOICES):
        for each in _choices(folder):
            setting = Setting(**{name: each[name] for name in names if name in each})
            loss = each.get("bits_per_character", {}).get(setting.name)
            found[each["row"], each["size"]] = Tried(setting, math.inf if loss is None else loss)
    return found


def _line(row: str, size: int, number: int, tried: Tried) -> str:
    values = json.loads(tried.to_json())
    return json.dumps({"row": row, "size": size, "number": number, **values}) + "\n"


def differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Which numbers of a study are not what they were, in words; nothing where all are."""
    other = [name for name in now if before.get(name) != now[name]]
    return "; ".join(f"{name} = {before.get(name)} then, {now[name]} now" for name in other)


def shortened(lines: Iterable[str]) -> str:
    """The lines of a training log that a report reads, of training every LOG_EVERY updates."""
    kept = []
    for line in lines:
        training = _TRAINING.search(line)
        if (training and int(training[1]) % LOG_EVERY == 0) or _KEPT.search(line):
            kept.append(line + "\n")
    return "".join(kept)


def without_paths(text: str, out: Path) -> str:
    """The same without the folders that the repository and the study lie in.

    The run may have used the package of another clone: its ``--user-dir`` tells which.
    """
    given = [(Path(os.environ[name]).resolve(), name) for name in _GIVEN if os.environ.get(name)]
    clones = {Path(folder) for folder in _USER_DIR.findall(text) if folder.startswith("/")}
    for folder, name in (*given, (out.resolve(), "OUT"), *((clone, ".") for clone in sorted(clones | {ROOT}))):
        text = text.replace(f"{folder}/", f"{name}/").replace(str(folder), name)
    return text.replace('"./', '"').replace(f"{out}/", "OUT/")
