"""Flags of fairseq that few use, with a language model inside: they work, or are refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from lmfusion.checkpoint.reading import read_file

ELMO = ("--arch", "src_elmo_tiny", "--src-elmo-affine", "--src-lm")


def read(path: Path) -> Any:
    return read_file(path)


@pytest.mark.slow
def test_moving_averages_copy_what_does_not_move_and_go_on(
    commands: Any, lm_files: dict[str, Path], tmp_path: Path
) -> None:
    flags = [*ELMO, lm_files["src"], "--store-ema", "--ema-decay", 0.5, "--src-lm-cache", tmp_path / "states"]
    for updates in (2, 3):
        commands.ok(*commands.training(tmp_path / "run", updates, *flags))
    state = read(tmp_path / "run" / "checkpoint_last.pt")
    model, average = state["model"], state["extra_state"]["ema"]
    assert model.keys() == average.keys()
    fixed = [name for name in model if ".representation.lm." in name]
    assert any(name.endswith("symbol_table.codes") for name in fixed)
    assert all(torch.equal(model[name], average[name]) for name in fixed)
    moved = "decoder.layers.0.fc1.weight"
    assert 0 < (model[moved] - average[moved]).abs().max() < 0.1


def test_a_language_model_has_moving_averages(commands: Any, tmp_path: Path) -> None:
    flags = ["--self-target", "--arch", "bi_transformer_lm", "--store-ema", "--ema-fp32"]
    commands.ok(*commands.pretraining("en", tmp_path, 2, *flags))
    assert "ema_fp32_params" in read(tmp_path / "checkpoint_last.pt")["extra_state"]


def test_rows_padded_beyond_the_positions_are_no_longer_sentences(commands: Any, tmp_path: Path) -> None:
    skip = "--skip-invalid-size-inputs-valid-test"
    flags = ["--arch", "uni_transformer_lm", "--decoder-learned-pos", "--tokens-per-sample", 20, skip]
    commands.ok(*commands.pretraining("de", tmp_path / "lm", 2, *flags))
    lm = ["--arch", "tgt_elmo_tiny", "--tgt-lm", tmp_path / "lm" / "checkpoint_last.pt", "--max-target-positions", 20]
    commands.ok(*commands.training(tmp_path / "run", 2, *lm, skip, "--required-seq-len-multiple", 8))


@pytest.mark.parametrize("optimizer", ["adafactor", "sgd"])
def test_optimizers_of_the_old_kind_take_a_rate_for_the_language_model(
    commands: Any, lm_files: dict[str, Path], tmp_path: Path, optimizer: str
) -> None:
    flags = ["--arch", "src_ft_tiny", "--src-lm", lm_files["src"], "--src-lm-lr-scale", 0.1]
    commands.ok(*commands.training(tmp_path / "run", 2, *flags, "--optimizer", optimizer))
    state = read(tmp_path / "run" / "checkpoint_last.pt")["last_optimizer_state"]
    assert len(state["param_groups"]) == 2, "the language model's has a rate of its own"
    more = commands.training(tmp_path / "run", 3, *flags[:4], "--optimizer", optimizer)
    assert "--src-lm-lr-scale" in commands.refused(*more)
    assert "@ 3 updates" in commands.ok(*more, "--reset-optimizer")


def test_a_causal_language_model_generates_and_a_cloze_one_is_refused(commands: Any, lm_files: dict[str, Path]) -> None:
    flags = ["--beam", 2, "--max-len-b", 5, "--batch-size", 16]
    output = commands.ok(*commands.with_lm("fairseq-generate", "de", lm_files["tgt"], *flags))
    assert len([line for line in output.splitlines() if line.startswith("H-")]) == 30
    words = commands.with_lm("fairseq-generate", "en", lm_files["src"], "--self-target", *flags)
    assert "is a cloze language model" in commands.refused(*words)


@pytest.mark.slow
def test_hypotheses_end_where_the_language_model_on_top_ends(commands: Any, cells: Any, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for path in commands.bitext.iterdir():
        (data / path.name).symlink_to(path)
    (data / "dict.txt").symlink_to(data / "dict.de.txt")
    flags = ["--arch", "uni_transformer_lm", "--tokens-per-sample", 12, "--skip-invalid-size-inputs-valid-test"]
    flags.append("--disable-validation")  # none of its sentences is as short
    commands.ok(*commands.pretraining("de", tmp_path, 2, *flags))
    lm = ("--lm-path", tmp_path / "checkpoint_last.pt", "--lm-weight", 0.3, "--min-len", 1)
    output = commands.ok(*commands.generation(cells, *lm, "--max-len-b", 60, data=data))
    lengths = [len(line.split("\t")[2].split()) for line in output.splitlines() if line.startswith("H-")]
    assert 0 < max(lengths) <= 12


@pytest.fixture(scope="module")
def cells(commands: Any, lm_files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A TGT-ELMO model of two decoder layers."""
    out = tmp_path_factory.mktemp("tgt_elmo")
    flags = ["--arch", "tgt_elmo_tiny", "--tgt-lm", lm_files["tgt"], "--encoder-layers", 1, "--decoder-layers", 2]
    commands.ok(*commands.training(out, 2, *flags))
    return out / "checkpoint_last.pt"
