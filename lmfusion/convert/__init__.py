"""Checkpoints in the format of the paper's released code -> ours."""

from __future__ import annotations

from lmfusion.convert.converter import Converted, Inputs, convert
from lmfusion.convert.summary import Summary, summarize

__all__ = ["Converted", "Inputs", "Summary", "convert", "summarize"]
