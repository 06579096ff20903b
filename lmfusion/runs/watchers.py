"""What to make of a command's output while it runs: the live line, and the result when it ends."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from lmfusion.runs import train_log
from lmfusion.runs.live_line import LiveLine, clock
from lmfusion.runs.pace import BatchEstimate, TrainingEstimate

_TRANSLATED = re.compile(r"Translated ([\d,]+) sentences \(([\d,]+) tokens\) in ([\d.]+)s .*?([\d.]+) tokens/s")


class Watcher(ABC):
    """Reads a command's output line by line."""

    continues = False
    """True if a second attempt goes on where the first one ended, so that its output belongs to the same log."""

    @abstractmethod
    def take(self, text: str, line: LiveLine) -> None:
        """Take in one line of output and show what it says."""

    @abstractmethod
    def result(self, log: Path) -> dict[str, Any]:
        """Return figures for run.json, from the whole log."""

    @abstractmethod
    def summary_text(self, result: dict[str, Any]) -> str:
        """Return the result in a few words."""


class TrainingWatcher(Watcher):
    """fairseq-train with `--log-format json`."""

    continues = True

    def __init__(self, label: str, updates: int, show_validation: bool = False) -> None:
        self._label = label
        self._updates = updates
        self._show_validation = show_validation
        self._log = train_log.TrainLog()
        self._estimate = TrainingEstimate(updates)

    def take(self, text: str, line: LiveLine) -> None:
        """Take in one line of output and show what it says."""
        said = self._log.add_line(text)
        if said is None:
            return
        kind, progress = said
        if kind == "train":
            self._estimate.saw_updates(progress.updates, time.monotonic())
            line.show(self._describe(progress))
            return
        self._estimate.saw_validation(progress.updates, time.monotonic())
        if self._show_validation:
            line.keep(f"  {self._label}: update {progress.updates:,}, validation perplexity {progress.perplexity:.1f}")

    def _describe(self, progress: train_log.Progress) -> str:
        left = _left(self._estimate.seconds_left(progress.updates))
        return (
            f"  {self._label}: {progress.updates:,}/{self._updates:,}  loss {progress.loss:.2f}  "
            f"ppl {progress.perplexity:.1f}  {progress.words_per_second:,.0f} tok/s{left}"
        )

    def result(self, log: Path) -> dict[str, Any]:
        """Return figures for run.json, from the whole log."""
        return train_log.read_file(log).summary()

    def summary_text(self, result: dict[str, Any]) -> str:
        """Return the result in a few words."""
        early = " (early stop)" if 0 < result["updates"] < self._updates else ""
        words = [f"{result['updates']:,} updates{early}"]
        if result["tokens_per_second"]:
            words.append(f"{result['tokens_per_second']:,.0f} tokens/s")
        if result["best_valid_perplexity"] is not None:
            words.append(f"validation perplexity {result['best_valid_perplexity']:.2f} at the lowest loss")
        return ", ".join(words)


class GenerationWatcher(Watcher):
    """fairseq-generate."""

    def __init__(self, label: str, sentences: int) -> None:
        self._label = label
        self._sentences = sentences
        self._done = 0
        self._estimate = BatchEstimate(sentences)

    def take(self, text: str, line: LiveLine) -> None:
        """Take in one line of output and show what it says."""
        if not text.startswith("H-"):
            return
        self._done += 1
        self._estimate.saw_item(self._done, time.monotonic())
        left = _left(self._estimate.seconds_left(self._done))
        line.show(f"  {self._label}: sentence {self._done:,}/{self._sentences:,}{left}")

    def result(self, log: Path) -> dict[str, Any]:
        """Return figures for run.json, from the whole log."""
        found = _TRANSLATED.findall(log.read_text(encoding="utf-8", errors="replace"))
        if not found:
            return {"sentences": self._done, "tokens": None, "tokens_per_second": None}
        sentences, tokens, _, speed = found[-1]
        return {
            "sentences": int(sentences.replace(",", "")),
            "tokens": int(tokens.replace(",", "")),
            "tokens_per_second": float(speed),
        }

    def summary_text(self, result: dict[str, Any]) -> str:
        """Return the result in a few words."""
        speed = f", {result['tokens_per_second']:,.0f} tokens/s" if result["tokens_per_second"] else ""
        return f"{result['sentences']:,} sentences{speed}"


def _left(seconds: float | None) -> str:
    """Return time left as the end of a line; nothing where it is unknown."""
    return "" if seconds is None else f"  {clock(seconds)} left"
