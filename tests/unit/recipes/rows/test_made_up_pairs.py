"""Rows that learn from pairs of which one side is a translation: back-translation, and where it comes from."""

from __future__ import annotations

import lzma
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from row_groups import BACK_TRANSLATED

CORPUS = Path(__file__).parents[4] / "data-prep" / "debian" / "en-de"


def make_synthetic_corpora(recipes: Any) -> None:
    """Let the stub write three training pairs where the corpus with made-up pairs is to be."""
    folder = """folder="$(printf '%s' "$*" | sed 's/.*--out \\([^ ]*\\).*/\\1/')" && mkdir -p "$folder" """
    recipes.answer("*text.synthetic*", f"""{folder} && printf '1\\n2\\n3\\n' >"$folder/train.en" """)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("row", BACK_TRANSLATED)
def test_back_translation_is_the_row_without_it_on_more_pairs(row: str, given: bool, recipes: Any) -> None:
    """The translation comes from a baseline of the other direction, or is given."""
    make_synthetic_corpora(recipes)
    made = recipes.out / "made.en"
    made.write_text("a house\n", encoding="utf-8")
    without = BACK_TRANSLATED[row]
    recipes.succeed(f"debian_ende/{without}.sh")
    recipes.succeed(f"debian_ende/{row}.sh", **({"SYNTHETIC": str(made)} if given else {}))
    command = recipes.command(row)
    data = Path(command[1])
    assert (data.name, data.parents[1]) == ("bitext-3", recipes.out / "data")
    expected = [word.replace(f"/{without}/", f"/{row}/") for word in recipes.command(without)]
    moved = [
        word.replace(f"{recipes.out}/data/", f"{data.parent}/").replace("bitext-10000", "bitext-3") for word in expected
    ]
    assert command == moved
    (call,) = [call for call in recipes.calls() if "lmfusion.text.synthetic" in call]
    reverse = [call for call in recipes.calls() if call[2:4] == [f"{recipes.out}/reverse", "train"]]
    assert len(reverse) == (not given)
    assert (call[call.index("--add") + 1] == str(made)) is given
    if not given:
        assert [word for word in reverse[0] if word in ("en", "de")] == ["de", "en"]


def test_a_translation_that_is_not_there_is_named(recipes: Any) -> None:
    missing = str(recipes.out / "made.en")
    assert missing in recipes.refused("debian_ende/shared_back_translation.sh", SYNTHETIC=missing)


def test_the_model_of_the_other_direction_leaves_its_translation_of_plain_text(recipes: Any) -> None:
    for script in ("lstm", "reverse"):
        (recipes.out / script).mkdir()
        recipes.succeed(f"debian_ende/{script}.sh", TRAIN_ONLY="1", MADE_UP="3")
    swap = {"en": "de", "de": "en"}
    expected = [swap.get(word, word.replace("/lstm/", "/reverse/")) for word in recipes.command("lstm")]
    assert recipes.command("reverse") == expected
    (call,) = [call for call in recipes.calls() if call[:3] == ["-m", "lmfusion.cli", "translate"]]
    assert call[3] == f"{recipes.out}/reverse"
    with lzma.open(CORPUS / "mono.train.de.xz", "rt", encoding="utf-8") as stream:
        assert Path(call[4]).read_text(encoding="utf-8") == "".join(islice(stream, 3))
    assert lzma.decompress((recipes.out / "reverse" / "synthetic.xz").read_bytes()) == b"", "the stub says nothing"
