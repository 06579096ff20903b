"""lmfusion run: a file's sections become command lines; what is wrong is refused with its line before anything runs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

from lmfusion import cli
from lmfusion.commands import data, pack, run, run_file, train
from lmfusion.errors import InputError

Lines = Callable[[str], list[list[str]]]
DATA = "data:\n  pairs: [a.en, a.no]\n  out: d\n"


@pytest.fixture
def commands() -> dict[str, argparse.ArgumentParser]:
    """The parsers of the commands that a file may have as sections."""
    parsers = argparse.ArgumentParser().add_subparsers()
    for command in (data, train, pack):
        command.add(parsers)
    return dict(parsers.choices)


@pytest.fixture
def lines(tmp_path: Path, commands: dict[str, argparse.ArgumentParser]) -> Lines:
    """A function from the text of a file to its command lines."""

    def read(text: str) -> list[list[str]]:
        (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
        return run_file.read(tmp_path / "mine.yaml", commands)

    return read


def test_the_example_is_the_walk_through(commands: dict[str, argparse.ArgumentParser]) -> None:
    words = run_file.read(run.EXAMPLE_FILE, commands)
    parsed = [commands[name].parse_args(rest) for name, *rest in words]
    assert [name for name, *_ in words] == ["data", "train", "pack"]
    assert parsed[0].pairs == [Path("train.en"), Path("train.fr")]
    assert parsed[1].data == parsed[0].out
    assert Path(parsed[2].model) == parsed[1].out / parsed[1].rows.split(",")[-1]


def test_every_flag_that_the_example_comments_out_is_one(
    commands: dict[str, argparse.ArgumentParser], lines: Lines
) -> None:
    text = run.EXAMPLE_FILE.read_text(encoding="utf-8")
    shown = text.replace("  # minutes", "  minutes").replace("  # src-lm", "  src-lm").replace("  # set", "  set")
    words = lines(shown)[1]
    asked = commands["train"].parse_args(words[1:])
    assert (asked.minutes, asked.src_lm, asked.set) == (60, Path("lm.pt"), ["S2S_DROPOUT=0.3"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("data: {source-lang: no, out: d}", ["data", "--source-lang", "no", "--out", "d"]),
        ("data: {held_out: 0100, out: d}", ["data", "--held-out", "0100", "--out", "d"]),
        ("data: {text: one, out: d}", ["data", "--text", "one", "--out", "d"]),
        ("data: {fields: [a, b], out: d}", ["data", "--fields", "a,b", "--out", "d"]),
        ("data: {fields: 'a,b', out: d}", ["data", "--fields", "a,b", "--out", "d"]),
        ("train: {out: r, data: d}", ["train", "d", "--out", "r"]),
        (
            "train: {data: d, out: r, set: {A: 1, B: x}}",
            ["train", "d", "--out", "r", "--set", "A=1", "B=x"],
        ),
        ("pack: {model: m, out: f, full: true}", ["pack", "m", "--out", "f", "--full"]),
        ("pack: {model: m, out: f, full: no}", ["pack", "m", "--out", "f"]),
    ],
)
def test_values_are_taken_as_they_are_written(lines: Lines, text: str, words: list[str]) -> None:
    assert lines(text) == [words]


def test_sections_run_in_the_order_of_the_work(lines: Lines) -> None:
    assert [name for name, *_ in lines("pack: {model: m, out: f}\n" + DATA)] == ["data", "pack"]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (DATA + "trian: {}\n", 4, ["trian", "train"]),
        (DATA + "train:\n  row: baseline\n", 5, ["row", "rows"]),
        (DATA + "  zzz: 1\n", 4, ["zzz", "pairs"]),
        (DATA + "  out: e\n", 4, ["out", "twice"]),
        ("data:\n  pairs: [a, b, c]\n", 2, ["pairs", "2", "3", "a, b, c"]),
        ("data:\n  out:\n", 2, ["out", "no value"]),
        ("data:\n  out: [a, b]\n", 2, ["out", "1", "2"]),
        ("pack:\n  full: maybe\n", 2, ["full", "true", "false", "maybe"]),
        ("pack:\n  full: [true]\n", 2, ["full", "true", "false"]),
        ("data:\n  text: [[a]]\n", 2, ["text", "list"]),
        ("- data\n", 1, ["key: value"]),
        ("data: some\n", 1, ["data", "key: value"]),
        ("data:\n  out: [d\ntrain:\n", 3, ["YAML"]),
        ("data: &a\n  out: *b\n", 2, ["YAML", "b"]),
        ("data:\n  ? [out]\n  : d\n", 2, ["list"]),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    lines: Lines, tmp_path: Path, text: str, line: int, said: list[str]
) -> None:
    with pytest.raises(InputError) as refused:
        lines(text)
    message = str(refused.value)
    assert message.startswith(f"{tmp_path / 'mine.yaml'}:{line}: ")
    assert all(word in message for word in said)
    assert "\n" not in message


@pytest.mark.parametrize("content", [b"", b"# nothing\n", b"\xff\xfed\x00", b"data: \x00\n"])
def test_a_file_without_sections_or_text_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"mine\.yaml"):
        run_file.read(path, {"data": argparse.ArgumentParser()})


@pytest.mark.parametrize("folder", [True, False])
def test_a_file_that_is_not_there_says_how_to_begin_one(
    folder: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    if folder:
        path.mkdir()
    assert cli.main(["run", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert str(path) in said
    assert "lmfusion run --example" in said
    assert ("folder" in said) is folder


def test_several_files_written_as_one_value_are_shown_as_a_list(lines: Lines) -> None:
    with pytest.raises(InputError, match=r":2: .*\[a\.en, a\.fr\]"):
        lines("data:\n  pairs: a.en a.fr\n  out: d\n")


def test_what_is_missing_is_called_as_in_the_file(lines: Lines) -> None:
    with pytest.raises(InputError, match=r"mine\.yaml:2: train lacks data\b"):
        lines("train:\n  out: r\n")


def test_a_tag_makes_nothing(lines: Lines) -> None:
    assert lines("data: {out: !!python/object/apply:os.getcwd [x]}") == [["data", "--out", "x"]]


def test_a_value_of_the_wrong_kind_is_one_line_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"data:\n  pairs: [a.en, a.fr]\n  out: {tmp_path / 'd'}\ntrain: {{data: d, out: r, minutes: x}}\n")
    assert cli.main(["run", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert all(word in printed.err for word in (str(path), "train", "--minutes", "x"))
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "d").exists()


def test_a_dry_run_prints_commands_that_a_shell_reads_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("data: {pairs: [my file.en, a.fr], out: d}\npack: {model: r, out: m.lmf}\n")
    assert cli.main(["run", str(path), "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "[1/2] lmfusion data --pairs 'my file.en' a.fr --out d",
        "[2/2] lmfusion pack r --out m.lmf",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "train: {data: other, rows: baseline, out: r}",
        "train: {data: d, rows: baseline, out: r}\npack: {model: other/baseline, out: m.lmf}",
    ],
)
def test_sections_have_to_fit_together(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"data: {{pairs: [a.en, a.fr], out: d}}\n{text}\n", encoding="utf-8")
    assert cli.main(["run", str(path), "--dry-run"]) == 2
    assert "other" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["r/lstm", "r/lstm/checkpoints/checkpoint_best.pt", "r/cloze.en"])
def test_a_model_to_pack_that_no_section_trains_is_refused_before_anything_is_trained(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sections = "train: {data: d, rows: [baseline, shared], out: r}\npack: {model: MODEL, out: m.lmf}\n"
    Path("mine.yaml").write_text(DATA + sections.replace("MODEL", model), encoding="utf-8")
    assert cli.main(["run", "mine.yaml", "--dry-run"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert all(word in printed.err for word in ("mine.yaml", model, "baseline", "shared"))


@pytest.mark.parametrize(
    "model", ["./r/baseline", "r/baseline/checkpoints/checkpoint_last.pt", "r/earlier", "r/reverse"]
)
def test_a_model_to_pack_that_is_trained_or_there_already_is_taken(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r/earlier").mkdir(parents=True)
    sections = "train: {data: d, rows: [baseline, back_translation], out: r}\npack: {model: MODEL, out: m.lmf}\n"
    Path("mine.yaml").write_text(DATA + sections.replace("MODEL", model), encoding="utf-8")
    assert cli.main(["run", "mine.yaml", "--dry-run"]) == 0


def test_a_failed_step_ends_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"data: {{pairs: [no.en, no.fr], out: {tmp_path / 'd'}}}\npack: {{model: r, out: m.lmf}}\n")
    assert cli.main(["run", str(path)]) == 2
    printed = capsys.readouterr()
    assert "no.en" in printed.err
    assert "[2/2]" not in printed.out


def test_lists_in_lists_without_end_are_refused(lines: Lines) -> None:
    with pytest.raises(InputError, match="lists in lists"):
        lines("data: " + "[" * 5000)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("  held-out: 0\n", "--held-out"),
        ("train:\n  data: d\n  out: r\n  minutes: -3\n", "--minutes"),
        ("train:\n  data: d\n  out: r\n  rows: [baseline, src_emlo]\n", "src_emlo"),
        ("train:\n  data: d\n  out: r\n  src-lm: gone.pt\n", "gone.pt"),
        ("train:\n  data: d\n  out: r\n  set: {S2S_DROPOUT: 2}\n", "S2S_DROPOUT"),
        ("train:\n  data: d\n  out: r\n  set: {S2S_DROP: 0.2}\n", "S2S_DROP"),
    ],
)
@pytest.mark.parametrize("dry", [True, False])
def test_values_of_every_section_are_checked_before_the_first_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, named: str, dry: bool
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(DATA + line, encoding="utf-8")
    assert cli.main(["run", str(path), *(["--dry-run"] if dry else [])]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert named in shown.err
    assert str(path) in shown.err
