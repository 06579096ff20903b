"""Generation with our modules is fairseq's: the same states in the same order, and no product that is slow there."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fairseq.models.transformer import TransformerDecoderBase, TransformerModel

from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.kernels import matrix_product
from lmfusion.kernels.fairseq_modules import FastDecoder


def test_the_baselines_decoder_follows_the_beam_as_fairseqs_does(make_cfg: Any, task: Any, net_input: Any) -> None:
    order, found = torch.tensor([2, 0, 0]), []
    for family in (TransformerLMFusion, TransformerModel):
        torch.manual_seed(1)
        model = family.build_model(make_cfg(encoder_layers=2, decoder_layers=2), task).double().eval()
        assert isinstance(model.decoder, FastDecoder) is (family is TransformerLMFusion)
        with torch.no_grad():
            source = net_input["src_tokens"][:1].expand(3, -1)  # a beam is of one sentence
            encoder_out = model.encoder(source, source.ne(1).sum(1))
            state: dict[str, Any] = {}
            prefix = torch.tensor([[2, 5, 8, 4], [2, 4, 4, 7], [2, 9, 6, 5]])
            for length in (1, 2, 3):
                model.decoder(prefix[:, :length], encoder_out=encoder_out, incremental_state=state)
            model.decoder.reorder_incremental_state_scripting(state, order)
            found.append(model.decoder(prefix[order], encoder_out=encoder_out, incremental_state=state)[0])
            again = model.decoder(prefix[order], encoder_out=encoder_out)[0][:, -1:]
            assert (found[-1] - again).abs().max() < 1e-6  # attention to the encoder has a softmax in float32
    assert torch.equal(found[0], found[1])


def test_decoders_of_other_classes_stay(make_model: Any) -> None:
    model = make_model("none", "elmo")
    assert not isinstance(model.decoder, FastDecoder)
    assert isinstance(model.decoder, TransformerDecoderBase)


@pytest.mark.parametrize("tgt", ["none", "elmo", "finetune"])
def test_no_step_of_decoding_makes_a_product_by_onednn(
    make_model: Any, net_input: Any, tgt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model("none", tgt)
    hypotheses = 60 * len(net_input["src_tokens"])
    source = net_input["src_tokens"].repeat(60, 1)
    made: list[Any] = []
    original = matrix_product._onednn
    monkeypatch.setattr(matrix_product, "onednn_is_faster", lambda: True)
    monkeypatch.setattr(matrix_product, "_onednn", lambda *given: made.append(given) or original(*given))
    with torch.no_grad():
        encoder_out = model.encoder(source, source.ne(1).sum(1))
        assert made, "a whole pass of so many rows does"
        state: dict[str, Any] = {}
        prefix = torch.full((hypotheses, 3), 5)
        for length in (1, 2, 3):
            model.decoder(prefix[:, :length], encoder_out=encoder_out, incremental_state=state)
            if length == 1:
                made.clear()  # the first step makes keys and values of all the source's positions
    assert hypotheses > matrix_product.MIN_ROWS
    assert not made
