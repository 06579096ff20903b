"""How a model with heads is built: its pooler, first weights, the check before training, and the codec it stores."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder
from omegaconf import OmegaConf

from lmfusion.consumers.head_model import HeadsModel
from lmfusion.consumers.heads import Head, HeadSpec
from lmfusion.consumers.stored_codec import StoredCodec
from lmfusion.errors import InputError
from lmfusion.text.codec import sentencepiece_codec

MOOD = HeadSpec("mood", "class", None, ("bad", "good"))
WORDS = HeadSpec("words", "tags", None, ("N", "V"))
SPM = Path(__file__).parents[3] / "pretrained" / "spm.model"


@pytest.mark.parametrize(
    ("specs", "pool", "kept"),
    [
        ([MOOD], "family", True),
        ([MOOD, WORDS], "family", True),
        ([MOOD], "mean", False),
        ([WORDS], "family", False),
    ],
)
def test_a_pooler_is_kept_where_a_head_reads_it(make_heads: Any, specs: list[HeadSpec], pool: str, kept: bool) -> None:
    """Else its weights have no gradients, which stops several processes."""
    assert (make_heads(specs, pool=pool).lm.pooler is not None) == kept


def test_a_heads_layer_starts_small_and_without_bias() -> None:
    layer: Any = Head(MOOD, 2000, 0.0).layer
    assert layer.weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert not layer.bias.any()


def test_states_that_fit_on_no_disk_are_refused_before_training(
    make_causal: Any, save_lm: Any, make_flags: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = str(tmp_path / "train.en-de.en")
    builder = MMapIndexedDatasetBuilder(f"{prefix}.bin")
    builder.add_item(torch.full((5,), 7))
    builder.finalize(f"{prefix}.idx")
    run = OmegaConf.create({"task": {"data": str(tmp_path), "source_lang": "en", "target_lang": "de"}})
    cfg = make_flags(src_fusion="elmo", src_lm=str(save_lm(make_causal())), src_lm_cache=str(tmp_path / "states"))
    cfg._get_parent = lambda: run
    task = SimpleNamespace(head_specs=lambda: [MOOD])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(InputError, match="--src-lm-cache"):
        HeadsModel.build_model(cfg, task)


def test_text_is_encoded_as_the_loaded_weights_say(make_heads: Any, make_flags: Any) -> None:
    """By one BPE with and without the tokenizer that takes punctuation off words."""
    first, text = make_heads([MOOD]), "A (small) tool."
    plain, tokenizing = sentencepiece_codec(SPM, None), sentencepiece_codec(SPM, "en")
    assert plain.encode(text) != tokenizing.encode(text)
    cfg = make_flags(src_fusion="finetune")
    model = HeadsModel(first.representation, [MOOD], cfg, plain)
    model.load_state_dict({**first.state_dict(), "text.content": StoredCodec(tokenizing).content})
    assert model.lm.vocabulary.codec.encode(text) == tokenizing.encode(text)


def test_weights_of_a_task_whose_folder_was_renamed_are_refused_by_both_names(make_heads: Any) -> None:
    trained = make_heads([MOOD])
    other = make_heads([replace(MOOD, name="temper")])
    with pytest.raises(InputError, match=f"{MOOD.name}.* temper"):
        other.load_state_dict(trained.state_dict())
    trained.load_state_dict(trained.state_dict())
