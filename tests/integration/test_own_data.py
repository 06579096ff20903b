"""``lmfusion data``: from the files that people have to what fairseq trains on, which is the same text."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from fairseq.data import Dictionary, data_utils

from lmfusion.text import data_table, prepared
from lmfusion.text.record import read_json

PAIRS, PLAIN, HELD_OUT = 300, 200, 25
SIDES = ("en", "de")
FORMATS = {
    "tsv": "--tsv pairs.tsv --fields en,de",
    "jsonl": "--jsonl pairs.jsonl --fields translation.en,translation.de",
}


def run(folder: Path, *words: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run ``lmfusion data`` as a person would, its output in a file rather than on a terminal."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    command = [sys.executable, "-m", "lmfusion.cli", "data", *map(str, words)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    assert "\r" not in done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def files(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same pairs in all formats, and plain text."""
    folder = tmp_path_factory.mktemp("files")
    sides = {}
    for language in ("en", "de"):
        found = (small_corpus / f"train.{language}").read_text(encoding="utf-8").splitlines()[:PAIRS]
        sides[language] = [" ".join(line.split()) for line in found]
        with gzip.open(folder / f"train.{language}.gz", "wt", encoding="utf-8") as stream:
            stream.writelines(f"{line}\n" for line in sides[language])
        plain = (small_corpus / f"mono.train.{language}").read_text(encoding="utf-8").splitlines(keepends=True)[:PLAIN]
        (folder / f"plain.{language}").write_text("".join(plain), encoding="utf-8")
    pairs = list(zip(sides["en"], sides["de"]))
    rows = "".join(f"{number}\t{german}\t{english}\n" for number, (english, german) in enumerate(pairs))
    (folder / "pairs.tsv").write_text(f"id\tde\ten\n{rows}", encoding="utf-8")
    records = [json.dumps({"translation": {"de": german, "en": english}}) for english, german in pairs]
    (folder / "pairs.jsonl").write_text("\n".join(records) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def said(files: Path, run_command: Any) -> str:
    """What the command says that fills the folder data."""
    words = "--pairs train.en.gz train.de.gz --text plain.en plain.de --bpe-size 400 --out data"
    done = run_command(f"PWD={files}", "COLUMNS=100", "lmfusion", "data", *words.split(), "--held-out", HELD_OUT)
    assert done.status == 0, done.output
    assert "\r" not in done.output
    output: str = done.output
    return output


def test_what_is_binarized_is_the_text(files: Path, said: str) -> None:
    data = prepared.read(files / "data")
    assert (data.source, data.target, data.kind, data.text_language) == ("en", "de", "translation", None)
    dictionary = Dictionary.load(str(data.dictionary))
    model = sentencepiece.SentencePieceProcessor(model_file=str(data.bpe_model))
    texts = {f"{split}.{side}": data.bitext / f"{split}.en-de.{side}" for split in ("valid", "test") for side in SIDES}
    texts |= {f"mono.{split}.{side}": data.plain_text(side) / split for split in ("train", "valid") for side in SIDES}
    compared = 0
    for name, path in texts.items():
        text = (files / "data" / "text" / name).read_text(encoding="utf-8").splitlines()
        binarized = data_utils.load_indexed_dataset(str(path), dictionary)
        assert len(binarized) == len(text) > 0
        for line, tokens in zip(text, binarized):
            if dictionary.unk() not in tokens:  # a letter that the BPE does not know
                joined = model.decode(dictionary.string(tokens).split())
                assert joined.replace(" ", "") == line.replace(" ", ""), "Moses tokens differ from text in spaces alone"
                compared += 1
    assert compared > 0.95 * (4 * HELD_OUT + 2 * PLAIN - 20)


def test_the_description_and_the_table_agree_with_what_fairseq_reads(files: Path, said: str) -> None:
    data = prepared.read(files / "data")
    dictionary = Dictionary.load(str(data.dictionary))
    counts = read_json(files / "data" / "prepare.json", "")["counts"]
    texts = {text.name: text for text in data_table.measure(files / "data", ("en", "de"), ("en", "de"), counts)}
    assert len(texts) == 10
    read = {name: data_utils.load_indexed_dataset(str(path), dictionary) for name, path in (
        ("train en", data.bitext / "train.en-de.en"), ("test de", data.bitext / "test.en-de.de"),
        ("text de train", data.plain_text("de") / "train"))}  # fmt: skip
    for name, binarized in read.items():
        tokens = np.concatenate([each.numpy() for each in binarized])
        found = texts[name]
        assert found.lines == len(binarized)
        assert found.symbols == int((tokens != dictionary.eos()).sum())
        assert found.longest == max(len(each) for each in binarized) - 1
        assert found.unknown == pytest.approx(100 * float((tokens == dictionary.unk()).sum()) / found.symbols)
        assert f"{found.symbols:,}" in said
    assert data.pairs == len(read["train en"])
    assert data.symbols["de"] == texts["text de train"].symbols
    assert data.longest == max(text.longest for text in texts.values())
    assert set(data.origin["files"]) == {"train.en.gz", "train.de.gz", "plain.en", "plain.de"}
    assert "lmfusion train data" in said


def test_the_commands_that_are_shown_make_the_same_files(
    files: Path, said: str, run_command: Any, tmp_path: Path
) -> None:
    commands = [line[2:] for line in said.splitlines() if line.startswith("$ ")]
    assert [shlex.split(command)[:3:2] for command in commands] == [
        ["fairseq-preprocess", f"data/{name}"] for name in ("bitext-all", "lm.en", "lm.de")
    ]
    words = shlex.split(commands[0])
    words[2] = str(tmp_path)
    done = run_command(f"PWD={files}", *words)
    assert done.status == 0, done.output
    made = [path.name for path in (files / "data" / "bitext-all").iterdir() if path.suffix in (".bin", ".idx")]
    assert len(made) == 12
    for name in made:
        assert (tmp_path / name).read_bytes() == (files / "data" / "bitext-all" / name).read_bytes()


@pytest.mark.slow
def test_what_seems_wrong_is_said_again_at_the_end(files: Path, tmp_path: Path) -> None:
    for name, language in (("one", "de"), ("two", "en")):
        (tmp_path / name).symlink_to(files / f"train.{language}.gz")
    words = f"--pairs one two -s en -t de --bpe-size 300 --out data --held-out {HELD_OUT}"
    said = run(tmp_path, *words.split()).stdout.splitlines()
    notes = [line for line in said if line.startswith("note: ") and "swapped" in line]
    assert len(notes) == 2
    assert len(set(notes)) == 1
    assert said.index(notes[0]) < said.index(next(line for line in said if "learning a joint BPE" in line))
    assert said[-2] == notes[0]
    assert "note: " in run(tmp_path, *words.split()).stdout.splitlines()[-2], "and whenever the command is given again"


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind == "tsv" else pytest.mark.slow) for kind in FORMATS]
)
def test_other_formats_give_the_same_pairs(files: Path, said: str, kind: str) -> None:
    words = f"{FORMATS[kind]} --text plain.en plain.de --spm data/spm.model --out {kind}"
    run(files, *words.split(), "--held-out", HELD_OUT)
    for split in ("train", "valid", "test"):
        for side in SIDES:
            for ending in (".bin", ".idx"):
                name = f"bitext-all/{split}.en-de.{side}{ending}"
                assert (files / kind / name).read_bytes() == (files / "data" / name).read_bytes()
    assert "$ " not in run(files, *words.split(), "--held-out", HELD_OUT).stdout, "all is there already"


