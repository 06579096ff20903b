"""Everything that changes fairseq: one table (:mod:`~.table`), applied once, taken back whole."""

from __future__ import annotations

from lmfusion.fairseq_patches import patch


def install() -> None:
    """Apply the table; a second call changes nothing."""
    from lmfusion.fairseq_patches.compat import prepare_fairseq

    prepare_fairseq()
    from lmfusion import hydra_configs
    from lmfusion.fairseq_patches import (
        data_files,
        decoding_memory,
        distributed,
        failures,
        half_precision,
        lm_commands,
        moving_average,
        pruning,
        resuming,
        same_batches,
        saving,
        shallow_fusion,
    )
    from lmfusion.fairseq_patches.table import TABLE
    from lmfusion.fusion import learning_rates

    for module in (
        *(learning_rates, hydra_configs, shallow_fusion, resuming, saving, same_batches, data_files, distributed),
        *(half_precision, failures, decoding_memory, lm_commands, moving_average, pruning),
    ):
        module.install()
    patch.apply(TABLE)


def uninstall() -> None:
    """Give fairseq its originals back."""
    patch.take_back()
