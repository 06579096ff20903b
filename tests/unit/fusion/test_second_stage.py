"""Models with a language model that start from one trained without: what is taken, what starts new, what is refused."""

from __future__ import annotations

from argparse import Namespace
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.models import build_model
from omegaconf import OmegaConf
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.fusion.attend import AveragedAttention
from lmfusion.fusion.interface import FUSIONS
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.lm.symbols import dictionary_of
from lmfusion.text.kit import TextKit

JOINING = {("attend", "none"), ("none", "cold"), ("none", "deep"), ("attend", "deep")}
DEEPER = {"encoder_layers": 2, "decoder_layers": 2}


def run_config(cfg: Namespace, folder: Path, start: Path | None) -> Any:
    """fairseq-train's whole config, as far as starting from checkpoints goes."""
    checkpoint = {"restore_file": "checkpoint_last.pt", "save_dir": str(folder), "continue_once": None}
    checkpoint["finetune_from_model"] = None if start is None else str(start)
    return OmegaConf.create({"model": {**vars(cfg), "_name": "transformer_lmfusion"}, "checkpoint": checkpoint})


@pytest.fixture
def trained(make_cell: Any, task: Any, shake: Any, tmp_path: Path) -> Any:
    """Save a model as training does: its path and the model in eval mode."""

    def make(src: str = "none", tgt: str = "none", **flags: Any) -> tuple[Path, TransformerLMFusion]:
        whole = run_config(make_cell(src, tgt, **{**DEEPER, **flags}), tmp_path / "first", None)
        model = shake(build_model(whole.model, task)).eval()
        path = tmp_path / "trained.pt"
        torch.save({"cfg": OmegaConf.to_container(whole), "model": model.state_dict()}, path)
        return path, model

    return make


@pytest.fixture
def start(make_cell: Any, task: Any, tmp_path: Path) -> Any:
    """Build a model that starts from a checkpoint, load it as fairseq's trainer does, and return it in eval mode."""

    def make(path: Path, src: str, tgt: str, **flags: Any) -> Any:
        whole = run_config(make_cell(src, tgt, **{**DEEPER, **flags}), tmp_path / "second", path)
        model = build_model(whole.model, task)
        model.load_state_dict(torch.load(path, weights_only=True)["model"], strict=True, model_cfg=whole.model)
        return model.eval()

    return make


def silence(model: Any) -> None:
    """Take the language models out of what a model computes, by the published formulas alone."""
    for module in model.modules():
        if isinstance(module, AveragedAttention):  # (2 own + 0) / 2
            for name, factor in (("own", 2.0), ("to_lm", 0.0)):
                projection = getattr(module, name).out_proj
                projection.weight.mul_(factor)
                projection.bias.mul_(factor)
    fusion = model.decoder.fusion
    if fusion is not None and fusion.name == "deep":  # W [x; g h] with g = 0
        fusion.gate.bias.fill_(-1e4)


@pytest.mark.parametrize(("src", "tgt"), sorted(JOINING - {("none", "cold")}))
@torch.no_grad()
def test_without_its_lm_it_computes_what_the_trained_model_does(
    trained: Any, start: Any, net_input: dict[str, Tensor], src: str, tgt: str
) -> None:
    path, before = trained()
    model = start(path, src, tgt)
    assert (model(**net_input)[0] - before(**net_input)[0]).abs().max() > 1e-3, "the language model has its say"
    silence(model)
    torch.testing.assert_close(model(**net_input)[0], before(**net_input)[0], rtol=0, atol=1e-6)


