"""fairseq's attention in training steps on a CPU: fairseq's figures by other kernels, and fairseq's own elsewhere."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from fairseq.models.transformer import TransformerModel
from fairseq.modules import MultiheadAttention
from fairseq.modules.quantization.scalar.modules import IntLinear
from fairseq.quantization_utils import quantize_model_scalar
from torch import Tensor, nn

from lmfusion.errors import InputError
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.kernels import attention as cpu_attention
from lmfusion.kernels.fairseq_attention import FastAttention, use_fast_attention

BATCH, HEADS, CHANNELS = 3, 2, 8
PADDING = torch.tensor([[1, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]], dtype=torch.bool)  # of the source, left
LATER = torch.full((4, 4), float("-inf")).triu(1)
CASES: dict[str, dict[str, Any]] = {
    "encoder": {"times": (5, 5), "key_padding_mask": PADDING},
    "encoder, no padding": {"times": (5, 5)},
    "decoder": {"times": (4, 4), "attn_mask": LATER},
    "decoder, padding": {"times": (4, 4), "attn_mask": LATER, "key_padding_mask": PADDING[:, :4].flip(1)},
    "decoder on encoder": {"times": (4, 5), "key_padding_mask": PADDING, "static_kv": True},
}


def pair(dropout: float = 0.0, dtype: torch.dtype = torch.float64) -> tuple[MultiheadAttention, MultiheadAttention]:
    """fairseq's module and ours, of the same parameters, in training."""
    modules = []
    for _ in range(2):
        torch.manual_seed(1)
        modules.append(MultiheadAttention(CHANNELS, HEADS, dropout=dropout).to(dtype).train())
    use_fast_attention(modules[1])
    assert type(modules[1]) is FastAttention
    return modules[0], modules[1]


def inputs(times: tuple[int, int], dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """T x B x C of queries, and of what is attended to."""
    torch.manual_seed(2)
    query = torch.randn(times[0], BATCH, CHANNELS, dtype=dtype, requires_grad=True)
    same = times[0] == times[1]
    return [query, query if same else torch.randn(times[1], BATCH, CHANNELS, dtype=dtype, requires_grad=True)]


def with_gradients(module: nn.Module, times: tuple[int, int], **settings: Any) -> list[Tensor]:
    """The result, and its gradients by the inputs and all parameters."""
    query, key = inputs(times)
    result, weights = module(query, key, key, need_weights=False, **settings)
    assert weights is None
    leaves = {id(leaf): leaf for leaf in (query, key, *module.parameters())}
    return [result.detach(), *torch.autograd.grad(result.sin().sum(), list(leaves.values()))]


@pytest.mark.parametrize("written_out", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_it_gives_fairseqs_states_and_gradients(case: str, written_out: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_attention, "is_faster", lambda query, dropout: written_out)
    theirs, ours = (with_gradients(module, **CASES[case]) for module in pair())
    exactness = 1e-6 if "static_kv" in CASES[case] else 1e-12  # there fairseq's softmax is float32
    assert len(ours) == len(theirs) > 8
    for one, other in zip(ours, theirs):
        assert (one - other).abs().max() < exactness


@pytest.mark.parametrize("written_out", [True, False])
def test_padding_that_sees_only_padding_spoils_nothing(written_out: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_attention, "is_faster", lambda query, dropout: written_out)
    padding = PADDING[:, :4]  # on the left: its first queries see padding alone
    words = ~padding.t()[:, :, None]
    found = []
    for module in pair():
        (query, _) = inputs((4, 4))
        result, _ = module(query, query, query, padding, need_weights=False, attn_mask=LATER)
        (result * words).sin().sum().backward()
        found.append([result.detach() * words, query.grad, *(parameter.grad for parameter in module.parameters())])
    for one, other in zip(*found):
        assert (one - other).abs().max() < 1e-12


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_decoder_of_left_padded_targets_trains(make_cfg: Any, task: Any, net_input: Any, dtype: torch.dtype) -> None:
    targets = net_input["prev_output_tokens"].clone()
    targets[0, :2] = task.target_dictionary.pad()
    torch.manual_seed(1)
    model = TransformerLMFusion.build_model(make_cfg(attention_dropout=0.1, decoder_layers=2), task).train()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == torch.bfloat16):
        logits, _ = model(**{**net_input, "prev_output_tokens": targets})
        logits[targets != task.target_dictionary.pad()].sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)
    assert model.decoder.layers[0].self_attn.q_proj.weight.grad.abs().max() > 0


@pytest.mark.parametrize("kind", [torch.bool, torch.uint8])
def test_a_mask_of_truth_values_hides_what_is_true(kind: torch.dtype) -> None:
    (query, key), (_, ours) = inputs((4, 4)), pair()
    hidden, _ = ours(query, key, key, need_weights=False, attn_mask=LATER.isinf().to(kind))
    added, _ = ours(query, key, key, need_weights=False, attn_mask=LATER)
    assert torch.equal(hidden, added)


def test_weights_are_dropped_and_the_mean_stays() -> None:
    _, ours = pair(dropout=0.3)
    query, key = (tensor.detach() for tensor in inputs((4, 5)))
    draws = torch.stack([ours(query, key, key, PADDING, need_weights=False)[0].detach() for _ in range(2000)])
    without = ours.eval()(query, key, key, PADDING, need_weights=False)[0].detach()
    deviation = draws.std(0)
    assert deviation.min() > 0
    assert ((draws.mean(0) - without).abs() < 5 * deviation / 2000**0.5).all()


