"""What the strategies cost in generation: tokens/s with beam 5, the ratio to the baseline, its arithmetic limit.

    python benchmarks/generation.py [--size small|big] [--sentences N] [--length N] [--rows NAME…] [--json FILE]

fairseq's own beam search on made-up sources; every hypothesis is as long as --length, for random weights know no end.
"LM again" rows run the target LM over the whole prefix at every token, which is how the paper's released code decodes.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

import torch
from decoding_cache import without_cache
from fairseq.sequence_generator import SequenceGenerator
from models import dictionary_of_size
from rows import ROWS, SIZES
from timing import alternate, machine, save, show
from torch.utils.flop_counter import FlopCounterMode
from training import batch

from lmfusion.fusion.config import NONE
from lmfusion.fusion.model import TransformerLMFusion


class Generation:
    """A model that translates the same sentences every time."""

    def __init__(self, model: TransformerLMFusion, args: argparse.Namespace, device: str) -> None:
        sizes = SIZES[args.size]
        model = model.to(device, torch.bfloat16 if device == "cuda" else torch.float32).eval()
        source = batch(36 * args.sentences, sizes.vocabulary, 0)["source"].to(device)
        self.sample = {"net_input": {"src_tokens": source, "src_lengths": source.ne(1).sum(1)}}
        self.generator = SequenceGenerator(
            [model],
            dictionary_of_size(sizes.vocabulary),
            beam_size=args.beam,
            min_len=args.length,
            max_len_b=args.length,
        )
        self.model = model

    @torch.no_grad()
    def run(self) -> int:
        """Translate all; returns the number of tokens of the best hypotheses."""
        found = self.generator.generate([self.model], self.sample)
        return sum(len(hypotheses[0]["tokens"]) for hypotheses in found)

    def operations(self) -> int:
        """Floating-point operations of it."""
        with FlopCounterMode(display=False) as counter:
            self.run()
        return int(counter.get_total_flops())


def sides(args: argparse.Namespace, device: str) -> dict[str, Generation]:
    """All rows, and those with a target LM without its cache."""
    found = {}
    for row in ROWS:
        if args.rows and row.name not in {"baseline", *args.rows}:
            continue
        found[row.name] = Generation(row.build(SIZES[args.size]), args, device)
        if row.tgt != NONE:
            again = row.build(SIZES[args.size])
            without_cache(again)
            found[f"{row.name}, LM again"] = Generation(again, args, device)
    return found


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="big" if torch.cuda.is_available() else "small")
    parser.add_argument("--sentences", type=int, default=16)
    parser.add_argument("--length", type=int, default=30, help="tokens of every hypothesis")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", nargs="+", help="only these, beside the baseline")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    logging.getLogger("lmfusion").setLevel(logging.WARNING)
    models = sides(args, "cuda" if torch.cuda.is_available() else "cpu")
    tokens = {name: generation.run() for name, generation in models.items()}
    operations = {name: generation.operations() for name, generation in models.items()}
    seconds = alternate({name: generation.run for name, generation in models.items()}, args.rounds)
    base = seconds["baseline"].median / tokens["baseline"]
    table = [
        [
            name,
            f"{tokens[name] / time.median:,.0f} ± {100 * time.spread:.0f}%",
            f"{time.median / tokens[name] / base:.2f}×",
            f"{operations[name] / operations['baseline']:.2f}×",
        ]
        for name, time in seconds.items()
    ]
    where = f"{machine(args.threads)}, {args.size}, {args.sentences} sentences, beam {args.beam}"
    show(f"Generation: {where}", ["", "tokens/s", "time / baseline", "operations / baseline"], table)
    save(args.json, machine=where, sizes=SIZES[args.size], tokens=tokens, seconds=seconds, operations=operations)


if __name__ == "__main__":
    main()
