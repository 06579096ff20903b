"""Keep what turns plain text into a language model's symbols among the weights of a model."""

from __future__ import annotations

import base64
import json
from typing import Any

import torch
from torch import Tensor, nn

from lmfusion.text.codec import TextCodec
from lmfusion.text.kit import ENTRY, TextKit, from_state, to_bytes, to_tensor


class StoredCodec(nn.Module):
    """A tokenizer and a BPE as bytes in a buffer, whose size a checkpoint's weights tell.

    Args:
        codec: to be kept; None: there is none, and text is symbols between white space.
    """

    content: Tensor

    def __init__(self, codec: TextCodec | None) -> None:
        super().__init__()
        self.register_buffer("content", torch.zeros(0, dtype=torch.uint8) if codec is None else _packed(codec.kit))

    @property
    def codec(self) -> TextCodec | None:
        """Return the codec, or None."""
        if not self.content.numel():
            return None
        entry = json.loads(to_bytes(self.content.cpu()))
        entry["bpe_file"] = to_tensor(base64.b64decode(entry["bpe_file"]))
        kit = from_state("the model", {ENTRY: entry})
        return TextCodec(kit) if kit else None

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        stored = state_dict.get(prefix + "content")
        if isinstance(stored, Tensor) and stored.dim() == 1 and stored.shape != self.content.shape:
            self.content = torch.zeros_like(stored, dtype=torch.uint8, device=self.content.device)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


def _packed(kit: TextKit) -> Tensor:
    entry = {"tokenizer": kit.tokenizer, "bpe": kit.bpe, "languages": [], "dictionaries": []}
    file = base64.b64encode(kit.bpe_file).decode()
    return to_tensor(json.dumps({**entry, "bpe_file": file}).encode())
