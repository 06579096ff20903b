"""A checkpoint is complete in itself: its weights and config rebuild the model without the LMs' files."""

from __future__ import annotations

import copy
import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models import build_model
from omegaconf import OmegaConf
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.lm.freezing import state_fingerprint
from lmfusion.lm.loading import load_lm
from lmfusion.lm.symbols import dictionary_hash

FUSIONS = ("none", "elmo", "finetune")
USED = [(src, tgt) for src in FUSIONS for tgt in FUSIONS if (src, tgt) != ("none", "none")]


def trained(cfg: Namespace, task: Any, shake: Any) -> TransformerLMFusion:
    """A model whose every weight differs from the LMs' files."""
    model: TransformerLMFusion = shake(TransformerLMFusion.build_model(cfg, task)).eval()
    return model


@pytest.mark.parametrize(("src", "tgt"), USED)
def test_rebuilt_without_the_files_it_says_the_same(
    make_cell: Any, task: Any, shake: Any, net_input: dict[str, Tensor], tmp_path: Path, src: str, tgt: str
) -> None:
    cfg = make_cell(src, tgt)
    model = trained(cfg, task, shake)
    expected = model(**net_input)[0]
    torch.save({"cfg": vars(cfg), "model": model.state_dict()}, tmp_path / "checkpoint.pt")
    for side in ("source", "target"):
        (tmp_path / f"{side}_lm.pt").unlink()
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    rebuilt = TransformerLMFusion.build_model(Namespace(**state["cfg"]), task).eval()
    rebuilt.load_state_dict(state["model"], strict=True)
    assert torch.equal(rebuilt(**net_input)[0], expected)


def test_config_keeps_what_the_lm_was(make_cell: Any, task: Any, src_lm: Path, dictionary: Dictionary) -> None:
    cfg = make_cell("elmo", "none")
    assert not cfg.src_lm_config
    TransformerLMFusion.build_model(cfg, task)
    kept = json.loads(cfg.src_lm_config)
    lm = load_lm(src_lm)
    assert kept["dictionary_hash"] == dictionary_hash(dictionary.symbols)
    assert kept["fingerprint"] == state_fingerprint(lm)
    assert kept["lm"] == {"family": "cloze", **lm.config}
    assert not cfg.tgt_lm_config


def test_fine_tuning_dropouts_are_read_from_the_checkpoint_config_too(make_cell: Any, task: Any) -> None:
    cfg = make_cell("finetune", "none", src_lm_dropout=0.45)
    TransformerLMFusion.build_model(cfg, task)
    again = TransformerLMFusion.build_model(copy.copy(cfg), task)
    assert again.encoder.embed_tokens.lm.config["dropout"] == 0.45


@pytest.mark.parametrize(("src", "tgt"), USED)
def test_model_without_lm_weights_refuses_to_run(
    make_cell: Any, task: Any, net_input: dict[str, Tensor], src: str, tgt: str
) -> None:
    """Random numbers in place of a pretrained LM would be a silent fresh start."""
    cfg = make_cell(src, tgt)
    weights = TransformerLMFusion.build_model(cfg, task).state_dict()
    empty = TransformerLMFusion.build_model(cfg, task)
    with pytest.raises(InputError, match=r"has no weights.*--src-lm/--tgt-lm"):
        empty(**net_input)
    empty.load_state_dict(weights)
    assert empty(**net_input)[0].isfinite().all()


def test_checkpoint_with_data_of_another_dictionary(
    make_cell: Any, task: Any, shake: Any, other_dictionary: Dictionary
) -> None:
    cfg = make_cell("elmo", "none")
    weights = trained(cfg, task, shake).state_dict()
    task.source_dictionary = other_dictionary
    rebuilt = TransformerLMFusion.build_model(cfg, task)
    with pytest.raises(InputError, match=r"index 7, where the language model has 'w3' and .* has 'x'"):
        rebuilt.load_state_dict(weights)


def test_missing_weight_of_the_lm_is_an_error(make_cell: Any, task: Any, shake: Any) -> None:
    cfg = make_cell("elmo", "none")
    weights = trained(cfg, task, shake).state_dict()
    del weights["encoder.embed_tokens.representation.lm.join.q_proj.weight"]
    rebuilt = TransformerLMFusion.build_model(cfg, task)
    with pytest.raises(RuntimeError, match=r"lm\.join\.q_proj\.weight"):
        rebuilt.load_state_dict(weights, strict=True)


def run_config(cfg: Namespace, folder: Path, **options: str) -> Any:
    """fairseq-train's whole config, as far as starting from checkpoints goes."""
    values = {**vars(cfg), "_name": "transformer_lmfusion"}
    checkpoint = {"restore_file": "checkpoint_last.pt", "save_dir": str(folder)}
    none = {"finetune_from_model": None, "continue_once": None}
    return OmegaConf.create({"model": values, "checkpoint": {**checkpoint, **none, **options}})


def test_run_resumes_after_the_lm_file_is_gone(
    make_cell: Any, task: Any, shake: Any, src_lm: Path, tmp_path: Path, net_input: dict[str, Tensor]
) -> None:
    """The command line still names the file; the run's own checkpoint has what it held."""
    first = run_config(make_cell("elmo", "none"), tmp_path)
    model = shake(build_model(first.model, task)).eval()
    saved = {"cfg": OmegaConf.to_container(first), "model": model.state_dict()}
    assert saved["cfg"]["model"]["src_lm_config"]  # fairseq hands the model a copy and saves the original
    torch.save(saved, tmp_path / "checkpoint_last.pt")
    command_line = run_config(make_cell("elmo", "none"), tmp_path)
    src_lm.unlink()
    resumed = build_model(command_line.model, task).eval()
    resumed.load_state_dict(saved["model"])
    assert torch.equal(resumed(**net_input)[0], model(**net_input)[0])


