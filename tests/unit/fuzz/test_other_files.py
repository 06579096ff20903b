"""Everything else that is read: dictionaries, binarized and plain text, run folders, caches of states, BPE models."""

from __future__ import annotations

import gzip
import importlib
import json
import lzma
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, data_utils, indexed_dataset

from lmfusion.lm.freezing import state_fingerprint
from lmfusion.report.page.find import Found
from lmfusion.report.page.notices import Notices
from lmfusion.report.page.read_run import read_run
from lmfusion.runs import train_log
from lmfusion.runs.run_folder import RunFolder
from lmfusion.scoring import generate_output
from lmfusion.scoring.text_files import read_lines
from lmfusion.state_cache.stored_states import StoredStates
from lmfusion.text.check_data import check_binarized
from lmfusion.text.dictionaries import read_dictionary

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


few, many = pytest.param(range(15), id="few"), pytest.param(range(15, 215), id="many", marks=pytest.mark.slow)
seeds = pytest.mark.parametrize("seeds", [few, many])
RUN = {
    "name": "src_elmo",
    "state": "finished",
    "git_commit": "0" * 40,
    "seed": 1,
    "versions": {"torch": "2"},
    "machine": {"system": "Linux", "cores": 2},
    "steps": {
        "train": {
            "command": ["fairseq-train", "data/bitext-400", "--arch", "src_elmo_tiny", "--max-update", "9"],
            "data_sha256": {"train.en.bin": "0" * 64},
            "state": "finished",
            "seconds": 12.5,
            "attempts": 1,
            "result": {"updates": 9, "tokens_per_second": 1000.0, "best_valid_loss": 4.5, "best_valid_updates": 9},
        }
    },
    "model": {"total": 10, "trainable": 5, "frozen": 5, "language_models": [], "mixes": []},
}
SCORES = {"test": {"bleu": 4.5, "chrf": 20.5, "sentences": 3, "signature": "x", "hypotheses": "test.hyp"}}


@seeds
def test_dictionary(tmp_path: Path, fuzz: Any, seeds: range) -> None:
    path = tmp_path / "dict.en.txt"
    path.write_text("".join(f"wört{number} {100 - number}\n" for number in range(60)), encoding="utf-8")

    def check(dictionary: Dictionary) -> None:
        assert dictionary.symbols[:4] == ["<s>", "<pad>", "</s>", "<unk>"]
        assert len(dictionary.symbols) == len(set(dictionary.symbols)) == len(dictionary)

    assert fuzz(path, read_dictionary, seeds, check) > 0


@pytest.mark.parametrize("ending", ["idx", "bin"])
@seeds
def test_binarized_text(tmp_path: Path, fuzz: Any, dictionary: Dictionary, seeds: range, ending: str) -> None:
    """A token that became another one of the dictionary cannot be seen; anything else can."""
    builder = indexed_dataset.MMapIndexedDatasetBuilder(str(tmp_path / "text.bin"), dtype=np.uint16)
    sentences = [torch.randint(4, 24, (size,)) for size in (3, 1, 9, 30, 5)]
    for sentence in sentences:
        builder.add_item(sentence)
    builder.finalize(str(tmp_path / "text.idx"))

    def read(path: Path) -> Any:
        check_binarized(path.with_suffix(""), dictionary)  # lmfusion check-data
        return data_utils.load_indexed_dataset(str(path.with_suffix("")), dictionary, "mmap")

    def check(data: Any) -> None:
        assert [len(item) for item in data] == [3, 1, 9, 30, 5]
        assert all(int(item.max()) < 24 for item in data)

    assert [item.tolist() for item in read(tmp_path / "text.idx")] == [sentence.tolist() for sentence in sentences]
    assert fuzz(tmp_path / f"text.{ending}", read, seeds, check) > len(seeds) / 2


@pytest.mark.parametrize("file", ["about.json", "states", "index"])
@seeds
@torch.no_grad()
def test_stored_states(
    make_cloze: Any, batch: Any, tmp_path: Path, attempt: Any, damage: Any, seeds: range, file: str
) -> None:
    """Refused, or computed again, or read: never other states than the model's."""
    lm = make_cloze().freeze()
    tokens = batch([[2, 5, 9, 4, 11, 2], [2, 6, 7, 8, 2]])
    expected = StoredStates(lm, tmp_path / "whole", state_fingerprint(lm))(tokens)
    refused = 0
    for seed in seeds:
        shutil.copytree(tmp_path / "whole", tmp_path / "copy")
        path = next(path for path in (tmp_path / "copy").rglob("*") if path.name.endswith(file))
        path.write_bytes(damage(path.read_bytes(), seed))
        try:
            found = attempt(lambda _: StoredStates(lm, tmp_path / "copy", state_fingerprint(lm))(tokens), path)
            refused += found is None
            for ours, theirs in zip(found or [], expected):
                torch.testing.assert_close(ours[0], theirs[0], rtol=0, atol=1e-5)
                torch.testing.assert_close(ours[1, :5], theirs[1, :5], rtol=0, atol=1e-5)
        except BaseException:
            print(f"seed {seed}")
            raise
        shutil.rmtree(tmp_path / "copy")
    assert refused > 0


