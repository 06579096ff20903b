"""Sizes, updates, learning rates and dropouts by the amount of text; the table of docs/own_text.md."""

from __future__ import annotations

from dataclasses import dataclass

from lmfusion.text.prepared import TRANSLATION, Prepared

LM_TOKENS = 2048
"""Symbols an update of a language model."""
PASSES = 4
"""Over the plain text, of a language model."""
FEW = 20_000
"""Pairs up to which an LSTM is to begin with: with 10,000 it has twice the transformer's BLEU (docs/own_text.md); of
summaries a denoiser, which has twice its ROUGE-1."""
MADE_UP = 2
"""Lines of plain text that are back-translated, for each pair: as many as were tried with 10,000 pairs (RESULTS.md)."""
MOST_MADE_UP = 200_000
SHORT_DROPOUT = 0.2
"""Highest dropout of rows that get no more than half of the updates of their amount of text: with 10,000 pairs 0.3 is
better for 8,000 updates and worse for 4,000 (RESULTS.md)."""
LEAST_UPDATES, MOST_LM_UPDATES = 300, 100_000


@dataclass(frozen=True)
class Amount:
    """Numbers for up to so many training pairs.

    Attributes:
        pairs: most pairs.
        updates: of a translation model; the learning rate rises for the first, then falls linearly to the last.
        rate: highest learning rate.
        warmup: updates in which it rises.
        tokens: target symbols an update.
        channels: of embeddings and states; the inner layers have four times as many.
        layers: of encoder and of decoder.
        heads: of attention.
        lstm_layers: of encoder and of decoder of an LSTM, which then has about as many parameters in them.
        dropout: of the translation model, which all of the updates train.
        measured: whether it was tried on the embedded corpus (RESULTS.md), or follows from common practice.
    """

    pairs: int
    updates: int
    rate: float
    warmup: int
    tokens: int
    channels: int
    layers: int
    heads: int
    lstm_layers: int
    dropout: float
    measured: bool


TABLE = (
    Amount(2_500, 2_000, 0.001, 200, 1500, 192, 3, 4, 1, 0.2, True),
    Amount(5_000, 3_000, 0.003, 200, 1500, 192, 3, 4, 1, 0.2, True),
    Amount(10_000, 8_000, 0.003, 200, 1500, 192, 3, 4, 1, 0.3, True),
    Amount(20_000, 8_000, 0.003, 200, 1500, 192, 3, 4, 1, 0.3, True),
    Amount(50_000, 8_000, 0.003, 200, 1500, 192, 3, 4, 1, 0.2, True),
    Amount(200_000, 20_000, 0.002, 1_000, 3000, 256, 4, 4, 2, 0.2, False),
    Amount(1_000_000, 50_000, 0.001, 4_000, 8000, 512, 6, 8, 3, 0.1, False),
)
LARGEST = Amount(0, 100_000, 0.0007, 4_000, 25_000, 512, 6, 8, 3, 0.1, False)


def amount(pairs: int) -> Amount:
    """Return the row of the table for so many training pairs."""
    return next((row for row in TABLE if pairs <= row.pairs), LARGEST)


def rows(data: Prepared) -> str:
    """Return the rows to begin with: for few pairs LSTMs, which translate well, or a denoiser, which can copy."""
    if data.pairs <= FEW and not data.tokenizers:
        return "baseline,lstm,lstm_src_elmo" if data.kind == TRANSLATION else "baseline,denoising"
    return "baseline,src_elmo_shdemb"


def numbers(data: Prepared) -> dict[str, str]:
    """Return the scripts' numbers for prepared text, by their names in ``recipes/_common.sh``."""
    row = amount(data.pairs)
    large = row.channels > 192
    lm = {
        "LM_DIM": 512 if large else 192,
        "LM_FFN": 2048 if large else 768,
        "LM_LAYERS": 6 if large else 4,
        "LM_HEADS": 8 if large else 4,
        "LM_LR": 0.0007 if large else 0.002,
        "LM_TOKENS": LM_TOKENS,
        "LM_UPDATES": lm_updates(data),
    }
    seq2seq = {
        "S2S_DIM": row.channels,
        "S2S_FFN": 4 * row.channels,
        "S2S_LAYERS": row.layers,
        "S2S_HEADS": row.heads,
        "LSTM_LAYERS": row.lstm_layers,
        "S2S_DROPOUT": row.dropout,
        "S2S_LR": row.rate,
        "S2S_WARMUP": row.warmup,
        "S2S_TOKENS": row.tokens,
        "S2S_UPDATES": row.updates,
        "MADE_UP": min(MADE_UP * data.pairs, MOST_MADE_UP),
    }
    return schedules({name: str(value) for name, value in {**lm, **seq2seq}.items()})


def lm_updates(data: Prepared) -> int:
    """Return the updates of a language model: some passes over the text."""
    symbols = max(data.symbols.values(), default=0)
    return min(max(PASSES * symbols // LM_TOKENS, LEAST_UPDATES), MOST_LM_UPDATES)


def schedules(given: dict[str, str]) -> dict[str, str]:
    """Return numbers with what follows from the updates: warm-up, how often is validated, no early stop."""
    lm, seq2seq = int(given["LM_UPDATES"]), int(given["S2S_UPDATES"])
    warmup = min(int(given["S2S_WARMUP"]), seq2seq // 5)
    return {
        **given,
        "LM_WARMUP": str(min(500, max(1, lm // 10))),
        "LM_VALIDATE_EVERY": str(max(1, lm // 8)),
        "S2S_WARMUP": str(max(1, warmup)),
        "S2S_VALIDATE_EVERY": str(max(1, seq2seq // 16)),
        "S2S_PATIENCE": "-1",
    }
