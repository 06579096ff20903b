"""Values of flags that cannot work, said before training starts."""

from __future__ import annotations

from typing import Any

import pytest

from lmfusion.errors import InputError
from lmfusion.fusion.combinations import check_combination
from lmfusion.fusion.model import TransformerLMFusion

DROPOUTS = {
    "elmo": ("elmo_dropout", "representation_dropout"),
    "finetune": ("lm_dropout", "lm_attention_dropout", "lm_relu_dropout", "representation_dropout"),
}


@pytest.mark.parametrize(("fusion", "name"), [(fusion, name) for fusion, names in DROPOUTS.items() for name in names])
@pytest.mark.parametrize("side", ["src", "tgt"])
def test_dropout_is_a_probability(make_cell: Any, side: str, fusion: str, name: str) -> None:
    cell = (fusion, "none") if side == "src" else ("none", fusion)
    for good in (0.0, 0.5):
        check_combination(make_cell(*cell, **{f"{side}_{name}": good}))
    for bad in (-0.1, 1.0, 20.0):
        with pytest.raises(InputError, match=f"--{side}-{name.replace('_', '-')} {bad:g}: give a probability"):
            check_combination(make_cell(*cell, **{f"{side}_{name}": bad}))


def test_shared_needs_one_dictionary(make_cfg: Any, task: Any) -> None:
    cfg = make_cfg(share_all_embeddings=True)
    with pytest.raises(InputError, match=r"\(SHARED\) needs one dictionary .* first at index 4: .*--joined-dict"):
        TransformerLMFusion.build_model(cfg, task)


def test_shared_needs_as_many_channels_on_both_sides(make_cfg: Any, task: Any) -> None:
    task.target_dictionary = task.source_dictionary
    with pytest.raises(InputError, match="--encoder-embed-dim 16 and --decoder-embed-dim 8 to be the same"):
        TransformerLMFusion.build_model(make_cfg(share_all_embeddings=True, encoder_embed_dim=16), task)
