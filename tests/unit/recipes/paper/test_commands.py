"""Every command that a recipe shows is one that fairseq and lmfusion take, flag by flag."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from fairseq import options

from lmfusion.cli import build_parser

RECIPES = Path(__file__).parents[4] / "recipes"
FOLDERS = ("lm", "wmt18_ende", "wmt18_entr", "cnn_dm")
SCRIPTS = [f"{folder}/{path.stem}" for folder in FOLDERS for path in sorted((RECIPES / folder).glob("[a-z]*.sh"))]
ROWS = [name for name in SCRIPTS if not name.endswith(("/all", "/sweep"))]
PROGRAMS = {"fairseq-train", "fairseq-generate", "lmfusion", "python"}
TEST_SETS = {"wmt18_ende": 7, "wmt18_entr": 2, "cnn_dm": 1}

pytestmark = pytest.mark.slow


def commands(shown: str) -> list[list[str]]:
    """The commands of a dry run from the program on, without what starts them on several GPUs."""
    lines = [line for line in shown.splitlines()[1:] if line and not line.startswith(("#", "=="))]
    words = [shlex.split(line) for line in lines]
    return [command[next(n for n, word in enumerate(command) if word in PROGRAMS) :] for command in words]


def fairseq_takes(parser: Any, words: list[str]) -> Any:
    """What fairseq's own parser makes of a command line; a flag that it does not know ends the test."""
    place = words.index("--user-dir")  # this process has imported it already
    return options.parse_args_and_arch(parser, input_args=[*words[:place], *words[place + 2 :]])


def shown_by(script: str, scripts: Any) -> list[list[str]]:
    words = [*(["--optimizer", "adam"] if script.startswith("lm/") else []), "--gpus", "8"]
    shown = scripts.dry(script, *words)
    return commands("\n" + shown if script.endswith("lead3") else shown)


@pytest.mark.parametrize("script", ROWS)
def test_every_flag_of_every_command_is_known(script: str, scripts: Any) -> None:
    """One generation of those that differ only in the test set; lead3 says no batch in front."""
    generated: set[str] = set()
    for program, *words in shown_by(script, scripts):
        if program == "fairseq-train":
            args = fairseq_takes(options.get_training_parser(), words)
            assert args.update_freq == [4 if script.startswith("lm/") else 16]
        elif program == "fairseq-generate":
            place = words.index("--gen-subset")
            rest = shlex.join(words[:place] + words[place + 2 :])
            if rest not in generated:
                args = fairseq_takes(options.get_generation_parser(), words)
                assert (args.beam, args.distributed_world_size) == (5, 1)
            generated.add(rest)
        elif program == "lmfusion":
            assert build_parser().parse_args(words).command in {"average", "export"}
        else:
            assert words[:2] == ["-P", "-m"] or (RECIPES.parent / words[0]).is_file()
    assert len(generated) == (0 if script.startswith("lm/") or script.endswith("lead3") else 1)


@pytest.mark.parametrize("script", ["wmt18_ende/tgt_elmo", "wmt18_entr/src_elmo", "cnn_dm/baseline"])
def test_a_row_is_trained_averaged_then_generated_and_scored_for_each_test_set(script: str, scripts: Any) -> None:
    programs = [command[0] for command in shown_by(script, scripts)]
    each = ["fairseq-generate", "python"] * TEST_SETS[script.split("/")[0]]
    assert programs == ["fairseq-train", "lmfusion", *each, "python"]
