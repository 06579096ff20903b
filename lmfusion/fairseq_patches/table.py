"""The table of everything that lmfusion changes in fairseq and in what fairseq stands on."""

from __future__ import annotations

from lmfusion.fairseq_patches import resuming
from lmfusion.fairseq_patches.patch import Patch

TABLE: tuple[Patch, ...] = (
    Patch(
        "fairseq.trainer:Trainer",
        "load_checkpoint",
        resuming.from_whole_checkpoint,
        "A run whose checkpoint_last.pt is cut or has a flipped bit cannot be resumed, or resumes with wrong weights; "
        "a checkpoint without optimizer state restarts at update 0 without a word; a resumed run has forgotten the "
        "counts of --patience; a finished run trains one more update.",
    ),
)
