"""``--src-lm-cache``: training on stored states of the source LM is training on the LM."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder
from omegaconf import OmegaConf
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.state_cache.plan import announce


def losses(model: TransformerLMFusion, net_input: dict[str, Tensor], updates: int) -> list[float]:
    """Of a few updates of Adam."""
    model.train()
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    found = []
    for _ in range(updates):
        logits = model(**net_input)[0]
        loss = F.cross_entropy(logits.flatten(0, 1), net_input["prev_output_tokens"].flatten(), ignore_index=1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("flags", [{}, {"src_elmo_affine": True, "share_decoder_input_output_embed": True}])
def test_losses_are_the_same_with_and_without(
    make_model: Any, net_input: dict[str, Tensor], tmp_path: Path, flags: dict[str, Any]
) -> None:
    found = []
    for cache in (None, str(tmp_path / "states"), str(tmp_path / "states")):
        torch.manual_seed(1)
        found.append(losses(make_model("elmo", "none", src_lm_cache=cache, **flags), net_input, 5))
    assert found[1] == pytest.approx(found[0], abs=1e-5)
    assert found[2] == found[1]
    assert found[0][-1] < found[0][0]


def test_the_lm_rests_from_the_second_epoch_on(make_model: Any, net_input: dict[str, Tensor], tmp_path: Path) -> None:
    model = make_model("elmo", "none", src_lm_cache=str(tmp_path)).train()
    calls: list[int] = []
    model.encoder.embed_tokens.lm.forward_layers.register_forward_hook(lambda *_: calls.append(1))
    for _ in range(3):
        model(**net_input)
    assert calls == [1]


def test_evaluation_neither_reads_nor_writes_it(make_model: Any, net_input: dict[str, Tensor], tmp_path: Path) -> None:
    """A checkpoint generates where there is no such folder."""
    folder = tmp_path / "states"
    model = make_model("elmo", "none", src_lm_cache=str(folder)).eval()
    model(**net_input)
    assert not folder.exists()


@pytest.mark.parametrize("fusion", ["none", "finetune"])
@pytest.mark.parametrize("flag", ["src_lm_cache", "src_lm_cache_half"])
def test_only_a_frozen_lm_can_be_stored(make_model: Any, fusion: str, flag: str) -> None:
    with pytest.raises(InputError, match=f"--{flag.replace('_', '-')} would be ignored with --src-fusion {fusion}"):
        make_model(fusion, "none", **{flag: "states" if flag == "src_lm_cache" else True})


def test_half_alone_says_nothing(make_model: Any) -> None:
    with pytest.raises(InputError, match="--src-lm-cache-half would be ignored"):
        make_model("elmo", "none", src_lm_cache_half=True)


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """A run's configuration with a training set of 5 + 3 tokens in two sentences."""
    prefix = str(tmp_path / "train.en-de.en")
    builder = MMapIndexedDatasetBuilder(prefix + ".bin")
    for length in (5, 3):
        builder.add_item(torch.full((length,), 7))
    builder.finalize(prefix + ".idx")
    task = {"data": str(tmp_path), "source_lang": "en", "target_lang": "de"}
    return OmegaConf.create({"task": task, "dataset": {"train_subset": "train"}})


@pytest.mark.parametrize("languages", [("en", "de"), (None, None)])
def test_size_is_told_before_training(
    make_model: Any, run: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, languages: tuple[str | None, ...]
) -> None:
    """8 tokens and 2 leading </s>, each 5 states (embedding, 2 layers, context, joined) of 32 channels in 4 bytes."""
    stored = make_model("elmo", "none", src_lm_cache=str(tmp_path)).encoder.embed_tokens.representation.stored
    assert stored.bytes_per_token() == 5 * 32 * 4
    run.task.source_lang, run.task.target_lang = languages  # None: fairseq takes them from the data's names
    with caplog.at_level(logging.INFO):
        announce(stored, run)
    assert f"up to {10 * 5 * 32 * 4 / 1e9:.2f} GB for 10 tokens of training text" in caplog.text


def test_states_that_cannot_fit_are_refused(
    make_model: Any, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = make_model("elmo", "none", src_lm_cache=str(tmp_path)).encoder.embed_tokens.representation.stored
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=6399))
    with pytest.raises(InputError, match="--src-lm-cache-half, or leave it out"):
        announce(stored, run)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=6400))
    announce(stored, run)


def test_folder_that_cannot_be_made_is_refused(make_model: Any, run: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    cache = str(tmp_path / "file" / "states")
    stored = make_model("elmo", "none", src_lm_cache=cache).encoder.embed_tokens.representation.stored
    with pytest.raises(InputError, match="cannot be made: Not a directory"):
        announce(stored, run)


@pytest.mark.parametrize(("flag", "bytes_a_number"), [("cpu", 4), ("fp16", 2), ("bf16", 2)])
def test_size_is_that_of_the_runs_precision(
    make_model: Any, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str, bytes_a_number: int
) -> None:
    stored = make_model("elmo", "none", src_lm_cache=str(tmp_path)).encoder.embed_tokens.representation.stored
    run.common = {flag: True}
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10 * 5 * 32 * bytes_a_number))
    announce(stored, run)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10 * 5 * 32 * bytes_a_number - 1))
    with pytest.raises(InputError, match="needs up to"):
        announce(stored, run)


def test_what_is_stored_of_the_same_lm_in_the_same_precision_is_not_needed_again(
    make_model: Any, net_input: dict[str, Tensor], run: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = make_model("elmo", "none", src_lm_cache=str(tmp_path)).train()
    model(**net_input)
    stored = model.encoder.embed_tokens.representation.stored
    there = sum(file.stat().st_size for file in tmp_path.glob("*/*.states"))
    assert stored.present(torch.float32, None) == there > 0
    assert stored.present(torch.float16, None) == stored.present(torch.float32, torch.bfloat16) == 0
    stored.fingerprint = "of another LM"
    assert stored.present(torch.float32, None) == 0


def test_texts_that_are_trained_on_together_all_count(
    make_model: Any, run: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for ending in ("bin", "idx"):
        shutil.copy(tmp_path / f"train.en-de.en.{ending}", tmp_path / f"train1.en-de.en.{ending}")
    stored = make_model("elmo", "none", src_lm_cache=str(tmp_path)).encoder.embed_tokens.representation.stored
    with caplog.at_level(logging.INFO):
        announce(stored, run)
        run.task.update({"truncate_source": True, "max_source_positions": 4})
        announce(stored, run)
    assert "for 20 tokens of training text" in caplog.text
    assert "for 18 tokens of training text" in caplog.text, "4 + 3 of each, and 2 leading </s>"
