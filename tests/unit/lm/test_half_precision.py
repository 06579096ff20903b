"""Half precision at adversarial magnitudes: no inf, no nan, states within 1e-2 of float32 (of the largest).

Both sides get the same numbers, those that half precision can hold; what differs is the arithmetic.
"""

from __future__ import annotations

from typing import Any, Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmfusion.fusion.scalar_mix import ScalarMix
from lmfusion.lm.transformer.attention import CausalSelfAttention
from lmfusion.lm.transformer.join import AttentionJoin
from lmfusion.lm.transformer.layers import FeedForward
from lmfusion.lm.transformer.layout import RowLayout

FP16_MAX = 65504.0
CLOSE = 1e-2
half_types = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["fp16", "bf16"])


def assert_close(found: Tensor, expected: Tensor) -> None:
    """No inf, no nan, and at most a hundredth of the largest value away."""
    assert found.isfinite().all()
    torch.testing.assert_close(found.float(), expected.float(), rtol=0, atol=CLOSE * expected.abs().max().item())


def in_both(module: nn.Module, dtype: torch.dtype, run: Callable[[nn.Module, torch.dtype], Tensor]) -> None:
    """Run in half precision, then in float32 from the same numbers, and compare."""
    with torch.no_grad():
        found = run(module.to(dtype).eval(), dtype)
        expected = run(module.float(), torch.float32)
    assert found.dtype == dtype
    assert_close(found, expected)


@half_types
@pytest.mark.parametrize("loudness", [1.0, 4.0, 16.0, 60.0])
def test_logits_of_the_joining_block(shake: Any, dtype: torch.dtype, loudness: float) -> None:
    """From logits of some tens to some hundreds of thousands, in which rounding decides between words."""
    join = AttentionJoin(64, 32, 2, concat_query=False, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0)
    shake(join)
    with torch.no_grad():
        join.q_proj.weight.mul_(loudness)
        join.kv_proj.weight[:64].mul_(loudness)
    states = torch.randn(2, 3, 9, 64).to(dtype)
    layout = RowLayout(torch.zeros(3, 9, dtype=torch.bool))
    in_both(join, dtype, lambda module, kind: module(*states.to(kind), layout, include_self=True))


@half_types
@pytest.mark.parametrize("magnitude", [1e-4, 1.0, 3e4])
def test_a_layer_norm_before_feed_forward(shake: Any, dtype: torch.dtype, magnitude: float) -> None:
    """Squares of 30,000 are beyond fp16, those of 0.0001 below it."""
    states = (torch.randn(3, 7, 64) * magnitude).clamp(-FP16_MAX / 1.5, FP16_MAX / 1.5).to(dtype)
    block = shake(FeedForward(64, 128, dropout=0.0, activation_dropout=0.0))
    in_both(block, dtype, lambda module, kind: module(states.to(kind)))


@half_types
@pytest.mark.parametrize("magnitude", [1.0, 3e4])
@pytest.mark.parametrize("affine", [False, True])
def test_a_mix_of_fifteen_states(shake: Any, dtype: torch.dtype, magnitude: float, affine: bool) -> None:
    states = [(torch.randn(3, 7, 64) * magnitude).clamp(-FP16_MAX, FP16_MAX).to(dtype) for _ in range(15)]
    mix = shake(ScalarMix(15, 64, dropout=0.0, affine=affine))
    with torch.no_grad():
        mix.weights.mul_(10)
    in_both(mix, dtype, lambda module, kind: module([state.to(kind) for state in states]))


@half_types
def test_mixing_weights_far_apart(dtype: torch.dtype) -> None:
    """exp(60,000) is no number in any precision; the softmax of such weights picks one state."""
    mix = ScalarMix(3, 64, dropout=0.0, affine=False)
    with torch.no_grad():
        mix.weights.copy_(torch.tensor([-6e4, 6e4, 0.0]))
    states = [torch.randn(2, 5, 64).to(dtype) for _ in range(3)]
    found = mix.to(dtype)(states)
    assert_close(found, F.layer_norm(states[1].float(), (64,)))


@half_types
@pytest.mark.parametrize("bias_kv", ["none", "learned"])
def test_a_towers_attention_with_logits_beyond_fp16(shake: Any, dtype: torch.dtype, bias_kv: str) -> None:
    """Queries and keys of some hundreds: kernels accumulate their products in float32, and the softmax is safe."""
    attention = shake(CausalSelfAttention(64, 2, dropout=0.0, bias_kv=bias_kv))
    with torch.no_grad():
        attention.in_proj.weight[:128].mul_(100)
    states = torch.randn(2, 9, 64).to(dtype)
    with torch.no_grad():
        found = attention.to(dtype).eval()(states)
        query, key, _ = attention.in_proj(states).float().chunk(3, -1)
    assert (query @ key.transpose(1, 2)).abs().max() > FP16_MAX
    assert found.isfinite().all()


@half_types
@pytest.mark.parametrize("kind", ["cloze", "causal"])
def test_gradients_of_whole_language_models(make_cloze: Any, make_causal: Any, dtype: torch.dtype, kind: str) -> None:
    """A loss and its gradients in half precision point where those of float32 point."""
    lm = (make_cloze if kind == "cloze" else make_causal)()
    tokens = torch.tensor([[2, 5, 9, 4, 2], [2, 7, 2, 1, 1]])

    def gradients() -> dict[str, Tensor]:
        lm.zero_grad()
        logits = F.log_softmax(lm(tokens)[0], dim=-1, dtype=torch.float32)
        logits[tokens.ne(1)].mul(torch.linspace(-1, 1, logits.size(-1))).sum().backward()
        return {name: p.grad.float().clone() for name, p in lm.named_parameters() if p.grad is not None}

    found = gradients_of(lm.to(dtype), gradients)
    expected = gradients_of(lm.float(), gradients)
    assert found.isfinite().all()
    assert F.cosine_similarity(found, expected, dim=0) > 0.99


def gradients_of(lm: nn.Module, compute: Callable[[], dict[str, Tensor]]) -> Tensor:
    """All gradients in one row."""
    return torch.cat([value.flatten() for _, value in sorted(compute().items())])