@torch.no_grad()
def test_the_features_that_cold_fusion_is_given_are_those_of_the_trained_model(
    trained: Any, start: Any, net_input: dict[str, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, before = trained()
    model = start(path, "none", "cold")
    monkeypatch.setattr(model.decoder.fusion, "features", lambda x, states: x)
    assert torch.equal(model(**net_input)[0], before(**net_input)[0])


@torch.no_grad()
def test_attention_to_the_lm_is_half_of_all_in_decoding_and_all_or_nothing_in_training(
    trained: Any, start: Any, net_input: dict[str, Tensor]
) -> None:
    """So docs/rivals.md says of the start; the other half is the trained one's."""
    path, before = trained()
    model = start(path, "attend", "none")
    layer, old = model.encoder.layers[0].self_attn, before.encoder.layers[0].self_attn
    layer.to_lm.out_proj.weight.zero_()
    x = torch.randn(3, 2, 8)
    expected = old(x, x, x)[0]
    model.encoder.fusion.receive([torch.randn(2, 4, 16)], torch.zeros(2, 4, dtype=torch.bool))
    torch.testing.assert_close(layer(x, x, x)[0], expected / 2)
    layer.train()
    drawn = [layer(x, x, x)[0] for _ in range(40)]
    kept = [found for found in drawn if found.abs().max() > 0]
    assert 0 < len(kept) < 40
    for found in kept:
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("src", "tgt"), sorted(JOINING))
def test_what_the_integration_adds_starts_as_without_a_trained_model(
    make_cell: Any, trained: Any, start: Any, task: Any, src: str, tgt: str
) -> None:
    path, before = trained()
    cfg, models = make_cell(src, tgt, **DEEPER), []
    for begin in (lambda: TransformerLMFusion.build_model(cfg, task), lambda: start(path, src, tgt)):
        torch.manual_seed(5)
        models.append(begin().state_dict())
    fresh, found = models
    old = before.state_dict()
    own = {name for name in found if ".to_lm." in name or ".representation." in name}
    assert len(found) == len(own) + len(old)
    for name in found:
        if name not in own:
            assert torch.equal(found[name], old[name.replace(".own.", ".")]), name
        elif name.endswith("representation.output_layer.weight") and tgt == "deep":
            assert torch.equal(found[name][:, :8], torch.eye(8)), "the trained features pass"
            assert torch.equal(found[name][:, 8:], fresh[name][:, 8:])
        else:
            assert torch.equal(found[name], fresh[name]), name


def test_an_integration_is_added_to_a_model_that_has_the_other_sides(
    trained: Any, start: Any, net_input: dict[str, Tensor]
) -> None:
    path, before = trained("attend", "none")
    found, old = start(path, "attend", "deep").state_dict(), before.state_dict()
    assert set(found) - set(old) == {name for name in found if name.startswith("decoder.reader.")}
    assert all(torch.equal(found[name], old[name]) for name in old)


def test_it_may_start_from_a_denoiser_whose_mask_is_left_out(
    make_cell: Any, task: Any, dictionary: Any, shake: Any, start: Any, tmp_path: Path
) -> None:
    task.target_dictionary = dictionary
    larger = dictionary_of([*dictionary.symbols, "<mask>"])
    noisy = SimpleNamespace(source_dictionary=larger, target_dictionary=larger, mask_idx=len(larger) - 1)
    cfg = make_cell("none", "none", **DEEPER)
    denoiser = shake(TransformerLMFusion.build_model(cfg, noisy)).state_dict()
    torch.save({"cfg": {"model": vars(cfg)}, "model": denoiser}, tmp_path / "denoiser.pt")
    found = start(tmp_path / "denoiser.pt", "attend", "none").state_dict()
    assert torch.equal(found["encoder.embed_tokens.weight"], denoiser["encoder.embed_tokens.weight"][:-1])
    attention = denoiser["decoder.layers.1.encoder_attn.v_proj.weight"]
    assert torch.equal(found["decoder.layers.1.encoder_attn.own.v_proj.weight"], attention)


def test_only_the_start_may_lack_what_the_integration_adds(trained: Any, start: Any) -> None:
    path, before = trained()
    with pytest.raises(RuntimeError, match="to_lm"):
        start(path, "attend", "none").load_state_dict(before.state_dict(), strict=True)


def test_it_resumes_from_its_own_checkpoint_without_the_trained_one(
    make_cell: Any, trained: Any, start: Any, task: Any, tmp_path: Path, net_input: dict[str, Tensor]
) -> None:
    path, _ = trained()
    model = start(path, "attend", "none")
    (tmp_path / "second").mkdir()
    whole = run_config(make_cell("attend", "none", **DEEPER), tmp_path / "second", path)
    state = {"cfg": OmegaConf.to_container(whole), "model": model.state_dict()}
    torch.save(state, tmp_path / "second" / "checkpoint_last.pt")
    path.unlink()
    again = build_model(whole.model, task).eval()
    again.load_state_dict(state["model"], strict=True)
    assert torch.equal(again(**net_input)[0], model(**net_input)[0])
    del state["model"]["encoder.layers.0.self_attn.to_lm.k_proj.weight"]
    with pytest.raises(RuntimeError, match=r"to_lm\.k_proj"):  # it is no start any more
        build_model(whole.model, task).load_state_dict(state["model"], strict=True)


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"encoder_layers": 3}, r"it has no encoder\.layers\.2\.\S+\. Give"),
        ({"decoder_layers": 1}, r"its decoder\.layers\.1\.\S+ has no place here"),
        ({"encoder_ffn_embed_dim": 16}, r"encoder\.layers\.0\.fc1\.weight is 12 x 8 and not 16 x 8"),
        ({"share_decoder_input_output_embed": True}, r"its decoder\.\S+ and decoder\.\S+ differ"),
    ],
)
def test_other_sizes_and_ties_are_refused_by_name(trained: Any, start: Any, flags: dict[str, Any], named: str) -> None:
    path, _ = trained()
    with pytest.raises(InputError, match=named) as refused:
        start(path, "attend", "none", **flags)
    assert str(refused.value).startswith(f"--finetune-from-model {path} does not fit")
    assert "\n" not in str(refused.value)


