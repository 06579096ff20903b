"""fairseq-hydra-train with the package's config files: the same training as fairseq-train's, and as safe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import lmfusion
from lmfusion.checkpoint.reading import read_checkpoint

ROOT = Path(__file__).parents[2]
CONFIG = Path(lmfusion.USER_DIR) / "config"
CELLS = sorted(path.stem for path in (CONFIG / "cell").glob("*.yaml"))
SMALL = ["common.cpu=true", "dataset.num_workers=0", "dataset.max_tokens=2000", "checkpoint.no_epoch_checkpoints=true"]


def hydra(commands: Any, name: str, out: Path, updates: int, *values: object) -> list[object]:
    words: list[object] = ["fairseq-hydra-train", "--config-dir", CONFIG, "--config-name", name, *SMALL]
    return [*words, f"checkpoint.save_dir={out}", f"optimization.max_update={updates}", *values]


def cell(commands: Any, name: str, out: Path, updates: int, *values: object) -> list[object]:
    data = [f"task.data={commands.bitext}", "task.source_lang=en", "task.target_lang=de"]
    bpe = f"bpe.sentencepiece_model={commands.prepared / 'spm.model'}"
    return hydra(commands, "seq2seq", out, updates, f"cell={name}", *data, bpe, *values)


def lm_values(name: str, lm_files: dict[str, Path]) -> list[str]:
    """What a cell leaves to the user."""
    side = name[:3]
    return [f"model.{side}_lm={lm_files[side]}"] if side in lm_files else []


FLAGS = {
    "baseline": ["--arch", "lmfusion_tiny"],
    "shared": ["--arch", "lmfusion_tiny", "--share-all-embeddings"],
    "src_elmo": ["--arch", "src_elmo_tiny", "--src-elmo-dropout", 0.2, "--src-elmo-affine"],
    "src_elmo_shdemb": [
        *("--arch", "src_elmo_tiny", "--src-elmo-dropout", 0.2, "--src-elmo-affine"),
        "--share-decoder-input-output-embed",
    ],
    "src_ft": ["--arch", "src_ft_tiny"],
    "tgt_elmo": ["--arch", "tgt_elmo_tiny", "--tgt-elmo-dropout", 0.2, "--tgt-elmo-affine"],
    "tgt_ft": ["--arch", "tgt_ft_tiny"],
}
SLOW = [name for name in FLAGS if name not in ("src_elmo_shdemb",)]


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in FLAGS])
def test_a_cell_trains_as_with_fairseq_train_bit_for_bit(
    commands: Any, lm_files: dict[str, Path], tmp_path: Path, name: str
) -> None:
    """So every value of the files arrives, the sizes of model._name included."""
    size = f"model._name={FLAGS[name][1]}"
    commands.ok(*cell(commands, name, tmp_path / "hydra", 2, size, *lm_values(name, lm_files)))
    side = name[:3]
    flags = [*FLAGS[name], *([f"--{side}-lm", lm_files[side]] if side in lm_files else [])]
    flags += ["--lr", 7e-4, "--lr-scheduler", "inverse_sqrt", "--warmup-updates", 4000]
    flags += ["--adam-betas", "(0.9,0.98)", "--adam-eps", 1e-8]
    commands.ok(*commands.training(tmp_path / "flags", 2, *flags))
    ours, theirs = (read_checkpoint(tmp_path / way / "checkpoint_last.pt") for way in ("hydra", "flags"))
    assert set(ours["model"]) == set(theirs["model"])
    assert [key for key, tensor in theirs["model"].items() if not torch.equal(tensor, ours["model"][key])] == []
    assert {**ours["cfg"]["model"], "arch": FLAGS[name][1]} == {**theirs["cfg"]["model"], "arch": FLAGS[name][1]}


def test_every_cell_has_a_test() -> None:
    assert sorted(FLAGS) == CELLS


@pytest.mark.parametrize(
    ("kind", "data"), [("cloze", "lm.en"), pytest.param("causal", "lm.de", marks=pytest.mark.slow)]
)
def test_language_models_train_by_name_of_size(commands: Any, tmp_path: Path, kind: str, data: str) -> None:
    arch = {"cloze": "bi_transformer_lm", "causal": "uni_transformer_lm"}[kind]
    sizes = [f"+model.decoder_{name}=16" for name in ("embed_dim", "ffn_embed_dim")] + ["+model.decoder_layers=1"]
    values = [f"lm={kind}", f"task.data={commands.prepared / data}", f"model._name={arch}_big", *sizes]
    commands.ok(*hydra(commands, "pretrain", tmp_path, 1, *values, "+model.decoder_attention_heads=4"))
    state = read_checkpoint(tmp_path / "checkpoint_last.pt")
    model, optimization = state["cfg"]["model"], state["cfg"]["optimization"]
    assert [model[f"decoder_{name}"] for name in ("embed_dim", "layers", "attention_heads")] == [16, 1, 4]
    assert (model["share_decoder_input_output_embed"], optimization["clip_norm"]) == (True, 0.1)
    assert state["cfg"]["optimizer"]["_name"] == "nag"
    assert lmfusion.load_lm(tmp_path / "checkpoint_last.pt").family == kind


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "data"), [("elmo", "lm.en"), ("recurrent", "lm.de")])
def test_recurrent_language_models_train_by_name(commands: Any, tmp_path: Path, kind: str, data: str) -> None:
    sizes = ["model.decoder_embed_dim=16", "model.decoder_layers=1", "+model.cell=gru"]
    commands.ok(
        *hydra(commands, "pretrain", tmp_path, 1, f"lm={kind}", f"task.data={commands.prepared / data}", *sizes)
    )
    lm = lmfusion.load_lm(tmp_path / "checkpoint_last.pt")
    assert (lm.family, lm.config["cell"], lm.num_layers) == (kind, "gru", 1)


@pytest.mark.slow
def test_a_fused_run_resumes_generates_and_translates_without_the_lm(
    commands: Any, lm_files: dict[str, Path], tmp_path: Path
) -> None:
    lm, out = tmp_path / "lm.pt", tmp_path / "run"
    lm.write_bytes(lm_files["tgt"].read_bytes())
    words = ["model._name=tgt_ft_tiny", f"model.tgt_lm={lm}", "+model.tgt_lm_freeze_layers=1"]
    commands.ok(*cell(commands, "tgt_ft", out, 2, *words))
    lm.unlink()
    assert "@ 2 updates" in commands.ok(*cell(commands, "tgt_ft", out, 3, *words))
    generated = commands.ok(*commands.generation(out / "checkpoint_last.pt", *commands.text_flags))
    sources = [line.split("\t", 1) for line in generated.splitlines() if line.startswith("S-")]
    texts = {line.split("\t")[0][2:]: line.split("\t")[2] for line in generated.splitlines() if line.startswith("D-")}
    raw = (commands.prepared / "text" / "test.en").read_text(encoding="utf-8").splitlines()
    assert len(sources) == len(texts) == len(raw)
    model = lmfusion.load_model(out)
    assert model.translate(raw[:4], beam=2, max_len_b=10) == [texts[str(number)] for number in range(4)]


ONE_LINE = {
    "a value left to the user": ((), "these values to you: add model.src_lm=…"),
    "a file that is not there": (("model.src_lm=nowhere.pt",), "nowhere.pt does not exist"),
    "a setting of a group of fairseq": (("model.src_lm=x.pt", "+dataset.max_token=5"), "dataset.max_token is no set"),
    "an architecture misspelled": (("model.src_lm=x.pt", "model._name=src_elmo_tny"), "did you mean src_elmo_tiny"),
    "a flag of another strategy": (
        ("model.src_lm=x.pt", "+model.src_lm_freeze_layers=0"),
        "--src-lm-freeze-layers would be ignored with --src-fusion elmo",
    ),
}


@pytest.mark.parametrize("case", ONE_LINE)
def test_mistakes_end_in_one_line(commands: Any, tmp_path: Path, case: str) -> None:
    values, message = ONE_LINE[case]
    assert message in commands.refused(*cell(commands, "src_elmo", tmp_path / "out", 1, *values))
    assert not list(tmp_path.rglob("*.pt"))


def test_the_rest_of_the_configuration_is_checked_too(commands: Any, lm_files: dict[str, Path], tmp_path: Path) -> None:
    values = [f"model.src_lm={lm_files['src']}", "+model.src_lm_lr_scale=0.1", "common.fp16=true"]
    refused = commands.refused(*cell(commands, "src_ft", tmp_path, 1, *values))
    assert "--src-lm-lr-scale needs parameters one by one" in refused


def test_errors_of_other_configs_end_in_one_line_too(commands: Any, tmp_path: Path) -> None:
    """A config file of the user's own, which does not build on ours."""
    (tmp_path / "own.yaml").write_text(
        f"common: {{user_dir: {lmfusion.USER_DIR}, cpu: true}}\n"
        f"task: {{_name: translation, data: {commands.bitext}, source_lang: en, target_lang: de}}\n"
        f"checkpoint: {{save_dir: {tmp_path}}}\ndataset: {{max_tokens: 1000}}\n"
        "model: {_name: transformer_lmfusion, src_lm: some.pt}\n"
        "optimizer: {_name: adam}\nlr_scheduler: {_name: fixed}\ncriterion: {_name: cross_entropy}\n"
        f"hydra: {{run: {{dir: {tmp_path}}}}}\n",
        encoding="utf-8",
    )
    words = ["fairseq-hydra-train", "--config-dir", tmp_path, "--config-name", "own"]
    assert "--src-lm some.pt would be ignored" in commands.refused(*words)
