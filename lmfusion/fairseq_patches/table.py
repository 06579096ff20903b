"""The table of everything that lmfusion changes in fairseq and in what fairseq stands on."""

from __future__ import annotations

from lmfusion.fairseq_patches import configurations, evaluation
from lmfusion.fairseq_patches.patch import Patch

TABLE: tuple[Patch, ...] = (*evaluation.rows(), *configurations.ROWS)
