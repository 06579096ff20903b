"""A model card, in Markdown, from what a run's folder knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lmfusion.runs import model_facts
from lmfusion.runs.run_folder import RunFolder

_CHOSEN = ("--lr", "--max-update", "--dropout", "--max-tokens", "--label-smoothing", "--seed", "--arch")


def model_card(folder: Path, licence: str = "") -> str:
    """Write the card of a run's model.

    Args:
        folder: of the run, with ``run.json`` and, where the test set was translated, ``scores.json``.
        licence: its first line is named.

    Returns:
        Markdown: what it is, how it was trained, scores, how to use it, and what is not known.

    Raises:
        InputError: if the run's files are damaged.
    """
    run = RunFolder(folder)
    training = (run.record.get("steps") or {}).get("train") or {}
    lines = [f"# {run.record.get('name') or folder.name}", "", *_model(model_facts.read(run)), ""]
    lines += ["## Training", "", *_training(training, run.record), ""]
    lines += ["## Scores", "", *_scores(folder / "scores.json"), ""]
    lines += ["## Licence", "", licence.strip().split("\n")[0] or "Not given by whoever packed it.", ""]
    lines += ["## Use", "", "```", "lmfusion translate FILE.lmf text > translations", "```", ""]
    return "\n".join(lines)


def _model(facts: dict[str, Any]) -> list[str]:
    if not facts:
        return ["A transformer trained with lmfusion."]
    lines = [
        f"- architecture: {facts['architecture']}",
        f"- parameters: {facts['total']:,} ({facts['trainable']:,} trained)",
    ]
    for lm in facts["language_models"]:
        how = "frozen" if lm["frozen"] else "fine-tuned"
        lines.append(
            f"- language model on the {lm['side']} side: {lm['kind']} ({lm['fusion']}, {how}, {lm['parameters']:,})"
        )
    return lines


def _training(step: dict[str, Any], record: dict[str, Any]) -> list[str]:
    command = [str(word) for word in step.get("command") or []]
    lines = [f"- {flag}: {command[command.index(flag) + 1]}" for flag in _CHOSEN if flag in command[:-1]]
    result = step.get("result") or {}
    if result.get("best_valid_perplexity") is not None:
        best = f"{result['best_valid_perplexity']} after {result.get('best_valid_updates', '?')} updates"
        lines.append(f"- validation perplexity of the lowest validation loss: {best}")
    versions = record.get("versions") or {}
    if versions:
        lines.append("- versions: " + ", ".join(f"{name} {version}" for name, version in sorted(versions.items())))
    return lines or ["Not recorded."]


def _scores(path: Path) -> list[str]:
    if not path.is_file():
        return ["Not scored."]
    lines = []
    for name, scores in json.loads(path.read_text(encoding="utf-8")).items():
        for measure in ("bleu", "chrf", "rouge1", "rouge2", "rougeL"):
            if isinstance(value := scores.get(measure), (int, float)):
                lines.append(f"- {name}: {measure} {value:.2f}")
        lines += [f"  ({scores[key]})" for key in ("signature", "chrf_signature") if key in scores]
    return lines or ["Not scored."]
