"""cuDNN's attention is off in training on a GPU with an affected PyTorch, and left alone everywhere else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch.torch_version import TorchVersion

from lmfusion.fairseq_patches.attention_backend import without_cudnn_attention


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    enabled = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(True)
    yield
    torch.backends.cuda.enable_cudnn_sdp(enabled)


class Trainer:
    """What is patched: notes whether the backend was on when it was made."""

    def __init__(self, settings: str, *, fast: bool) -> None:
        self.made = settings, fast, torch.backends.cuda.cudnn_sdp_enabled()

    __init__ = without_cudnn_attention(__init__)


@pytest.mark.parametrize(
    ("version", "has_gpu", "stays"),
    [
        ("2.13.0+cu130", True, False),
        ("2.11.0", True, False),
        ("2.10.1", True, True),
        ("2.6.0+cu124", True, True),
        ("2.13.0+cu130", False, True),
    ],
)
def test_the_backend_is_off_before_a_trainer_is_made(
    monkeypatch: pytest.MonkeyPatch, version: str, has_gpu: bool, stays: bool
) -> None:
    monkeypatch.setattr(torch, "__version__", TorchVersion(version))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    assert Trainer("settings", fast=True).made == ("settings", True, stays)
    assert torch.backends.cuda.flash_sdp_enabled()
    assert torch.backends.cuda.mem_efficient_sdp_enabled()
