"""As in the paper's English-Turkish runs: the LM's BPE on the source side, another BPE on the target side."""

from __future__ import annotations

import shutil
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

import lmfusion

ROOT = Path(__file__).parents[2]
SPLITS = ("train", "valid", "test")
SPECIAL = 4  # fairseq's own symbols come before those of a file


def script(name: str, *words: object) -> None:
    """A script of data-prep."""
    command = [sys.executable, str(ROOT / "data-prep" / name), *map(str, words)]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def data(commands: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The slice, its German in 300 symbols learned on German; fairseq-preprocess was told two dictionaries."""
    out, prepared = tmp_path_factory.mktemp("two"), commands.prepared
    model, dictionary = out / "de.model", out / "de.txt"
    learn = ["--input", prepared / "tok" / "train.de", "--size", 300, "--model", model, "--dict", dictionary]
    script("learn_bpe.py", *learn)
    for split in SPLITS:
        shutil.copy(prepared / "bpe" / f"{split}.en", out)
        text = prepared / "tok" / f"{split}.de"
        script("encode_bpe.py", "--model", model, "--input", text, "--output", out / f"{split}.de", "--workers", 1)
    words = ["fairseq-preprocess", "-s", "en", "-t", "de", "--srcdict", prepared / "dict.txt", "--tgtdict", dictionary]
    words += [word for split in SPLITS for word in (f"--{split}pref", out / split)]
    commands.ok(*words, "--destdir", out / "data", "--workers", 1)
    return out / "data"


def first_difference(one: Path, other: Path) -> tuple[int, str, str]:
    """Index and symbols at which two dictionary files part."""
    symbols = [[line.split()[0] for line in path.read_text(encoding="utf-8").splitlines()] for path in (one, other)]
    place = next(i for i, (a, b) in enumerate(zip_longest(*symbols)) if a != b)
    return place + SPECIAL, symbols[0][place], symbols[1][place]


def test_the_lms_bpe_on_the_source_another_on_the_target(
    commands: Any, lm_files: Any, data: Path, tmp_path: Path
) -> None:
    flags = ["--arch", "src_elmo_tiny", "--src-lm", lm_files["src"], "--share-decoder-input-output-embed"]
    commands.ok(*commands.training(tmp_path, 2, *flags, *commands.text_flags, data=data))
    generation = commands.generation(tmp_path / "checkpoint_last.pt", *commands.text_flags, data=data)
    lines = [line.split("\t") for line in commands.ok(*generation).splitlines()]
    texts = {columns[0][2:]: columns[2] for columns in lines if columns[0].startswith("D-")}
    model = lmfusion.load_model(tmp_path)
    assert (len(model.task.source_dictionary), len(model.task.target_dictionary)) == (504, 304)
    raw = (commands.prepared / "text" / "test.en").read_text(encoding="utf-8").splitlines()
    assert model.translate(raw, beam=2, max_len_b=10) == [texts[str(number)] for number in range(len(raw))]


@pytest.mark.parametrize("arch", ["tgt_elmo_tiny", "tgt_ft_tiny"])
def test_a_target_lm_of_another_bpe_is_refused_by_the_first_symbol_that_differs(
    commands: Any, lm_files: Any, data: Path, tmp_path: Path, arch: str
) -> None:
    line = commands.refused(*commands.training(tmp_path, 1, "--arch", arch, "--tgt-lm", lm_files["tgt"], data=data))
    index, ours, theirs = first_difference(commands.prepared / "dict.txt", data / "dict.de.txt")
    assert "the target dictionary is not the dictionary the language model was trained with" in line
    assert f"at index {index}, where the language model has {ours!r} and the target dictionary has {theirs!r}" in line


def test_shared_embeddings_need_one_dictionary(commands: Any, data: Path, tmp_path: Path) -> None:
    flags = ["--arch", "lmfusion_tiny", "--share-all-embeddings"]
    line = commands.refused(*commands.training(tmp_path, 1, *flags, data=data))
    assert "--share-all-embeddings (SHARED) needs one dictionary for both sides" in line


def test_shallow_fusion_with_an_lm_of_another_dictionary_is_refused(
    commands: Any, lm_files: Any, data: Path, tmp_path: Path
) -> None:
    """The LM finds its own dictionary in the data; the translations are in another one."""
    shutil.copytree(data, tmp_path / "data")
    shutil.copy(commands.prepared / "dict.txt", tmp_path / "data")
    commands.ok(*commands.training(tmp_path / "run", 1, "--arch", "lmfusion_tiny", data=data))
    flags = ["--lm-path", lm_files["tgt"], "--lm-weight", "0.3"]
    generation = commands.generation(tmp_path / "run" / "checkpoint_last.pt", *flags, data=tmp_path / "data")
    assert "the target dictionary is not the dictionary the language model was" in commands.refused(*generation)