def test_ties_may_be_loosened(trained: Any, start: Any) -> None:
    path, before = trained(share_decoder_input_output_embed=True)
    model = start(path, "attend", "none")
    assert torch.equal(model.decoder.output_projection.weight, before.decoder.embed_tokens.weight)


@pytest.mark.parametrize("side", ["source", "target"])
def test_another_dictionary_of_the_same_size_is_refused(
    trained: Any, start: Any, task: Any, tmp_path: Path, side: str
) -> None:
    path, _ = trained()
    sides = {"source": task.source_dictionary, "target": task.target_dictionary}
    contents = {name: "".join(f"{word} 1\n" for word in each.symbols[4:]) for name, each in sides.items()}
    for changed in (False, True):
        if changed:
            first, second, *rest = contents[side].splitlines()
            contents[side] = "".join(f"{line}\n" for line in (second, first, *rest))
        kit = TextKit(("en", "de"), dictionaries=tuple(content.encode() for content in contents.values()))
        torch.save({**torch.load(path, weights_only=True), "text": kit.to_state()}, path)
        with pytest.raises(InputError, match=f"the {side} dictionary .* index 4,") if changed else nullcontext():
            start(path, "attend", "none")


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        (("elmo", "none"), ("attend", "none"), "--src-fusion elmo, and --src-fusion attend"),
        (("none", "cold"), ("none", "deep"), "--tgt-fusion cold, and --tgt-fusion deep"),
        (("none", "cold"), ("attend", "none"), "--tgt-fusion cold, and --tgt-fusion none"),
        (("none", "initialise"), ("attend", "none"), "--tgt-fusion initialise, and --tgt-fusion none"),
    ],
)
def test_a_model_with_another_integration_is_refused(
    trained: Any, start: Any, first: tuple[str, str], second: tuple[str, str], named: str
) -> None:
    path, _ = trained(*first)
    with pytest.raises(InputError, match=named):
        start(path, *second)


def test_which_integrations_join_a_trained_model_is_known() -> None:
    names = {name for pair in JOINING for name in pair} - {"none"}
    joining = {name for name, fusion in FUSIONS.items() if fusion.keeps_lm and not fusion.replaces_embeddings}
    assert joining == names
