"""--src-lm-layers: of a frozen language model's states some alone are mixed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lmfusion.errors import InputError


@torch.no_grad()
def test_the_mix_is_of_the_chosen_states(make_fusion: Any, make_causal: Any) -> None:
    lm, tokens = make_causal(), torch.tensor([[2, 5, 9, 4]])
    part = make_fusion("elmo", lm, 16, lm_layers="0, 2").eval()
    part.mix.weights.copy_(torch.tensor([0.3, -1.2]))
    states = lm.layer_states(tokens)
    assert len(states) == 3
    torch.testing.assert_close(part(tokens), part.mix([states[0], states[2]]), rtol=0, atol=0)
    assert part.read(tokens).names == ["embedding", "layer 2"]
    every = make_fusion("elmo", lm, 16)
    assert every.mix.weights.numel() == 3
    assert make_fusion("elmo", lm, 16, lm_layers="0,1,2").mix.weights.numel() == 3


@pytest.mark.parametrize("given", ["", "3", "1,1", "2,0", "a", "-1", "1,,2", "1.5"])
def test_numbers_that_are_none_are_refused(make_fusion: Any, make_causal: Any, given: str) -> None:
    with pytest.raises(InputError, match=r"--src-lm-layers .*from 0 .* to 2"):
        make_fusion("elmo", make_causal(), 16, lm_layers=given)


def test_a_model_of_our_own_has_no_type_to_choose(make_cell: Any, task: Any) -> None:
    from lmfusion.fusion.model import TransformerLMFusion

    with pytest.raises(InputError, match="no dtype to set"):
        TransformerLMFusion.build_model(make_cell("elmo", "none", src_lm_dtype="bfloat16"), task)
