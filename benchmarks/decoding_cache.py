"""What a token costs in decoding with a target-side LM: cached, against the LM run over the whole prefix again.

    lmfusion bench decoding_cache [--lengths 16 32 64 128 256 512] [--hypotheses N] [--threads N] [--json FILE]

Both sides are one model with the same weights on the same prefixes, timed in turn in one process; the baseline is a
model of the same size without an LM, cached. "Again" is how the paper's released code decodes: its decoder is cached,
its LM is not. The growth columns divide the cost at a length by that at the shortest; the last one is the growth of the
cached step's floating-point operations, which attention over a longer prefix makes.
"""

from __future__ import annotations

import argparse
from typing import Any

import counting
import torch
from models import Sizes, seq2seq
from options import BF16, autocast, device, flags, parse
from results import Table, report
from timing import Spread, progress, seconds
from uncached import Uncached

from lmfusion.fusion.config import ELMO, FINETUNE, NONE
from lmfusion.fusion.model import TransformerLMFusion

SOURCE_LENGTH, STEPS = 32, 4  # STEPS: tokens timed at a length
BASELINE, CACHED, AGAIN = "baseline", "cached", "again"
COLUMNS = [
    *("prefix", "baseline, ms", "cached, ms", "again, ms", "again / cached", "cached / baseline"),
    *("growth of cached", "of again", "of operations"),
]


class Decoding:
    """One model in the middle of a sentence, at a length that can be set."""

    def __init__(self, model: TransformerLMFusion, args: argparse.Namespace, *, again: bool = False) -> None:
        self.uncached = Uncached(model) if again else None
        self.model = model.to(device(), torch.bfloat16 if args.precision == BF16 else torch.float32).eval()
        self.args = args
        sizes: Sizes = args.sizes
        generator = torch.Generator().manual_seed(1)
        prefix = torch.randint(4, sizes.vocabulary, (args.hypotheses, sizes.max_positions), generator=generator)
        source = torch.randint(4, sizes.vocabulary, (args.hypotheses, SOURCE_LENGTH), generator=generator)
        self.prefix = prefix.to(device())
        self.encoder_out = model.encoder(source.to(device()), torch.full((args.hypotheses,), SOURCE_LENGTH))
        self.begin()

    def begin(self) -> None:
        """Nothing is decoded."""
        self.state: dict[str, Any] = {}
        self.length = 0

    def step(self) -> None:
        """The next token's scores."""
        self.length += 1
        with autocast(self.args):
            prefix = self.prefix[:, : self.length]
            self.model.decoder(prefix, encoder_out=self.encoder_out, incremental_state=self.state)

    def steps(self) -> None:
        """A few tokens."""
        for _ in range(STEPS):
            self.step()

    def go_to(self, length: int) -> None:
        """Decode up to a length, with a cache for quickness."""
        if self.uncached is not None:
            self.uncached.active = False
        while self.length < length:
            self.step()
        if self.uncached is not None:
            self.uncached.active = True


def sides(fusion: str, args: argparse.Namespace) -> dict[str, Decoding]:
    """The three that are compared."""
    torch.manual_seed(1)
    cached, again = (seq2seq(args.sizes, tgt=fusion) for _ in range(2))
    again.load_state_dict(cached.state_dict())
    models = {BASELINE: seq2seq(args.sizes, tgt=NONE), CACHED: cached, AGAIN: again}
    return {name: Decoding(model, args, again=name == AGAIN) for name, model in models.items()}


def measure(fusion: str, args: argparse.Namespace) -> tuple[Table, dict[str, Any]]:
    """Milliseconds of a token by prefix length, and the table of them."""
    lengths, running = sorted(args.lengths), sides(fusion, args)
    times: dict[tuple[str, int], list[float]] = {(name, length): [] for name in running for length in lengths}
    for _ in progress(range(args.rounds), f"--tgt-fusion {fusion}"):
        for name, side in running.items():
            side.begin()
            for length in lengths:
                side.go_to(length - STEPS)
                times[name, length].append(1000 * seconds(side.steps) / STEPS)
    found = {length: {name: Spread(times[name, length]) for name in running} for length in lengths}
    operations = {}
    running[CACHED].begin()
    for length in lengths:
        running[CACHED].go_to(length - 1)
        operations[length] = counting.operations(running[CACHED].step)
    title = f"--tgt-fusion {fusion}, {args.models}, {args.precision}, {args.hypotheses} hypotheses at a time"
    table = Table(title, COLUMNS, [_line(length, found, operations) for length in lengths])
    return table, {"milliseconds": found, "operations": operations}


def _line(length: int, found: dict[int, dict[str, Spread]], operations: dict[int, int]) -> list[str]:
    row, first = found[length], min(found)
    ratios = [row[AGAIN].over(row[CACHED]), row[CACHED].over(row[BASELINE])]
    growth = [row[name].median / found[first][name].median for name in (CACHED, AGAIN)]
    growth.append(operations[length] / operations[first])
    return [
        str(length),
        *(f"{spread.median:.2f} ± {100 * spread.half_range:.0f}%" for spread in row.values()),
        *(f"{ratio.median:.2f}×" for ratio in ratios),
        *(f"{value:.2f}" for value in growth),
    ]


@torch.no_grad()
def main(arguments: list[str] | None = None) -> None:
    """Prints a table for each strategy."""
    parser = flags(__doc__, rounds=3)
    parser.add_argument("--lengths", type=int, nargs="+", default=[16, 32, 64, 128, 256, 512])
    parser.add_argument("--hypotheses", type=int, default=20, help="at a time: sentences x beam (20)")
    args = parse(parser, arguments)
    found = {fusion: measure(fusion, args) for fusion in (ELMO, FINETUNE)}
    figures = {fusion: figures for fusion, (_, figures) in found.items()}
    report("decoding_cache", args, [table for table, _ in found.values()], **figures)


if __name__ == "__main__":
    main()
