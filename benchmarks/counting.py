"""Floating-point operations, counted as ``lmfusion plan`` counts them."""

from lmfusion.planning.counting import Uninitialized, operations

__all__ = ["Uninitialized", "operations"]