def test_run_does_not_go_on_with_another_lm(
    *, make_cell: Any, task: Any, shake: Any, src_lm: Path, tmp_path: Path, make_cloze: Any, save_lm: Any
) -> None:
    """Its weights would be ignored, for the checkpoint brings those of the one before."""
    first = run_config(make_cell("elmo", "none"), tmp_path)
    model = build_model(first.model, task)
    torch.save({"cfg": OmegaConf.to_container(first), "model": model.state_dict()}, tmp_path / "checkpoint_last.pt")
    build_model(run_config(make_cell("elmo", "none"), tmp_path).model, task)
    src_lm.unlink()
    save_lm(shake(make_cloze()), src_lm.name)
    with pytest.raises(InputError, match=r"was trained with another language model than .*--save-dir"):
        build_model(run_config(make_cell("elmo", "none"), tmp_path).model, task)


def test_another_lm_is_found_although_the_other_sides_file_is_gone(
    *, make_cell: Any, task: Any, shake: Any, src_lm: Path, tgt_lm: Path, tmp_path: Path, make_cloze: Any, save_lm: Any
) -> None:
    first = run_config(make_cell("elmo", "elmo"), tmp_path)
    model = build_model(first.model, task)
    torch.save({"cfg": OmegaConf.to_container(first), "model": model.state_dict()}, tmp_path / "checkpoint_last.pt")
    command_line = [run_config(make_cell("elmo", "elmo"), tmp_path).model for _ in range(2)]
    tgt_lm.unlink()
    build_model(command_line[0], task)
    src_lm.unlink()
    save_lm(shake(make_cloze()), src_lm.name)
    with pytest.raises(InputError, match=r"was trained with another language model than .*source_lm\.pt"):
        build_model(command_line[1], task)


@pytest.mark.parametrize("option", ["restore_file", "finetune_from_model"])
def test_weights_of_another_run_bring_their_lm(
    *,
    make_cell: Any,
    task: Any,
    src_lm: Path,
    tmp_path: Path,
    shake: Any,
    make_cloze: Any,
    save_lm: Any,
    monkeypatch: pytest.MonkeyPatch,
    option: str,
) -> None:
    """By a path relative to the working directory, as fairseq reads it, not to --save-dir."""
    monkeypatch.chdir(tmp_path)
    Path("before").mkdir()
    given = {option: "before/checkpoint_best.pt"}
    first = run_config(make_cell("elmo", "none"), Path("before"))
    model = build_model(first.model, task)
    torch.save({"cfg": OmegaConf.to_container(first), "model": model.state_dict()}, given[option])
    src_lm.unlink()
    build_model(run_config(make_cell("elmo", "none"), Path("now"), **given).model, task)
    save_lm(shake(make_cloze()), src_lm.name)
    with pytest.raises(InputError, match=r"before/checkpoint_best\.pt was trained with another language model than"):
        build_model(run_config(make_cell("elmo", "none"), Path("now"), **given).model, task)


def test_weights_without_those_of_the_lm_do_not_count(make_cell: Any, task: Any, net_input: dict[str, Tensor]) -> None:
    """Loaded leniently (strict=False), they leave random numbers in its place."""
    cfg = make_cell("elmo", "none")
    weights = TransformerLMFusion.build_model(cfg, task).state_dict()
    rest = {name: value for name, value in weights.items() if ".representation.lm." not in name}
    empty = TransformerLMFusion.build_model(cfg, task)
    empty.load_state_dict(rest, strict=False)
    with pytest.raises(InputError, match="has no weights"):
        empty(**net_input)


def test_new_run_without_the_lm_file_is_refused(make_cell: Any, task: Any, src_lm: Path, tmp_path: Path) -> None:
    cfg = run_config(make_cell("elmo", "none"), tmp_path)
    src_lm.unlink()
    with pytest.raises(InputError, match=r"source_lm\.pt does not exist"):
        TransformerLMFusion.build_model(cfg.model, task)


@pytest.mark.parametrize("cell", [("elmo", "finetune"), ("finetune", "elmo"), ("attend", "cold")], ids=" ".join)
@pytest.mark.parametrize("chosen", [{"encoder": "1", "decoder": "0,2"}, {"encoder": "0,1"}, {"decoder": "2"}], ids=str)
def test_pruning_keeps_the_layers_named_and_all_of_the_language_models(
    make_cell: Any, task: Any, net_input: Any, cell: tuple[str, str], chosen: dict[str, str]
) -> None:
    layers = {"encoder_layers": 3, "decoder_layers": 3}
    torch.manual_seed(1)
    whole = TransformerLMFusion.build_model(make_cell(*cell, **layers), task).eval()
    weights = dict(whole.state_dict())
    cfg = make_cell(*cell, **layers, **{f"{stack}_layers_to_keep": kept for stack, kept in chosen.items()})
    cfg.arch = "transformer_lmfusion"
    pruned = TransformerLMFusion.build_model(cfg, task).eval()
    pruned.load_state_dict(weights, strict=True, model_cfg=cfg)
    for stack, kept in chosen.items():
        module = getattr(whole, stack)
        module.layers = torch.nn.ModuleList(module.layers[int(number)] for number in kept.split(","))
    assert len(list(pruned.parameters())) == len(list(whole.parameters()))
    torch.testing.assert_close(pruned(**net_input)[0], whole(**net_input)[0], rtol=0, atol=0)
