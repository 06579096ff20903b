"""lmfusion: pretrained language models in sequence-to-sequence models, as a plugin of fairseq.

Importing this package registers its models with fairseq; ``fairseq-train --user-dir`` does it.
"""

from __future__ import annotations

from pathlib import Path

from lmfusion.compat import prepare_fairseq

prepare_fairseq()  # before anything else of fairseq's is imported

from lmfusion import (  # noqa: E402
    data_files,
    decoding_memory,
    distributed,
    failures,
    half_precision,
    hydra_configs,
    learning_rates,
    lm_commands,
    moving_average,
    pruning,
    resuming,
    same_batches,
    saving,
    shallow_fusion,
)

learning_rates.install()
hydra_configs.install()
shallow_fusion.install()
resuming.install()
saving.install()
same_batches.install()
data_files.install()
distributed.install()
half_precision.install()
failures.install()
decoding_memory.install()
lm_commands.install()
moving_average.install()
pruning.install()

import lmfusion.criterions  # noqa: E402
import lmfusion.fusion.architectures  # noqa: E402
import lmfusion.lm.causal  # noqa: E402
import lmfusion.lm.cloze  # noqa: E402
import lmfusion.tokenizer  # noqa: E402,F401
from lmfusion import scoring  # noqa: E402
from lmfusion.errors import LMFusionError, UserError  # noqa: E402
from lmfusion.hub import load_model  # noqa: E402
from lmfusion.lm.interface import PretrainedLM  # noqa: E402
from lmfusion.lm.loading import load_lm  # noqa: E402

USER_DIR = str(Path(__file__).resolve().parent)
"""For ``--user-dir`` of every fairseq command."""

__version__ = "0.1.0"
__all__ = ["USER_DIR", "LMFusionError", "PretrainedLM", "UserError", "__version__", "load_lm", "load_model", "scoring"]
