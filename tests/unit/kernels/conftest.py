"""Any kind of processor, on any."""

from __future__ import annotations

from typing import Callable

import pytest

from lmfusion.kernels import matrix_product


@pytest.fixture
def set_processor(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Whether oneDNN is faster, and for gradients of weights too: ``set_processor(faster=True, wide=False)``."""

    def choose(faster: bool = True, wide: bool = True) -> None:
        monkeypatch.setattr(matrix_product, "onednn_is_faster", lambda: faster)
        monkeypatch.setattr(matrix_product, "units_are_wide", lambda: wide)

    return choose
