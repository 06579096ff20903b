"""The command lmfusion: what it prints, and that a user's mistake is one line and status 2."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path

import pytest

import lmfusion
from lmfusion import cli
from lmfusion.errors import InputError, LMFusionError

HYPOTHESES = "the dog bit the man .\nthe cat sat on the mat .\n"
REFERENCE = "the dog bit a man .\nthe cat sat on the red mat .\n"
GENERATED = (
    "S-1\t▁s\nT-1\t▁the ▁cat ▁sat ▁on ▁the ▁red ▁mat ▁.\nH-1\t-1\t▁the ▁cat ▁sat ▁on ▁the ▁mat ▁.\n"
    "D-1\t-1\tthe cat sat on the mat .\n"
    "S-0\t▁s\nT-0\t▁the ▁dog ▁bit ▁a ▁man ▁.\nH-0\t-1\t▁the ▁dog ▁bit ▁the ▁man ▁.\nD-0\t-1\tthe dog bit the man .\n"
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with hyp, ref and generate.log of the same two sentences, and a base that equals ref."""
    for name, text in {"hyp": HYPOTHESES, "ref": REFERENCE, "base": REFERENCE, "generate.log": GENERATED}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_user_dir_is_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["user-dir"]) == 0
    assert capsys.readouterr().out == f"{lmfusion.USER_DIR}\n"
    assert (Path(lmfusion.USER_DIR) / "__init__.py").samefile(str(lmfusion.__file__))


def test_installed_command_prints_only_the_folder_on_standard_output() -> None:
    command = Path(sys.executable).with_name("lmfusion")
    printed = subprocess.run([command, "user-dir"], check=True, capture_output=True, text=True)
    assert printed.stdout == f"{lmfusion.USER_DIR}\n"


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["--help"])
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert all(command in printed for command in ("user-dir", "inspect", "score"))


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parsers below a parser: of its commands, and of theirs."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield each
                yield from parsers(each)


def examples_of(parser: argparse.ArgumentParser) -> list[list[str]]:
    """The words of its own command in the indented lines below the last "example:" of its help."""
    lines = re.split(r"\nexamples?:\n", parser.format_help())[-1].splitlines()
    indented = takewhile(lambda line: line.startswith("  "), lines)
    found = [shlex.split(line, comments=True) for line in indented if "lmfusion" in line]
    program = parser.prog.split()
    return [words for words in found if words[: len(program)] == program]


EVERY = {parser.prog: parser for parser in parsers(cli.build_parser())}


def test_every_command_is_looked_at() -> None:
    assert len(EVERY) >= len(cli.COMMANDS)
    assert {"lmfusion report", "lmfusion score", "lmfusion score bleu", "lmfusion score rouge"} <= set(EVERY)


@pytest.mark.parametrize("name", EVERY)
def test_help_ends_in_an_example_that_the_command_takes(name: str) -> None:
    found = examples_of(EVERY[name])
    assert found, f"{name} --help has no line below 'example:' that begins with two spaces and {name}"
    for words in found:
        ends = [number for number, word in enumerate(words) if word in ("<", ">", "|", "&&")]
        args = cli.build_parser().parse_args(words[1 : min(ends, default=len(words))])
        assert callable(args.run)