def test_a_second_run_makes_nothing_and_other_files_or_settings_are_refused(files: Path, said: str) -> None:
    words = "--pairs train.en.gz train.de.gz --text plain.en plain.de --out data --held-out".split()
    again = run(files, *words, HELD_OUT, "--bpe-size", 400).stdout
    assert "$ " not in again
    assert again.splitlines()[-1] == said.splitlines()[-1]
    assert "held_out" in run(files, *words, HELD_OUT + 1, "--bpe-size", 400, status=2).stderr
    assert "bpe" in run(files, *words, HELD_OUT, "--bpe-size", 300, status=2).stderr
    swapped = ["--pairs", "train.de.gz", "train.en.gz", "-s", "en", "-t", "de", *words[3:]]
    assert "--pairs" in run(files, *swapped, HELD_OUT, "--bpe-size", 400, status=2).stderr
    less = [word for word in words if word != "plain.de"]
    assert "plain.de" in run(files, *less, HELD_OUT, "--bpe-size", 400, status=2).stderr
    before = (files / "plain.en").read_bytes()
    (files / "plain.en").write_bytes(before + b"One more sentence.\n")
    try:
        assert "plain.en" in run(files, *words, HELD_OUT, "--bpe-size", 400, status=2).stderr
    finally:
        (files / "plain.en").write_bytes(before)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("", "--pairs"),
        ("--pairs train.en.gz absent.de", "absent.de"),
        ("--tsv pairs.tsv", "-s"),
        ("--jsonl pairs.jsonl --fields text,summary", "--text-lang"),
        ("--jsonl pairs.jsonl --fields text", "--fields text"),
        ("--pairs train.en.gz train.de.gz --dict d.txt", "--spm"),
        ("--pairs train.en.gz train.de.gz --spm absent.model", "absent.model"),
        ("--pairs train.en.gz train.de.gz --held-out 0", "--held-out"),
        ("--pairs train.en.gz train.de.gz --text pairs.tsv", "pairs.tsv"),
        ("--tsv pairs.tsv -s en -t de --fields 2,2", "--fields 2,2"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_it(
    files: Path, failing: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, named: str
) -> None:
    monkeypatch.chdir(files)
    assert named in failing("data", *words.split(), "--out", tmp_path / "out")


@pytest.mark.slow
def test_after_a_mistake_the_same_folder_can_be_filled(files: Path, tmp_path: Path) -> None:
    words = ["--pairs", "train.en.gz", "train.de.gz", "--out", tmp_path / "out"]
    assert "--held-out" in run(files, *words, "--held-out", 200, status=2).stderr
    assert "--bpe-size" in run(files, *words, "--held-out", 20, "--bpe-size", 90_000, status=2).stderr
    assert "lmfusion train" in run(files, *words, "--held-out", 20, "--bpe-size", 300).stdout
