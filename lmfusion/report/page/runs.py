"""A run folder as a report sees it, in whatever state it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lmfusion.report.page import strategy
from lmfusion.report.page.command_line import Flags, parse
from lmfusion.report.page.find import Found
from lmfusion.runs.train_log import TrainLog

_BITEXT = re.compile(r"bitext-(\d+)(?:-and-lm)?$")  # with a language model's dictionary beside it (recipes/_rows.sh)
_SIDES = re.compile(r"test\.([^.-]+)-([^.-]+)\.\2\.bin")


@dataclass(frozen=True)
class Run:
    """Facts of a run; of one that cannot be read, its name and the reason."""

    found: Found
    broken: str = ""
    """Why nothing of it can be used; empty if it can."""
    state: str = ""
    """Why it has no final score; empty if it has."""
    reason: str = ""
    """The last words of the step that failed."""
    record: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By test set, only those with figures."""
    outputs: Mapping[str, Path] = field(default_factory=dict)
    """The texts that were scored, by test set, as far as they are there."""
    printed: Path | None = None
    """What fairseq-generate printed, if it is there."""
    model: Mapping[str, Any] = field(default_factory=dict)
    log: TrainLog = field(default_factory=TrainLog)
    loaded_pairs: int | None = None
    """Training pairs as the log counts them: after filtering."""

    @property
    def name(self) -> str:
        """Return what it is called in the report."""
        return self.found.name

    def step(self, name: str) -> Mapping[str, Any]:
        """Return a step's record; empty where there is none."""
        step: Mapping[str, Any] = self.record.get("steps", {}).get(name, {})
        return step

    def result(self, step: str) -> Mapping[str, Any]:
        """Return the figures of a step; empty until it has finished."""
        return self.step(step).get("result") or {}

    @cached_property
    def flags(self) -> Flags:
        """Return the flags of the training or, where nothing is trained, of what made the output."""
        return parse(self.step("train").get("command") or self.step("generate").get("command") or [])

    @cached_property
    def generation(self) -> Flags:
        """Return the flags of the generation."""
        return parse(self.step("generate").get("command") or [])

    @property
    def is_language_model(self) -> bool:
        """Tell whether it pretrains a language model."""
        return strategy.is_language_model(self.flags)

    @property
    def has_training(self) -> bool:
        """Tell whether anything is trained, other than in a lead baseline."""
        return bool(self.step("train"))

    @property
    def seed(self) -> int | None:
        """Return the seed of its training."""
        seed = self.record.get("seed", self.flags.get("seed"))
        return int(seed) if seed is not None and self.has_training else None

    @property
    def pairs(self) -> int | None:
        """Return the bitext size: that in the data folder's name (the first N pairs), else what the log counts.

        Pairs that were made up beside them do not count. None if nothing is trained, or neither tells.
        """
        if real := strategy.made_up_pairs(self.flags)[1]:
            return real
        match = _BITEXT.search((self.flags.data or "").rstrip("/"))
        return int(match[1]) if match else self.loaded_pairs

    @property
    def language_pair(self) -> tuple[str, str]:
        """Return source and target language, by the command or by the names of its data; empty where neither says."""
        for flags in (self.flags, self.generation):
            if flags.get("source-lang") and flags.get("target-lang"):
                return flags.get("source-lang") or "", flags.get("target-lang") or ""
        matches = (_SIDES.fullmatch(name) for name in self.data_sha256)
        return next(((match[1], match[2]) for match in matches if match), ("", ""))

    @property
    def strategy(self) -> str:
        """Return the paper's name for it, or the one it was given by hand."""
        if self.found.row:
            return self.found.row
        if self.hides_its_flags:
            return self.name
        return strategy.name(self.flags, self.generation)

    @property
    def hides_its_flags(self) -> bool:
        """Tell whether its flags are in a configuration file, so that the command does not tell what it is."""
        return self.flags.has("config-name") or self.flags.has("config-dir")

    @property
    def data_sha256(self) -> Mapping[str, str]:
        """Return SHA-256 of its binarized data by file."""
        return self.step("train").get("data_sha256") or self.step("generate").get("data_sha256") or {}

    def data_hashes(self, beginning: str) -> tuple[str, ...]:
        """Return hashes of those files whose names begin like this, in the order of the names."""
        return tuple(digest for name, digest in sorted(self.data_sha256.items()) if name.startswith(beginning))

    @property
    def lost_loss(self) -> str:
        """Return in words where its loss was no number; empty if it always was one."""
        places = self.log.without_loss()
        if not places:
            return ""
        kind, update = places[0]
        kinds = {each for each, _ in places}
        more = f" and later, {len(places)} logged losses in all" if len(places) > 1 else ""
        both = " and validation" if kind == "training" and len(kinds) > 1 else ""
        return f"NaN or infinite {kind}{both} loss at update {update:,}{more}"
