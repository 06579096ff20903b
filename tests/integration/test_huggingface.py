"""Models of Hugging Face on both sides, from their folders to translations, by the real commands."""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

import lmfusion

pytest.importorskip("transformers")
ROOT = Path(__file__).parents[1]
TINY = ("--arch", "lmfusion_tiny")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A BERT and a GPT-2."""
    made = {name: tmp_path_factory.mktemp("models") / name for name in ("bert", "gpt2")}
    save = runpy.run_path(str(ROOT / "hf_models.py"))["save_model"]
    for name, folder in made.items():
        size = "n_positions" if name == "gpt2" else "max_position_embeddings"
        save(name, folder, **{size: 500})
    return made


@pytest.fixture(scope="module")
def data(commands: Any, folders: dict[str, Path], small_corpus: Path, tmp_path_factory: Any) -> Path:
    """The slice of the corpus in the models' pieces, by the commands that the documentation names."""
    out = tmp_path_factory.mktemp("pieces")
    from lmfusion.text.huggingface import PieceTokenizer

    for side, name in (("en", "bert"), ("de", "gpt2")):
        commands.ok("lmfusion", "hf", "dictionary", folders[name], "--out", out / f"dict.{side}.txt")
        tokenizer = PieceTokenizer.from_folder(folders[name])
        for split in ("train", "valid", "test"):
            lines = (small_corpus / f"{split}.{side}").read_text(encoding="utf-8").splitlines()
            pieces = "".join(" ".join(tokenizer.encode(line)) + "\n" for line in lines)
            (out / f"{split}.{side}").write_text(pieces, encoding="utf-8")
    words = ["-s", "en", "-t", "de", "--srcdict", out / "dict.en.txt", "--tgtdict", out / "dict.de.txt"]
    words += [f"--{split}pref={out / split}" for split in ("train", "valid", "test")]
    commands.ok("fairseq-preprocess", *words, "--destdir", out / "bin")
    return out / "bin"


@pytest.mark.parametrize(
    ("src", "tgt", "more"),
    [
        ("elmo", "finetune", []),
        pytest.param("finetune", "elmo", [], marks=pytest.mark.slow),
        pytest.param("elmo", "finetune", ["--tgt-lm-lora", 2], marks=pytest.mark.slow),
    ],
)
def test_both_sides_train_resume_and_translate_when_the_folders_are_gone(
    commands: Any,
    folders: dict[str, Path],
    data: Path,
    small_corpus: Path,
    tmp_path: Path,
    src: str,
    tgt: str,
    more: list[Any],
) -> None:
    moved = {name: tmp_path / name for name in folders}
    for name, folder in folders.items():
        shutil.copytree(folder, moved[name])
    flags = ["--src-fusion", src, "--src-lm", moved["bert"], "--tgt-fusion", tgt, "--tgt-lm", moved["gpt2"]]
    flags += ["--bpe", "lmfusion", "--src-bpe", f"hf:{moved['bert']}", "--tgt-bpe", f"hf:{moved['gpt2']}"]
    if src == "elmo":
        flags += ["--src-lm-layers", "0,2"]
    train = [*TINY, *flags, *more, "--dropout", 0.1]
    commands.ok(*commands.training(tmp_path / "run", 2, *train, data=data))
    for folder in moved.values():
        shutil.rmtree(folder)
    assert "@ 4 updates" in commands.ok(*commands.training(tmp_path / "run", 4, *train, data=data))

    last = tmp_path / "run" / "checkpoint_best.pt"
    made = commands.ok(*commands.generation(last, data=data))
    found = sorted(line.split("\t", 2) for line in made.splitlines() if line.startswith("D-"))
    assert len(found) == 25

    shown, _ = json.JSONDecoder().raw_decode(commands.ok("lmfusion", "inspect", last, "--json"))
    kinds = [lm["kind"] for lm in shown["language_models"]]
    assert ["bert (2 layers" in kinds[0], "gpt2 (2 layers" in kinds[1]] == [True, True], kinds
    names = {mix["side"]: list(mix["shares"]) for mix in shown["mixes"]}
    expected = (
        {"source": ["embedding", "layer 2"]} if src == "elmo" else {"target": ["embedding", "layer 1", "layer 2"]}
    )
    assert names == expected

    translator = lmfusion.load_model(last)
    raw = (small_corpus / "test.en").read_text(encoding="utf-8").splitlines()
    translated = translator.translate(raw, beam=2, max_len_b=10)
    by_number = {line[0]: translator.detokenize(translator.remove_bpe(line[2])) for line in found}
    assert translated == [by_number[f"D-{number}"] for number in range(len(raw))]