def test_examples_are_the_lines_below_their_heading_and_nothing_else() -> None:
    parser = argparse.ArgumentParser("lmfusion x", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flag", help="as lmfusion x")
    assert examples_of(parser) == []
    parser.epilog = "example:\n  lmfusion x --flag 'a b' > out  # as it is\n  lmfusion y"
    assert examples_of(parser) == [["lmfusion", "x", "--flag", "a b", ">", "out"]]


@pytest.mark.parametrize(
    ("arguments", "valid"),
    [(["frobnicate"], ["user-dir", "inspect", "score"]), (["score", "meteor"], ["bleu"]), ([], ["COMMAND"])],
)
def test_unknown_command_is_refused_with_the_valid_ones(
    capsys: pytest.CaptureFixture[str], arguments: list[str], valid: list[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    message = capsys.readouterr().err.partition("error: ")[2]
    assert all(command in message for command in [*arguments[-1:], *valid])


def test_user_errors_are_value_errors_of_ours() -> None:
    assert issubclass(InputError, LMFusionError)
    assert issubclass(LMFusionError, ValueError)


def test_interruption_is_said_without_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.user_dir, "run", interrupted)
    assert cli.main(["user-dir"]) == 130
    assert capsys.readouterr().err == "lmfusion: interrupted\n"


def test_reader_that_stops_early_causes_no_traceback(files: Path) -> None:
    """Nor anything else, and it is no failure."""
    command = f"{sys.executable} -m lmfusion.cli score bleu --hyp {files}/hyp --ref {files}/ref | true"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command += "; exit ${PIPESTATUS[0]}"
    printed = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False)
    assert (printed.returncode, printed.stderr) == (0, "")


@pytest.mark.parametrize(("command", "status"), [("inspect", 0), ("data", 2)])
@pytest.mark.parametrize("by_rich", [False, True])
def test_a_command_that_makes_files_has_failed_where_its_reader_stopped_it(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str, status: int, by_rich: bool
) -> None:
    def unread(args: object) -> None:
        try:
            raise BrokenPipeError
        except BrokenPipeError:
            if by_rich:
                raise SystemExit(1)  # noqa: B904 - as rich's Console does
            raise

    monkeypatch.setattr(getattr(cli, command), "run", unread)
    monkeypatch.setattr(cli, "_discard_output", lambda: None)
    words = {"inspect": ["inspect", "m.pt"], "data": ["data", "--pairs", "a", "b", "--out", "d"]}
    assert cli.main(words[command]) == status
    assert ("data" in capfd.readouterr().err) == (status == 2)


@pytest.mark.parametrize("metric", ["bleu", "rouge"])
def test_a_system_whose_file_is_called_baseline(
    capsys: pytest.CaptureFixture[str], files: Path, monkeypatch: pytest.MonkeyPatch, metric: str
) -> None:
    monkeypatch.chdir(files)
    (files / "hyp").rename("baseline")
    assert cli.main(["score", metric, "--hyp", "baseline", "--ref", "ref", "--baseline", "base"]) == 0
    assert "./baseline" in capsys.readouterr().out


def test_score_bleu_prints_score_and_both_signatures(capsys: pytest.CaptureFixture[str], files: Path) -> None:
    assert cli.main(["score", "bleu", "--hyp", f"{files}/hyp", "--ref", f"{files}/ref"]) == 0
    printed = capsys.readouterr().out
    assert "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:" in printed
    assert "BLEU+case.mixed+numrefs.1+smooth.exp+tok.13a+version." in printed
    assert "chrF2|nrefs:1|" in printed
    assert "2 sentences" in printed


def scored(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    """What a scoring command prints as JSON."""
    assert cli.main(["score", "bleu", *arguments, "--json"]) == 0
    values: dict[str, object] = json.loads(capsys.readouterr().out)
    return values


def test_generated_output_scores_as_its_text(capsys: pytest.CaptureFixture[str], files: Path) -> None:
    text = scored(capsys, "--hyp", f"{files}/hyp", "--ref", f"{files}/ref")
    assert scored(capsys, "--generate", f"{files}/generate.log", "--ref", f"{files}/ref") == text
    assert scored(capsys, "--generate", f"{files}/generate.log") == text, "its own targets"


def test_several_references(capsys: pytest.CaptureFixture[str], files: Path) -> None:
    one = scored(capsys, "--hyp", f"{files}/hyp", "--ref", f"{files}/ref")
    two = scored(capsys, "--hyp", f"{files}/hyp", "--ref", f"{files}/ref", "--ref", f"{files}/hyp")
    assert one["bleu"] < two["bleu"] == pytest.approx(100)  # type: ignore[operator]
    assert "nrefs:2" in str(two["signature"])


@pytest.mark.parametrize("flag", ["--baseline", "--paired"])
def test_baseline_gives_a_paired_test(capsys: pytest.CaptureFixture[str], files: Path, flag: str) -> None:
    arguments = ["--hyp", f"{files}/hyp", "--ref", f"{files}/ref", flag, f"{files}/base"]
    paired = scored(capsys, *arguments)["paired"]
    assert [result["name"] for result in paired] == ["baseline", f"{files}/hyp"]  # type: ignore[attr-defined]
    assert cli.main(["score", "bleu", *arguments]) == 0
    assert "p = " in capsys.readouterr().out


def test_different_numbers_of_lines_name_both_files_and_counts(failing: Callable[..., str], files: Path) -> None:
    (files / "ref").write_text("one\n", encoding="utf-8")
    message = failing("score", "bleu", "--hyp", files / "hyp", "--ref", files / "ref")
    assert f"{files}/hyp has 2 hypotheses, but {files}/ref has 1 lines" in message


def test_missing_sentence_of_generated_output_is_named(failing: Callable[..., str], files: Path) -> None:
    (files / "ref").write_text(REFERENCE + "third\n", encoding="utf-8")
    message = failing("score", "bleu", "--generate", files / "generate.log", "--ref", files / "ref")
    assert "It has no sentence 2 (counted from 0)" in message


def test_baseline_of_another_length_is_named(failing: Callable[..., str], files: Path) -> None:
    (files / "base").write_text("one\n", encoding="utf-8")
    arguments = ["score", "bleu", "--hyp", files / "hyp", "--ref", files / "ref", "--baseline", files / "base"]
    assert f"{files}/base has 1 sentences, but {files}/hyp has 2" in failing(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--hyp", "nowhere", "--ref", "ref"], "There is no file nowhere"),
        (["--hyp", "hyp"], "There is no reference for hyp. Give one with --ref."),
        (["--hyp", "empty", "--ref", "ref"], "empty is empty"),
        (["--hyp", "hyp", "--ref", "latin"], "latin, line 1, is not UTF-8 text"),
        (["--hyp", "generate.log", "--ref", "ref"], "generate.log is fairseq-generate's output.*--generate"),
        (["--generate", "hyp", "--ref", "ref"], "hyp has no hypotheses"),
        (["--hyp", "hyp", "--ref", "ref", "--detokenize", "de"], "--detokenize goes with --generate"),
    ],
)
def test_unfit_input_is_one_line(
    failing: Callable[..., str],
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(files)
    (files / "empty").touch()
    (files / "latin").write_bytes("schön\nb\n".encode("latin-1"))
    assert re.search(message, failing("score", "bleu", *arguments))
