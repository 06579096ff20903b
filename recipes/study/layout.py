"""Where a run lies in a study's folder, and the environment of the script that makes it.

OUT/data                                             prepared text, shared by all runs
OUT/lm-states/bitext-10000                           what the frozen LM says of these training sentences;
OUT/lm-states/bitext-10000-back-translated           and of these with the made-up ones
OUT/language-models                                  where they are not the shipped ones
OUT/earlier                                          those of recipes/pretrain_earlier.sh
OUT/bitext-10000/seed-1/dropout0.2-rep0.0/baseline   a run folder
OUT/done                                             marks of finished jobs, which Snakemake reads
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from lmfusion.rows.scripts import is_back_translated
from lmfusion.runs.run_folder import RunFolder
from study.budget import PRETRAINED
from study.plan import Cell, Plan
from study.results import SYNTHETIC
from study.search import Setting
from study.task import earlier_lm, representation, without_back_translation

STORED = ("src_elmo", "src_elmo_shdemb", "distill")
"""Rows that read the shipped cloze LM's states of the training pairs, and of these alone."""
LM_FILES = {"cloze": "en-cloze.pt", "causal": "de-causal.pt"}


def parent(plan: Plan, cell: Cell, setting: Setting) -> Path:
    """Return the folder of all rows of a size, seed and setting."""
    return (
        plan.out / f"bitext-{cell.size}" / f"seed-{cell.seed}" / setting.name if cell.size else plan.out / "untrained"
    )


def run_folder(plan: Plan, cell: Cell, setting: Setting) -> RunFolder:
    """Return the run folder of a cell."""
    return RunFolder(parent(plan, cell, setting) / cell.row)


def data_settings(plan: Plan, size: int) -> Mapping[str, str]:
    """Return what a corpus script is told, to prepare the text of a size and no more."""
    return {"OUT": str(plan.out / "data-settings" / f"bitext-{size}"), **_data(plan, size)}


def language_model_settings(plan: Plan, kind: str) -> Mapping[str, str]:
    """Return what recipes/pretrain_longer.sh is told, or pretrain_earlier.sh, which has its own number of updates."""
    updates = {"cloze": plan.budget.cloze_updates, "causal": plan.budget.causal_updates}.get(kind)
    own = {"LM_UPDATES": str(updates)} if updates else {}
    return {**own, "DATA_DIR": str(plan.out / "data"), "SEED": str(plan.budget.first_seed)}


def earlier_lms(plan: Plan) -> Path:
    """Return the folder of the language models that pretrain_earlier.sh makes; EARLIER names another."""
    return Path(os.environ.get("EARLIER", plan.out / "earlier"))


def row_settings(plan: Plan, cell: Cell, setting: Setting, train_only: bool) -> Mapping[str, str]:
    """Return what a row's script is told by its environment."""
    own: dict[str, object] = {"OUT": parent(plan, cell, setting), "SEED": cell.seed, **_data(plan, cell.size)}
    budget = plan.budget
    if cell.size:
        updates = setting.updates or budget.most_updates(cell.size)
        rate = setting.learning_rate or budget.learning_rate(cell.size)
        own.update(S2S_UPDATES=updates, S2S_DROPOUT=setting.dropout, S2S_LR=rate)
        own.update(ELMO_DROPOUT=setting.representation, FT_DROPOUT=setting.representation)
        own.update(S2S_VALIDATE_EVERY=budget.validate_every, S2S_PATIENCE=budget.patience)
    if setting.bpe:
        own.update(BPE_SIZE=setting.bpe, BITEXT_BPE=1)
    row, text = cell.row, f"bitext-{cell.size}"
    if synthetic := _synthetic(plan, cell):
        own["SYNTHETIC"] = synthetic
        row, text = without_back_translation(row), f"{text}-back-translated"
    if plan.store_states and row in STORED:
        own["SRC_LM_CACHE"] = plan.out / "lm-states" / text
    if earlier_lm(cell.row):
        own["EARLIER"] = earlier_lms(plan)
    if budget.language_models == PRETRAINED and representation(cell.row):
        own["PRETRAINED"] = plan.out / "language-models"
    if train_only:
        own["TRAIN_ONLY"] = 1
    return {name: str(value) for name, value in own.items()}


def _synthetic(plan: Plan, cell: Cell) -> Path | None:
    """Return the translation that a row with back-translation is given; None where it makes its own."""
    if not (plan.budget.search and is_back_translated(cell.row)):
        return None
    reverse = plan.reverse(cell.size)
    return plan.results.synthetic(cell.size) or run_folder(plan, reverse, plan.setting(reverse)).file(SYNTHETIC)


def _data(plan: Plan, size: int) -> dict[str, str]:
    return {"DATA_DIR": str(plan.out / "data"), **({"BITEXT_LINES": str(size)} if size else {})}
