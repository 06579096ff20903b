"""Which rows a folder has: the same scripts in each, of a few lines, which differ in a few."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Any

import pytest
from row_groups import (
    BERT_ROWS,
    DENOISING,
    EARLIER,
    FOLDERS,
    LSTMS,
    MADE_UP,
    PREFIX_LMS,
    RIVALS,
    ROWS,
    SECOND_STAGES,
)
from study.task import TASKS

RECIPES = Path(__file__).parents[4] / "recipes"


def scripts(folder: str) -> dict[str, str]:
    """The text of every script of a folder, by name."""
    return {path.stem: path.read_text(encoding="utf-8") for path in (RECIPES / folder).glob("*.sh")}


def delta(script: str) -> list[str]:
    """What a row says beyond its first lines."""
    return script.split('_corpus.sh"\n\n', 1)[1].splitlines()


def test_both_folders_have_the_papers_rows() -> None:
    first, second = (scripts(folder) for folder in FOLDERS)
    beyond = {*EARLIER, *BERT_ROWS, *RIVALS, *PREFIX_LMS, *MADE_UP, *SECOND_STAGES, *DENOISING}
    beyond |= {"reverse", "tgt_shallow", "rivals", "shared_bitext_bpe", "lm_quality"}
    assert set(first) == {*ROWS, *beyond, "all", "study", "_corpus"}
    further = {"src_attend", "denoising", "lstm", "lstm_src_elmo", "lstm_src_elmo_shdemb"}
    assert set(second) == set(first) - beyond | {"lead", "whole", *further}, "both sides are English"
    for name in (*ROWS, *further - {"denoising"}):
        assert first[name] == second[name], "the experiment is the same"


def test_the_second_pairs_rows_are_those_of_the_first_and_say_what_has_to_be_made_before(
    recipes: Any, tmp_path: Path
) -> None:
    second, first = scripts("debian_enfr"), scripts("debian_ende")
    rows = set(second) - {"_corpus", "study", "pretrain"}
    assert rows == set(TASKS["debian_enfr"].rows)
    assert {row: second[row] for row in rows} == {row: first[row] for row in rows}
    corpus, models = tmp_path / "en-fr", tmp_path / "models"
    made = {"CORPUS": str(corpus), "PRETRAINED": str(models)}
    for path, missing in ((corpus, "build.py --lang fr"), (models, "bash recipes/debian_enfr/pretrain.sh")):
        assert missing in recipes.run("debian_enfr/baseline.sh", **made).stderr
        path.mkdir()
    for name in ("en-cloze.pt", "spm.model", "dict.txt"):
        (models / name).touch()
    recipes.succeed("debian_enfr/src_elmo_shdemb.sh", **made)
    command = " ".join(recipes.command("src_elmo_shdemb"))
    assert "-s en -t fr" in command
    assert f"--src-lm {models}/en-cloze.pt" in command


def test_rows_of_ones_own_text_are_those_of_the_corpus() -> None:
    own, corpus = scripts("own"), scripts("debian_ende")
    with_an_lm_of_their_own = {*DENOISING, *BERT_ROWS, "reverse"}
    rows = set(own) & set(corpus) - {"_corpus", *with_an_lm_of_their_own}
    assert rows >= {*ROWS, *LSTMS, *RIVALS, *PREFIX_LMS}
    assert {name: own[name] for name in rows} == {name: corpus[name] for name in rows}


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_row_is_a_few_lines_and_two_rows_differ_in_a_few(folder: str) -> None:
    texts = scripts(folder)
    for name in ROWS:
        assert len(delta(texts[name])) <= 3, name
        assert texts[name].splitlines()[1].startswith("# "), "says what the row is"
        changed = difflib.unified_diff(texts["baseline"].splitlines(), texts[name].splitlines(), n=0)
        added = [line for line in changed if re.match(r"\+(?!\+)", line)]
        assert len(added) <= 4, name
