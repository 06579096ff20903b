"""What a token costs in decoding with a target-side LM: cached, against the LM run over the whole prefix again.

    python benchmarks/decoding_cache.py [--lengths 16 32 64 128 256 512] [--rows N] [--threads N] [--json FILE]

Both sides are one model with the same weights on the same prefixes, timed in turn in one process; the baseline is a
model of the same size without an LM, cached. "Again" is how the paper's released code decodes: its decoder is cached,
its LM is not. The growth columns divide the cost at a length by that at the shortest; the last one is the growth that
the attention over a longer prefix alone makes in multiply-adds.
"""

from __future__ import annotations

import argparse
import json
import logging
import platform
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from models import Sizes, seq2seq
from torch import Tensor

from lmfusion.fusion.model import TransformerLMFusion

SIZES = Sizes(
    vocabulary=8000, channels=256, ffn=1024, layers=3, heads=4, lm_channels=256, lm_ffn=1024, lm_layers=6, lm_heads=4
)
SOURCE_LENGTH = 32
STEPS, ROUNDS = 4, 3  # tokens timed at a length, and how often


def without_cache(model: TransformerLMFusion) -> None:
    """Make the LM read the whole prefix at every step; the decoder keeps its cache."""
    embedding = model.decoder.embed_tokens

    def announce(prefix: Tensor, incremental_state: Any) -> None:
        embedding._prefix = None
        embedding.whole_prefix = prefix if incremental_state is not None else None

    def forward(tokens: Tensor) -> Tensor:
        whole = embedding.whole_prefix
        return embedding.representation(tokens if whole is None else whole)[:, -tokens.size(1) :]

    embedding.announce, embedding.forward = announce, forward


class Decoding:
    """One model in the middle of a sentence, at a length that can be set."""

    def __init__(self, model: TransformerLMFusion, rows: int) -> None:
        self.model = model.eval()
        generator = torch.Generator().manual_seed(1)
        self.prefix = torch.randint(4, SIZES.vocabulary, (rows, SIZES.max_positions), generator=generator)
        source = torch.randint(4, SIZES.vocabulary, (rows, SOURCE_LENGTH), generator=generator)
        self.encoder_out = model.encoder(source, torch.full((rows,), SOURCE_LENGTH))
        self.begin()

    def begin(self) -> None:
        """Nothing is decoded."""
        self.state: dict[str, Any] = {}
        self.length = 0

    def step(self) -> None:
        """The next token's scores."""
        self.length += 1
        self.model.decoder(self.prefix[:, : self.length], encoder_out=self.encoder_out, incremental_state=self.state)

    def go_to(self, length: int) -> None:
        """Decode up to a length."""
        while self.length < length:
            self.step()

    def seconds(self) -> float:
        """Of one token, mean over a few."""
        start = time.perf_counter()
        for _ in range(STEPS):
            self.step()
        return (time.perf_counter() - start) / STEPS


def attention_growth(length: int, shortest: int) -> float:
    """Growth of a step's multiply-adds from the shortest length on, counted from the shapes: attention alone grows."""

    def stack(layers: int, channels: int, ffn: int, cross: bool) -> tuple[int, int]:
        dense = layers * (4 * channels**2 + 2 * channels * ffn)
        if cross:
            dense += layers * (2 * channels**2 + 2 * channels * SOURCE_LENGTH)
        return dense, layers * 2 * channels  # the latter times the prefix

    decoder = stack(SIZES.layers, SIZES.channels, SIZES.ffn, cross=True)
    lm = stack(SIZES.lm_layers, SIZES.lm_channels, SIZES.lm_ffn, cross=False)
    dense = decoder[0] + lm[0] + SIZES.channels * SIZES.vocabulary
    return (dense + (decoder[1] + lm[1]) * length) / (dense + (decoder[1] + lm[1]) * shortest)


def measure(fusion: str, lengths: list[int], rows: int) -> list[dict[str, float]]:
    """Milliseconds of a token by prefix length: median of the rounds, and the least and most of them."""
    torch.manual_seed(1)
    cached, again = (seq2seq(SIZES, tgt=fusion) for _ in range(2))
    again.load_state_dict(cached.state_dict())
    without_cache(again)
    sides = {
        "baseline": Decoding(seq2seq(SIZES), rows),
        "cached": Decoding(cached, rows),
        "again": Decoding(again, rows),
    }
    times: dict[tuple[str, int], list[float]] = {(name, length): [] for name in sides for length in lengths}
    for name, side in list(sides.items()) * ROUNDS:
        side.begin()
        for length in lengths:
            side.go_to(length - STEPS)
            times[name, length].append(1000 * side.seconds())
    found: list[dict[str, float]] = []
    for length in lengths:
        row: dict[str, float] = {"length": length, "attention_growth": attention_growth(length, lengths[0])}
        for name in sides:
            values = times[name, length]
            row.update({name: statistics.median(values), f"{name}_min": min(values), f"{name}_max": max(values)})
        found.append(row)
        _show(row, found[0])
    return found


def _show(row: dict[str, float], first: dict[str, float]) -> None:
    print(
        f"  {row['length']:>6.0f} {row['baseline']:>9.2f} {row['cached']:>9.2f} {row['again']:>9.2f}"
        f" {row['again'] / row['cached']:>12.2f}x {row['cached'] / row['baseline']:>13.2f}x"
        f" {row['cached'] / first['cached']:>8.2f} {row['again'] / first['again']:>8.2f}"
        f" {row['attention_growth']:>10.2f}",
        flush=True,
    )


@torch.no_grad()
def main() -> None:
    """Prints a table for each strategy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[16, 32, 64, 128, 256, 512])
    parser.add_argument("--rows", type=int, default=20, help="hypotheses at a time: sentences x beam")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    logging.getLogger("lmfusion").setLevel(logging.WARNING)
    machine = f"{platform.machine()}, {args.threads} threads, torch {torch.__version__}, float32"
    print(f"{machine}; {args.rows} rows; {SIZES}\nMilliseconds a token, median of {ROUNDS}:")
    results = {}
    for fusion in ("elmo", "finetune"):
        print(f"\n--tgt-fusion {fusion}{'growth of':>68}")
        print("  prefix  baseline    cached     again again/cached cached/baseline   cached    again  attention")
        results[fusion] = measure(fusion, sorted(args.lengths), args.rows)
    if args.json:
        args.json.write_text(json.dumps({"machine": machine, "milliseconds": results}, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
