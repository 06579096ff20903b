"""The one place that says whether operations are PyTorch's or those of :mod:`lmfusion.kernels`.

Models take their operations from here. ``lmfusion/kernels`` is only faster: with that folder deleted the same is
computed by :mod:`lmfusion.plain_operations`, within rounding, and dropout draws other random numbers.
"""

from __future__ import annotations

import logging
from pathlib import Path

from torch import nn

import lmfusion.plain_operations as _chosen

_logger = logging.getLogger(__name__)


# Asked of the folder beside this file, not by ImportError: kernels that are there and broken have to say so, and those
# of another copy of the package must not be taken.
if (Path(__file__).parent / "kernels" / "__init__.py").exists():
    import lmfusion.kernels.operations as _chosen  # type: ignore[no-redef]
else:
    _logger.info("lmfusion/kernels is not there: the same is computed by PyTorch alone, more slowly on a CPU")

Linear: type[nn.Linear] = _chosen.Linear
linear = _chosen.linear
product = _chosen.product
add_product = _chosen.add_product
dropout = _chosen.dropout
relu_dropout = _chosen.relu_dropout
attention = _chosen.attention
causal_attention = _chosen.causal_attention
lstm_features = _chosen.lstm_features
speed_up = _chosen.speed_up
