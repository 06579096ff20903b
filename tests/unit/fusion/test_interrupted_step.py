"""A decoding step that fails leaves nothing behind."""

from typing import Any

import pytest
import torch
from torch import Tensor

PREFIX = torch.tensor([[2, 5, 8, 4, 9, 6], [2, 4, 4, 7, 9, 5], [2, 9, 6, 6, 8, 4]])


@torch.no_grad()
def test_full_pass_after_an_interrupted_step_is_a_full_pass(make_model: Any, net_input: dict[str, Tensor]) -> None:
    """A step that fails half way must not leave a prefix behind for the next look-up."""
    model = make_model("none", "elmo")
    encoder_out = model.encoder(net_input["src_tokens"])
    expected = model.decoder(PREFIX, encoder_out=encoder_out)[0]
    with pytest.raises(KeyError):
        model.decoder(PREFIX[:, :1], encoder_out={"encoder_out": "broken"}, incremental_state={})
    assert torch.equal(model.decoder(PREFIX, encoder_out=encoder_out)[0], expected)
