"""The table of everything that lmfusion changes in fairseq and in what fairseq stands on."""

from __future__ import annotations

from lmfusion.fairseq_patches import configurations, evaluation
from lmfusion.fairseq_patches.interactive import make_batches_without_overlong_lines
from lmfusion.fairseq_patches.patch import Patch

TABLE: tuple[Patch, ...] = (
    *evaluation.rows(),
    *configurations.ROWS,
    Patch(
        "fairseq_cli.interactive",
        "make_batches",
        make_batches_without_overlong_lines,
        "--truncate-source is ignored, so that a line gets another translation than in training or by load_model; with "
        "--skip-invalid-size-inputs-valid-test a buffer of overlong lines ends the command instead of being skipped",
        only_if_loaded=True,
    ),
)
