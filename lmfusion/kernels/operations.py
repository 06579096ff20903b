"""The names of :mod:`lmfusion.plain_operations`, faster; :mod:`lmfusion.operations` takes them from here."""

from lmfusion.kernels.attention import attention, causal_attention
from lmfusion.kernels.dropout import dropout, relu_dropout
from lmfusion.kernels.fairseq_modules import speed_up
from lmfusion.kernels.lstm_decoder import lstm_features
from lmfusion.kernels.matrix_product import Linear, add_product, linear, product

__all__ = [
    "Linear",
    "add_product",
    "attention",
    "causal_attention",
    "dropout",
    "linear",
    "lstm_features",
    "product",
    "relu_dropout",
    "speed_up",
]
