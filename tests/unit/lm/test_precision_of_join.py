"""The joining block's unscaled logits leave the range of fp16; its results must not (SPEC section 6)."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from lmfusion.lm.transformer.join import AttentionJoin
from lmfusion.lm.transformer.layout import RowLayout

FP16_MAX = 65504.0


def loud_join(shake: Any) -> AttentionJoin:
    """Queries and keys of some hundreds each: their products leave fp16's range, they do not."""
    join: AttentionJoin = shake(
        AttentionJoin(64, 32, 2, concat_query=False, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0)
    )
    with torch.no_grad():
        join.q_proj.weight.mul_(60)
        join.kv_proj.weight[:64].mul_(60)
    return join.eval()


def expected_join(join: AttentionJoin, f: Tensor, b: Tensor) -> tuple[Tensor, float]:
    """The block with its attention in float64, and the largest logit; narrow mask, one row without padding."""
    time = f.size(1)
    f, b = join.fwd_layer_norm(f), join.bwd_layer_norm(b)
    nothing = torch.zeros_like(f[:, :1])
    query = join.q_proj(torch.cat([nothing, f[:, :-1]], 1) + torch.cat([b[:, 1:], nothing], 1))
    key, value = join.kv_proj(torch.cat([f, b], 1)).chunk(2, dim=-1)
    query, key, value = (x.double().view(1, -1, join.num_heads, 32) for x in (query, key, value))
    logits = torch.einsum("bihd,bjhd->bhij", query, key)
    steps = torch.arange(time)
    sees = torch.cat([steps < steps[:, None], steps > steps[:, None]], dim=1)
    shares = logits.masked_fill(~sees, -math.inf).softmax(-1)
    attended = torch.einsum("bhij,bjhd->bihd", shares, value).flatten(2)
    return join.ffn(join.out_proj(attended.to(f.dtype))), logits.abs().max().item()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_logits_beyond_fp16_stay_finite_and_right(shake: Any, dtype: torch.dtype) -> None:
    join = loud_join(shake).to(dtype)
    f, b = torch.randn(1, 9, 64).to(dtype), torch.randn(1, 9, 64).to(dtype)
    with torch.no_grad():
        expected, largest_logit = expected_join(join, f, b)
        found = join(f, b, RowLayout(torch.zeros(1, 9, dtype=torch.bool)))
    assert join.q_proj.weight.abs().max() < FP16_MAX < largest_logit
    assert found.isfinite().all()
    tolerance = {torch.float16: 0.02, torch.bfloat16: 0.15, torch.float32: 2e-3, torch.float64: 1e-9}[dtype]
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)


def test_logits_beyond_fp16_are_right_under_autocast(shake: Any) -> None:
    """bf16 has the range but three digits only: logits of 100,000 would be off by hundreds."""
    join = loud_join(shake)
    f, b = torch.randn(1, 9, 64), torch.randn(1, 9, 64)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        expected, _ = expected_join(join, f, b)
        found = join(f, b, RowLayout(torch.zeros(1, 9, dtype=torch.bool)))
    torch.testing.assert_close(found.float(), expected.float(), rtol=0, atol=0.15)


def test_gradients_of_logits_beyond_fp16_are_finite(shake: Any) -> None:
    join = loud_join(shake).half()
    f = torch.randn(1, 5, 64).half()
    join(f, f, RowLayout(torch.zeros(1, 5, dtype=torch.bool))).float().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in join.parameters())


@pytest.mark.parametrize("side", ["cloze", "causal"])
def test_whole_models_run_in_half_precision(make_cloze: Any, make_causal: Any, side: str) -> None:
    make = make_cloze if side == "cloze" else make_causal
    lm = make()
    tokens = torch.tensor([[2, 5, 9, 4, 2], [2, 7, 2, 1, 1]])
    real = tokens.ne(1)
    with torch.no_grad():
        single = lm(tokens)[0]
        half = lm.half()(tokens)[0]
    assert half.dtype == torch.float16
    torch.testing.assert_close(half.float()[real], single[real], rtol=0, atol=0.05 * single.abs().max().item())
