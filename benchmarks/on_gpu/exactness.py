"""Numbers on the device: language models' states against a CPU's in float32, and gradients of cuDNN's attention."""

from __future__ import annotations

import argparse
import copy

import torch
import torch.nn.functional as F
from models import SOURCE, TARGET, language_model
from options import device
from results import Table
from steps import PAD, sentences
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from on_gpu.machine import TYPES
from on_gpu.sections import Budget, Found, drawn, free

LENGTHS = (63, 64, 65, 128, 192, 256, 320, 704)
BACKENDS = {
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}
DEPTH = 120.0
"""Below zero: scores of these lie where the log of a row's sum is beyond what float32's exponential can undo."""


@torch.no_grad()
def states(args: argparse.Namespace, budget: Budget, found: Found) -> None:
    """Largest difference of every LM's states and logits from those of a CPU in float32, by the largest of these."""
    table = Table("States against a CPU's in float32", ["LM, precision", "states", "logits", "same best word"])
    found.tables.append(table)
    for name, side in (("cloze", SOURCE), ("causal", TARGET)):
        lm = drawn(lambda side=side: language_model(side, args.sizes)).decoder.cpu().eval()
        tokens = sentences(4, args.sizes, 0, cloze=side == SOURCE)["net_input"]["src_tokens"]
        words = tokens.ne(PAD)

        def of(model: object, where: str, words: Tensor = words, tokens: Tensor = tokens) -> tuple[Tensor, Tensor]:
            made = model.states(tokens.to(where), want={"layers"})  # type: ignore[attr-defined]
            layers = torch.cat([layer.float().cpu()[words] for layer in made.layers], -1)
            return layers, model(tokens.to(where))[0].float().cpu()[words]  # type: ignore[operator]

        expected = of(lm, "cpu")
        for precision, dtype in TYPES.items():
            ours = of(copy.deepcopy(lm).to(device(), dtype), device())
            shares = [float((one - other).abs().max() / other.abs().max()) for one, other in zip(ours, expected)]
            same = float((ours[1].argmax(-1) == expected[1].argmax(-1)).float().mean())
            found.figures[f"{name}, {precision}"] = [*shares, same]
            table.rows.append([f"{name}, {precision}", *(f"{share:.1e}" for share in shares), f"{same:.1%}"])
        free()


def not_numbers(length: int, dtype: torch.dtype, backend: SDPBackend) -> int | None:
    """Gradients that are no numbers, of causal attention with a mask whose scores are far below zero; None: refused."""
    torch.manual_seed(1)
    query, key, value = (torch.randn(1, 2, length, 64, device=device(), dtype=dtype) for _ in range(3))
    query, key = 0.1 * query, 0.1 * key
    query[..., 0], key[..., 0] = 1.0, -DEPTH * 64**0.5
    given = [tensor.requires_grad_() for tensor in (query, key, value)]
    mask = torch.ones(length, length, dtype=torch.bool, device=device()).tril()
    try:
        with sdpa_kernel([backend]):
            F.scaled_dot_product_attention(*given, attn_mask=mask).sin().sum().backward()
    except RuntimeError as error:
        if "No available kernel" in str(error) or "No viable backend" in str(error):
            return None
        raise
    return sum(int((~tensor.grad.isfinite()).sum()) for tensor in given if tensor.grad is not None)


def attention_gradients(args: argparse.Namespace, budget: Budget, found: Found) -> None:
    """Whether the fault for which lmfusion switches cuDNN's attention off is there (PyTorch issue 196678)."""
    table = Table("Gradients of attention with a mask that are no numbers", ["length", *BACKENDS])
    dtype = torch.float32 if device() == "cpu" else torch.bfloat16
    found.tables.append(table)
    version = torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None
    found.figures.update(cudnn=version, precision=str(dtype))
    for length in LENGTHS[:2] if args.tiny else LENGTHS:
        wrong = {name: not_numbers(length, dtype, backend) for name, backend in BACKENDS.items()}
        found.figures[str(length)] = wrong
        table.rows.append([str(length), *("no kernel" if n is None else f"{n:,}" for n in wrong.values())])
