"""Files that a person was given run nothing, reach nothing outside their folder, and end in one line where damaged."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairseq.data.fasta_dataset import FastaDataset

import lmfusion
from lmfusion import cli
from lmfusion.checkpoint.rewriting import refuse_to_overwrite
from lmfusion.errors import InputError, exit_status
from lmfusion.lm import huggingface_folder
from lmfusion.report.page.table import Cell, Table, to_csv
from lmfusion.rows import plan
from lmfusion.text import data_table, opening, prepared, textio
from lmfusion.text.json_text import parse
from lmfusion.text.textio import DataError

DEEP = "[" * 100_000
DATA = {"source": "en", "target": "de", "kind": "translation", "pairs": 9, "longest": 20, "symbols": {"de": 5}}
ESCAPES = "\x1b]0;title\x07\x1b[2J"


def test_the_name_of_data_is_no_line_of_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq's reader of .fasta files, which it takes where there is no .bin, counts their lines by a shell."""
    lmfusion.install()
    monkeypatch.chdir(tmp_path)
    name = "train.en-x;touch run;.x"
    Path(f"{name}.fasta").write_text(">a\nMKV\n>b\nMK\n", encoding="utf-8")
    FastaDataset(name)  # of what it counts nothing is said: it needs the command tqdm
    assert not Path("run").exists()


def test_a_description_of_data_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = prepared.Prepared(folder=tmp_path, text_language="pt-BR", source_limit=400, tokenizers={"de": "5e"}, **DATA)
    made.save()
    assert prepared.read(tmp_path) == made


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("target", value) for value in ("de;touch run;", "../de", "", 5, None, {}, "e\0n", "\ud800")),
        *(("text_language", value) for value in ("en/../../out", 7, ["en"])),
        *(("pairs", value) for value in ("9", [1], float("nan"), -1, 2.5)),
        *(("source_limit", value) for value in ("9", -1)),
        *(("symbols", value) for value in ([5], {"de": "5"})),
        *[("tokenizers", 3), ("tokenizer", 7), ("kind", "other"), ("origin", "x"), ("longest", None)],
    ],
    ids=repr,
)
def test_a_damaged_description_of_data_is_refused(tmp_path: Path, name: str, value: Any) -> None:
    (tmp_path / prepared.FILE).write_text(json.dumps({**DATA, name: value}), encoding="utf-8")
    with pytest.raises(InputError, match="is damaged"):
        prepared.read(tmp_path)


@pytest.mark.parametrize("text", [DEEP, '{"a": "\\u0000"}', '["\\ud800"]', '{"\\udfff": 1}', "{", ""], ids=len)
def test_json_that_no_file_of_ours_holds_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def test_what_is_nested_deeply_is_named(tmp_path: Path) -> None:
    for name in (prepared.FILE, plan.FILE):
        (tmp_path / name).write_text(DEEP, encoding="utf-8")
    for read in (prepared.read, plan.read):
        with pytest.raises(InputError, match="nested too deeply"):
            read(tmp_path)


def test_a_message_moves_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A name in a file is a part of the message."""
    (tmp_path / "m.yaml").write_text('data:\n  "\\e]0;title\\a": 1\n', encoding="utf-8")
    assert cli.main(["run", str(tmp_path / "m.yaml")]) == 2

    def run() -> int:
        raise InputError(f"no {ESCAPES} there\nnor here")

    assert exit_status(run) == 2
    shown = capsys.readouterr().err
    assert not {"\x1b", "\x07"} & set(shown)
    assert shown.endswith("\nnor here\n")


@pytest.mark.parametrize("text", ['"a\\0b"', '"\\ud800"'])
def test_a_file_of_commands_has_no_character_that_no_command_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "m.yaml").write_text(f"data:\n  out: {text}\n", encoding="utf-8")
    assert cli.main(["run", str(tmp_path / "m.yaml")]) == 2
    assert "m.yaml" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["=1+1", "@SUM(1)", "+cmd|' /C calc'!A0", "-1+cmd|' /C calc'!A0", f"={ESCAPES}"])
def test_a_name_is_no_formula_of_a_spreadsheet(text: str) -> None:
    written = to_csv(Table("t", "T", ["run"], [[Cell(text)]])).split("\n")[1].strip('"')
    assert written.startswith("'")
    assert "\x1b" not in written


@pytest.mark.parametrize("text", ["-1.2 (-2 to 0)", "+5.19", "-0.5%", "baseline", "1,145"])
def test_a_figure_stays_as_it_is(text: str) -> None:
    assert text in to_csv(Table("t", "T", ["run"], [[Cell(text)]]))


def test_a_text_is_not_taken_for_an_earlier_model(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("mine\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"notes\.txt is there already"):
        refuse_to_overwrite([], notes)
    refuse_to_overwrite([notes], tmp_path / "new.pt")


@pytest.mark.parametrize("name", ["../secret.safetensors", "/secret.safetensors", "a/b.safetensors"])
def test_weights_outside_a_folder_are_not_its_model(tmp_path: Path, name: str) -> None:
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}), encoding="utf-8")
    huggingface_folder._check_shards(tmp_path)
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors", "b": name}}), encoding="utf-8")
    with pytest.raises(InputError, match="outside its folder"):
        huggingface_folder._check_shards(tmp_path)


@pytest.mark.parametrize("content", [b"", b"MMIDIDX\0\0", b"MMIDIDX\0\0" + bytes(17), b"MMIDIDX\0\0" + b"\xff" * 17])
def test_a_damaged_index_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "train.idx").write_bytes(content)
    with pytest.raises(DataError, match=r"train\.idx: is damaged"):
        data_table.read_sizes(tmp_path / "train.idx")


@pytest.mark.parametrize("symbols", [0, 3, 5, 100])
def test_symbols_that_do_not_fill_their_file_are_named(tmp_path: Path, symbols: int) -> None:
    np.array([3, 5, 3, 2], np.uint16).tofile(tmp_path / "train.bin")
    assert data_table.count_unknown(tmp_path / "train.bin", 4) == 2
    with pytest.raises(DataError, match=r"train\.bin: is damaged"):
        data_table.count_unknown(tmp_path / "train.bin", symbols)


@pytest.mark.parametrize("read", [textio.read_lines, opening.read_text])
def test_a_line_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], Iterator[str]]
) -> None:
    """A small compressed file can hold one; lines up to the limit are read."""
    monkeypatch.setattr(textio, "LONGEST_LINE", 1000)
    path = tmp_path / "text.gz"
    for length, is_refused in ((999, False), (1001, True)):
        path.write_bytes(gzip.compress(b"a line\n" + b"x" * length + b"\nanother\n"))
        if not is_refused:
            assert [len(line) for line in read(path)] == [6, length, 7]
            continue
        with pytest.raises(DataError, match="line 2"):
            list(read(path))


def test_a_dictionary_is_not_written_over_its_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["hf", "import", str(tmp_path), "--out", str(tmp_path / "bert.pt"), "--dict", str(tmp_path / "bert.pt")]
    assert cli.main(words) == 2
    assert "--dict" in capsys.readouterr().err
