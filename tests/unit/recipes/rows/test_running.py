"""Rows one after the other: what failed, was interrupted or has other numbers, and what cannot be meant."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from row_groups import FOLDERS, ROWS


@pytest.mark.parametrize("folder", FOLDERS)
def test_all_goes_on_after_a_failed_row_and_ends_in_the_table(folder: str, recipes: Any) -> None:
    assert "failed: src_elmo." in recipes.refused(f"{folder}/all.sh", FAIL="src_elmo")
    table = recipes.calls()[-1]
    assert table[1] == "lmfusion.report.table"
    names = [Path(word).name for word in table[2 : table.index("--save")]]
    assert sorted(names) == sorted({*ROWS, "lead"} if folder == "debian_synopsis" else ROWS)
    assert recipes.command("tgt_ft"), "a row after the failed one"


def test_an_interrupted_row_ends_all(recipes: Any) -> None:
    assert recipes.run("debian_ende/all.sh", FAIL="shared", STATUS="130").returncode == 130
    assert "lmfusion.report.table" not in json.dumps(recipes.calls())


def test_rows_of_one_folder_share_their_numbers(recipes: Any) -> None:
    recipes.succeed("debian_ende/baseline.sh")
    said = recipes.refused("debian_ende/src_ft.sh", S2S_UPDATES="7")
    assert re.search(r"< S2S_UPDATES=\d+ > S2S_UPDATES=7", said)
    assert "Choose another OUT=FOLDER, or delete it." in said


def test_options_are_refused_and_help_is_given(recipes: Any) -> None:
    said = recipes.refused("debian_ende/src_ft.sh", "--updates", "9")
    assert "--updates: src_ft.sh takes no options. Set numbers in the environment" in said
    shown = recipes.run("debian_ende/src_ft.sh", "--help")
    assert shown.returncode == 0
    assert shown.stdout.startswith("SRC-FT: ")
    assert "nowhere/en-cloze.pt: no such file" in recipes.refused("debian_ende/src_ft.sh", PRETRAINED="nowhere")