def test_in_bfloat16_it_is_as_exact_as_fairseqs() -> None:
    exact = with_gradients(pair()[0], (5, 5), key_padding_mask=PADDING)[0]
    errors = []
    for module in pair(dtype=torch.float32):
        query, key = (tensor.detach().float() for tensor in inputs((5, 5)))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            result = module(query, key, key, PADDING, need_weights=False)[0]
        assert result.dtype == torch.bfloat16
        errors.append((result - exact).square().mean().sqrt())
    assert errors[1] < 1.5 * errors[0]


@pytest.mark.parametrize("asked", [{"need_weights": True}, {"need_head_weights": True}])
def test_attention_weights_are_fairseqs(asked: dict[str, bool]) -> None:
    query, key = inputs((4, 5))
    (theirs, their_weights), (ours, our_weights) = (module(query, key, key, PADDING, **asked) for module in pair())
    assert torch.equal(ours, theirs)
    assert our_weights is not None
    assert torch.equal(our_weights, their_weights)


def test_decoding_is_fairseqs_word_by_word() -> None:
    query, _ = inputs((4, 4))
    found = []
    for module in pair():
        state: dict[str, Any] = {}
        given = {"incremental_state": state, "need_weights": False}
        found.append(torch.cat([module.eval()(word, word, word, **given)[0] for word in query.split(1)]))
    assert torch.equal(*found)


def test_other_devices_keep_fairseqs() -> None:
    assert not pair()[1]._is_usual(torch.empty(1, 1, CHANNELS, device="meta"))


@pytest.mark.parametrize("written_out", [True, False])
def test_a_models_training_step_is_that_of_fairseqs_transformer(
    make_cfg: Any, task: Any, net_input: Any, written_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_attention, "is_faster", lambda query, dropout: written_out)
    own: list[bool] = []
    original = FastAttention._heads
    monkeypatch.setattr(FastAttention, "_heads", lambda self, x: own.append(True) or original(self, x))
    found = []
    for family in (TransformerLMFusion, TransformerModel):
        torch.manual_seed(1)
        model = family.build_model(make_cfg(encoder_layers=2, decoder_layers=2), task).double().train()
        model(**net_input)[0].sin().sum().backward()
        found.append({name: parameter.grad for name, parameter in model.named_parameters()})
    # Queries, keys and values of 2 + 2 self-attentions and one to the encoder: the last one is asked for its weights.
    assert len(own) == 3 * 5
    ours, theirs = found
    assert ours.keys() == theirs.keys()
    for name, gradient in ours.items():
        assert (gradient - theirs[name]).abs().max() < 2e-6, name  # attention to the encoder is float32 in fairseq


def test_every_attention_of_a_model_is_ours_unless_noise_is_on_its_projections(make_cfg: Any, task: Any) -> None:
    for noise, kind, other in ((0.0, FastAttention, MultiheadAttention), (0.1, MultiheadAttention, FastAttention)):
        cfg = make_cfg(quant_noise_pq=noise, quant_noise_pq_block_size=4)
        kinds = {type(module) for module in TransformerLMFusion.build_model(cfg, task).modules()}
        assert kind in kinds
        assert other not in kinds


def test_scalar_quantization_finds_layers_it_knows(make_cfg: Any, make_cell: Any, task: Any) -> None:
    cfg = make_cfg(quant_noise_scalar=0.2)
    model = quantize_model_scalar(TransformerLMFusion.build_model(cfg, task), cfg)
    assert any(isinstance(module, IntLinear) for module in model.modules())
    with pytest.raises(InputError, match="--quant-noise-scalar would quantize"):
        TransformerLMFusion.build_model(make_cell("elmo", "none", quant_noise_scalar=0.2), task)


def test_layers_that_are_computed_again_are_in_the_same_precision(
    make_cfg: Any, task: Any, net_input: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds: list[torch.dtype] = []
    original = FastAttention._heads
    monkeypatch.setattr(FastAttention, "_heads", lambda self, x: kinds.append(x.dtype) or original(self, x))
    gradients = []
    for again in (False, True):
        torch.manual_seed(1)
        cfg = make_cfg(cpu_bf16=True, checkpoint_activations=again, attention_dropout=0.1)
        model = TransformerLMFusion.build_model(cfg, task).train()
        torch.manual_seed(2)
        model(**net_input)[0].float().sin().sum().backward()
        gradients.append({name: parameter.grad for name, parameter in model.named_parameters()})
    assert set(kinds) == {torch.bfloat16}
    assert len(kinds) > 2 * 6, "some are computed twice"
    for name, gradient in gradients[0].items():
        if name.startswith("decoder.layers."):  # in the encoder, bf16 gradients of its two readers are added in turn
            assert torch.equal(gradient, gradients[1][name]), name


@pytest.mark.parametrize("cpu_bf16", [False, True])
@torch.no_grad()
def test_a_copy_of_a_model_computes_with_layers_of_its_own(
    make_cfg: Any, task: Any, net_input: Any, cpu_bf16: bool
) -> None:
    """As the average of weights is one, whose outputs SMART compares with the model's."""
    cfg = make_cfg(cpu_bf16=cpu_bf16, checkpoint_activations=True, dropout=0.0, attention_dropout=0.0)
    model = TransformerLMFusion.build_model(cfg, task).train()
    averaged = copy.deepcopy(model)
    before = averaged(**net_input)[0]
    for parameter in model.parameters():
        parameter.add_(0.5)
    assert torch.equal(averaged(**net_input)[0], before)
