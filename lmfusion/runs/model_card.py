"""A model card, in Markdown, from what a run's folder knows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from lmfusion.checkpoint.finding import CHECKPOINTS
from lmfusion.runs.run_folder import RunFolder

_CHOSEN = ("--lr", "--max-update", "--dropout", "--max-tokens", "--label-smoothing", "--seed", "--arch")


_LOADED = re.compile(r"loaded ([\d,]+) examples from: (\S*)train\.")
_LICENCE = "## Licence"
BEST = CHECKPOINTS[0]
_FIRST_LINES = 10_000
"""Of a training's log, among which fairseq tells the amount of text."""


def model_card(
    folder: Path, facts: dict[str, Any], licence: str = "", own_parts: Sequence[str] = (), checkpoint: str = BEST
) -> str:
    """Write the card of a run's model.

    Args:
        folder: of the run, with ``run.json`` and, where the test set was translated, ``scores.json``.
        facts: :class:`lmfusion.inspection.Inspection` of the model as a dictionary.
        licence: its first line is named.
        own_parts: names of families and integrations inside that do not come with lmfusion.
        checkpoint: name of the model's file in the run; scores and perplexity of another one are not this model's.

    Returns:
        Markdown: what it is, how it was trained, scores, how to use it, and what is not known.

    Raises:
        InputError: if the run's files are damaged.
    """
    run = RunFolder(folder)
    training = (run.record.get("steps") or {}).get("train") or {}
    lines = [f"# {run.record.get('name') or folder.name}", "", *_model(facts), ""]
    lines += ["## Training", "", *_data(run), *_training(training, run.record, is_best=checkpoint == BEST), ""]
    lines += ["## Scores", "", *_scores(run.scores if _is_scored(checkpoint, run.record) else {}), ""]
    lines += [_LICENCE, "", _shown(licence), ""]
    return "\n".join([*lines, "## Use", "", *_use(own_parts), ""])


def with_licence(card: str, licence: str) -> str:
    """Return a card that names another licence, and is the same for the rest.

    Args:
        card: from :func:`model_card`.
        licence: its first line is named.
    """
    before, mark, after = card.partition(f"{_LICENCE}\n\n")
    return f"{before}{mark}{_shown(licence)}\n{after.partition(chr(10))[2]}" if mark else card


def _shown(licence: str) -> str:
    return licence.strip().split("\n")[0] or "Not given by whoever packed it."


def _is_scored(checkpoint: str, record: dict[str, Any]) -> bool:
    """Tell whether the run's scores are those of a file: the one that it translated with, or its best."""
    steps = {name: step for name, step in (record.get("steps") or {}).items() if name != "train"}
    words = [str(word) for step in steps.values() for word in step.get("command") or []]
    translated = {Path(word).name for word in words if word.endswith(".pt")}
    return checkpoint in (translated or {BEST})


def _use(own_parts: Sequence[str]) -> list[str]:
    if not own_parts:
        return ["```", "lmfusion translate FILE.lmf text > translations", "```"]
    command = ["```", "lmfusion translate FILE.lmf text --user-dir DIR > translations", "```"]
    return [*command, "", f"DIR is the folder of code that registers {' and '.join(own_parts)}; ask for it."]


def _model(facts: dict[str, Any]) -> list[str]:
    text = facts["text"] or {}
    lines = [f"- translates: {' to '.join(text['languages'])}"] if text else []
    lines += [
        f"- architecture: {facts['architecture']}",
        f"- parameters: {facts['total']:,} ({facts['trainable']:,} trained)",
    ]
    for lm in facts["language_models"]:
        how = "frozen" if lm["frozen"] else "fine-tuned"
        lines.append(
            f"- language model on the {lm['side']} side: {lm['kind']} ({lm['fusion']}, {how}, {lm['parameters']:,})"
        )
    return lines


def _training(step: dict[str, Any], record: dict[str, Any], *, is_best: bool) -> list[str]:
    command = [str(word) for word in step.get("command") or []]
    lines = [f"- {flag}: {command[command.index(flag) + 1]}" for flag in _CHOSEN if flag in command[:-1]]
    result = step.get("result") or {}
    if is_best and result.get("best_valid_perplexity") is not None:
        best = f"{result['best_valid_perplexity']} after {result.get('best_valid_updates', '?')} updates"
        lines.append(f"- validation perplexity of the lowest validation loss: {best}")
    versions = record.get("versions") or {}
    if versions:
        lines.append("- versions: " + ", ".join(f"{name} {version}" for name, version in sorted(versions.items())))
    return lines or ["Not recorded."]


def _data(run: RunFolder) -> list[str]:
    """Return the amount of training text as the training's log tells it; nothing where there is no log."""
    log = run.file("train.log")
    if not log.is_file():
        return []
    with log.open(encoding="utf-8", errors="replace") as stream:
        found = next(filter(None, map(_LOADED.search, islice(stream, _FIRST_LINES))), None)
    return [f"- data: {Path(found[2]).name or found[2]}, {found[1]} pairs"] if found else []


def _scores(found: dict[str, Any]) -> list[str]:
    lines = []
    for name, scores in found.items():
        if not isinstance(scores, dict):
            continue
        for measure in ("bleu", "chrf", "rouge1", "rouge2", "rougeL"):
            if isinstance(value := scores.get(measure), (int, float)):
                lines.append(f"- {name}: {measure} {value:.2f}")
        lines += [f"  ({scores[key]})" for key in ("signature", "chrf_signature") if key in scores]
    return lines or ["Not scored."]
