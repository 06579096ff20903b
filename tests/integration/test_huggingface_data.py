"""``lmfusion data --src-hf``: one side in the pieces of a Hugging Face model, the other in its own BPE."""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest
from fairseq.data import Dictionary, data_utils

import lmfusion
from lmfusion.errors import InputError
from lmfusion.rows.asked import Asked, check
from lmfusion.text import prepared
from lmfusion.text.huggingface import PieceTokenizer

transformers = pytest.importorskip("transformers")
MODELS = runpy.run_path(str(Path(__file__).parents[1] / "hf_models.py"))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A BERT and a GPT-2, with random weights."""
    made = {name: tmp_path_factory.mktemp("models") / name for name in ("bert", "gpt2")}
    for name, folder in made.items():
        MODELS["save_model"](name, folder, **{"n_positions" if name == "gpt2" else "max_position_embeddings": 500})
    return made


@pytest.fixture(scope="module")
def files(small_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """The flags of ``lmfusion data`` that name the text."""
    folder = tmp_path_factory.mktemp("text")
    for side in ("en", "de"):
        lines = (small_corpus / f"train.{side}").read_text(encoding="utf-8").splitlines(keepends=True)[:250]
        (folder / f"train.{side}").write_text("".join(lines), encoding="utf-8")
    return ["--pairs", folder / "train.en", folder / "train.de", "--held-out", 20]


@pytest.fixture(scope="module")
def data(commands: Any, files: list[object], models: dict[str, Path], tmp_path_factory: Any) -> prepared.Prepared:
    """English in BERT's pieces, German in a BPE."""
    out = tmp_path_factory.mktemp("prepared") / "data"
    commands.ok("lmfusion", "data", *files, "--src-hf", models["bert"], "--bpe-size", 400, "--out", out)
    return prepared.read(out)


def test_a_side_is_in_the_models_pieces_and_the_other_in_its_own_bpe(
    data: prepared.Prepared, models: dict[str, Path]
) -> None:
    tokenizer = PieceTokenizer.from_folder(models["bert"])
    english, german = (Dictionary.load(str(data.dictionary_of(side))) for side in ("en", "de"))
    assert english.symbols == lmfusion.load_lm(models["bert"]).symbols
    assert german.symbols != english.symbols
    binarized = data_utils.load_indexed_dataset(str(data.bitext / "valid.en-de.en"), english)
    lines = data.text("valid", "en").read_text(encoding="utf-8").splitlines()
    for line, tokens in zip(lines, binarized, strict=True):
        assert [english[number] for number in tokens[:-1]] == tokenizer.encode(line)
    assert set(data.symbols) == {"de"}, "the model is the English side's language model"
    assert data.tokenizers == {"en": tokenizer.hash}
    assert not (data.folder / "tok" / "train.en").exists()


def test_a_model_with_another_tokenizer_is_refused(
    data: prepared.Prepared, models: dict[str, Path], tmp_path: Path
) -> None:
    def asked(**lms: Path) -> Asked:
        return Asked(data, ["src_elmo"], tmp_path, language_models=lms)

    check(asked(src=models["bert"]))
    with pytest.raises(InputError, match="give the folder of that by --src-lm"):
        check(asked())
    with pytest.raises(InputError, match="--src-hf"):
        check(asked(src=models["gpt2"]))
    with pytest.raises(InputError, match="--tgt-hf"):
        check(asked(src=models["bert"], tgt=models["gpt2"]))
    changed = shutil.copytree(models["bert"], tmp_path / "changed")
    content = json.loads((changed / "tokenizer.json").read_text(encoding="utf-8"))
    content["normalizer"]["strip_accents"] = True  # the same pieces
    (changed / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    assert lmfusion.load_lm(changed).symbols == lmfusion.load_lm(models["bert"]).symbols
    with pytest.raises(InputError, match="has changed since"):
        check(asked(src=changed))


def test_merges_count_as_part_of_a_tokenizer(models: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(models["gpt2"], tmp_path / "gpt2")
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    content["model"]["merges"].reverse()
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    before, after = (PieceTokenizer.from_folder(path) for path in (models["gpt2"], folder))
    assert before.symbols == after.symbols
    assert before.hash != after.hash
    assert before.hash == PieceTokenizer.from_values(json.loads(json.dumps(before.to_values()))).hash


def test_a_model_that_loses_capitals_cannot_be_the_targets(
    commands: Any, files: list[object], models: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(models["bert"], tmp_path / "uncased")
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    content["normalizer"]["lowercase"] = True
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    done = commands.run("lmfusion", "data", *files, "--tgt-hf", folder, "--bpe-size", 400, "--out", tmp_path / "out")
    assert done.status == 2
    assert "--tgt-hf" in done.output
    assert "capitals" in done.output


@pytest.mark.slow
def test_what_is_trained_on_it_translates_text_when_folder_and_data_are_gone(
    commands: Any, data: prepared.Prepared, models: dict[str, Path], tmp_path: Path
) -> None:
    moved = shutil.copytree(data.folder, tmp_path / "data")
    folder = shutil.copytree(models["bert"], tmp_path / "bert")
    here = prepared.read(moved)
    flags = ["--arch", "lmfusion_tiny", "--src-fusion", "finetune", "--src-lm", folder, "--src-lm-lora", 2]
    text = ["--bpe", "lmfusion", "--src-bpe", f"pieces:{here.pieces('en')}"]
    text += ["--tgt-bpe", f"sentencepiece:{here.bpe_model}"]
    commands.ok(*commands.training(tmp_path / "run", 2, *flags, *text, data=here.bitext))
    best = tmp_path / "run" / "checkpoint_best.pt"
    made = commands.ok(*commands.generation(best, *text, data=here.bitext))
    expected = {line.split("\t")[0][2:]: line.split("\t")[2] for line in made.splitlines() if line.startswith("D-")}
    shown, _ = json.JSONDecoder().raw_decode(commands.ok("lmfusion", "inspect", best, "--json"))
    (lm,) = shown["language_models"]
    assert 0 < lm["trained"] < lm["parameters"] / 2, "low-rank adapters alone"
    source = here.text("test", "en").read_text(encoding="utf-8").splitlines()
    for gone in (moved, folder):
        shutil.rmtree(gone)
    translated = lmfusion.load_model(best).translate(source, beam=2, max_len_b=10)
    assert translated == [expected[str(number)] for number in range(len(source))]


@pytest.mark.slow
def test_both_sides_in_pieces_of_models(
    commands: Any, files: list[object], models: dict[str, Path], tmp_path: Path
) -> None:
    """No BPE is learned, and rows train from the scripts."""
    words = ["--src-hf", models["bert"], "--tgt-hf", models["gpt2"], "--out", tmp_path / "data"]
    commands.ok("lmfusion", "data", *files, *words)
    assert not (tmp_path / "data" / "spm.model").exists()
    sizes = "S2S_UPDATES=4 S2S_DIM=16 S2S_FFN=16 S2S_LAYERS=1 S2S_HEADS=2".split()
    given = ["--src-lm", models["bert"], "--tgt-lm", models["gpt2"], "--set", *sizes, "--jobs", 1]
    out = commands.ok(
        "lmfusion", "train", tmp_path / "data", "--rows", "src_elmo,tgt_ft", *given, "--out", tmp_path / "o"
    )
    assert "BLEU" in out
    assert (tmp_path / "o" / "tgt_ft" / "scores.json").is_file()
