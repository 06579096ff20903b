"""Names in a file of a stranger are shown as they are: no markup, no command to the terminal."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from lmfusion.commands import embed, inspect
from lmfusion.inspection import Inspection, LanguageModel, Mix

ODD = "[/b] [bold]x \x1b]0;title\x07\x1b[2J"
SHOWN = "[/b] [bold]x  ]0;title [2J"


def test_what_a_checkpoint_says_of_itself() -> None:
    known = LanguageModel.__dataclass_fields__
    numbers: dict[str, Any] = dict.fromkeys(known, 1)
    texts = dict.fromkeys(("side", "kind", "fusion", "dictionary_hash", "fingerprint"), ODD)
    lm = LanguageModel(**{**numbers, **{name: text for name, text in texts.items() if name in known}})
    start = {"side": ODD, "kind": ODD, "fingerprint": ODD, "fusion": ODD}
    mix = Mix(ODD, 1.0, {ODD: 1.0})
    found = Inspection(
        ODD, ODD, ODD, 3, 1, 1, 0, [lm], [mix], [start], {ODD: ODD}, {"dictionaries": [], "bpe": ODD, "tokenizer": ODD,
        "languages": [ODD]}, ODD
    )  # fmt: skip
    stream = io.StringIO()
    inspect._show(found, Console(file=stream, highlight=False, soft_wrap=True, force_terminal=False))
    text = stream.getvalue()
    assert SHOWN in text
    assert "\x1b" not in text
    assert "\x07" not in text


def test_the_neighbours_of_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    vectors = SimpleNamespace(most_similar=lambda word, topn: [("[/b]", 0.5)])
    embed._show(vectors, ["[bold]x"])
    text = capsys.readouterr().out
    assert "[bold]x" in text
    assert "[/b] 0.50" in text