def run_folder(folder: Path, record: Any = RUN, scores: Any = SCORES) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
    (folder / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    values = {"num_updates": "9", "loss": "4.5", "ppl": "22", "wps": "1000", "lr": "0.1"}
    valid = {f"valid_{name}": value for name, value in values.items()}
    lines = [f"2030-01-31 12:00:00 | INFO | {kind} | {json.dumps(said)}\n" for kind, said in _said(values, valid)]
    (folder / "train.log").write_text("".join(lines))
    (folder / "test.hyp").write_text("a\nb\nc\n")
    return folder


def _said(values: Any, valid: Any) -> list[tuple[str, Any]]:
    return [("train_inner", values), ("valid", valid)]


def use(folder: Path) -> Any:
    """What commands do with a run folder: the report reads it, the recipes go on with it."""
    read_run(Found(folder, "run"), Notices())
    run = RunFolder(folder)
    run.step("train")
    run.begin("generate", ["fairseq-generate"])
    run.finish("generate", {"sentences": 3})
    run.add_score("valid", {"bleu": 1.0, "chrf": 2.0})
    return run


@pytest.mark.parametrize("name", ["run.json", "scores.json", "train.log"])
@seeds
def test_run_folder(tmp_path: Path, attempt: Any, damage: Any, seeds: range, name: str) -> None:
    for seed in seeds:
        folder = run_folder(tmp_path / "run")
        (folder / name).write_bytes(damage((folder / name).read_bytes(), seed))
        try:
            attempt(lambda path: use(path.parent), folder / name)
            train_log.read_file(folder / "train.log")
        except BaseException:
            print(f"seed {seed}")
            raise


@pytest.mark.parametrize("name", ["run.json", "scores.json"])
@seeds
def test_run_folder_with_wrong_types(tmp_path: Path, attempt: Any, wrong_type: Any, seeds: range, name: str) -> None:
    for seed in seeds:
        content = RUN if name == "run.json" else SCORES
        changed = json.loads(json.dumps(wrong_type(content, seed), default=str))
        folder = run_folder(tmp_path / "run", **{"record" if name == "run.json" else "scores": changed})
        try:
            attempt(lambda path: use(path.parent), folder / name)
        except BaseException:
            print(f"seed {seed}")
            raise


@seeds
def test_generation_output_and_text(tmp_path: Path, fuzz: Any, seeds: range) -> None:
    path = tmp_path / "generate.log"
    lines = [f"S-{n}\tein haus\nT-{n}\ta house\nH-{n}\t-0.5\ta ▁house\nD-{n}\t-0.5\ta house\n" for n in range(9)]
    path.write_text("".join(lines), encoding="utf-8")
    assert fuzz(path, generate_output.read, seeds, lambda output: None) > 0

    def check(lines: list[str]) -> None:
        assert all("\n" not in line for line in lines)

    assert fuzz(path, read_lines, seeds, check) > 0


@pytest.mark.parametrize("ending", ["", ".xz", ".gz"])
@seeds
def test_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempt: Any, damage: Any, seeds: range, ending: str
) -> None:
    """A compressed file with a wrong check sum is refused."""
    monkeypatch.syspath_prepend(str(ROOT / "data-prep"))
    textio = importlib.import_module("lmfusion.text.textio")
    text = "".join(f"Das ist Satz {number}, größer.\n" for number in range(99)).encode()
    content = {"": bytes, ".xz": lzma.compress, ".gz": gzip.compress}[ending](text)
    path, refused = tmp_path / f"corpus.de{ending}", 0
    for seed in seeds:
        path.write_bytes(damage(content, seed))
        try:
            lines = attempt(lambda file: list(textio.read_lines(file)), path, textio.DataError)
        except BaseException:
            print(f"seed {seed}")
            raise
        refused += lines is None
        # the whole twice is a compressed file, too
        whole = not ending or lines is None or "".join(f"{line}\n" for line in lines).encode() in (text, 2 * text)
        assert whole, f"seed {seed}"
    assert refused > 0
