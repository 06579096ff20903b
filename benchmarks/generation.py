"""What the strategies cost in generation: tokens/s with beam 5, the ratio to the baseline, its arithmetic limit.

    lmfusion bench generation [--size small|big] [--max-tokens N …] [--length N] [--rows NAME…] [--peers] [--json FILE]

fairseq's own beam search on made-up sources of 20 to 36 tokens; every hypothesis is as long as --length, for random
weights know no end. --max-tokens is what the flag of fairseq-generate means: padded source tokens of a batch; 36 are
one sentence. "LM again" rows run the target LM over the whole prefix at every token, as the paper's released code does.
"fairseq transformer" is fairseq's own model of the baseline's shape.
"""

from __future__ import annotations

import argparse
from typing import Any

import counting
import memory
import peers
import torch
from fairseq.sequence_generator import SequenceGenerator
from models import dictionary_of_size
from options import BF16, autocast, device, flags, parse
from results import Table, report
from rows import BASELINE, ROWS, Row, check_names
from steps import LONGEST, pairs, to_device
from timing import alternate
from training import FAIRSEQ, ratio_table
from uncached import Uncached

from lmfusion.fusion.config import NONE
from lmfusion.inference.int8 import quantize

AGAIN = ", LM again"


class Generation:
    """A model that translates the same sentences every time."""

    def __init__(self, row: Row, again: bool, max_tokens: int, args: argparse.Namespace) -> None:
        model = row.build(args.sizes)
        if again:
            Uncached(model)
        self.model = model.to(device(), torch.bfloat16 if args.precision == BF16 else torch.float32).eval()
        self.model.make_generation_fast_(need_attn=False)  # as fairseq-generate does: no attention weights are made
        net_input = pairs(max(1, max_tokens // LONGEST), args.sizes, seed=0)["net_input"]
        del net_input["prev_output_tokens"]
        self.sample = to_device({"net_input": net_input}, device())
        self.args = args
        self.generator = SequenceGenerator(
            [self.model],
            dictionary_of_size(args.sizes.vocabulary),
            beam_size=args.beam,
            min_len=args.length,
            max_len_b=args.length,
        )

    def run(self) -> int:
        """Translate all; returns the number of tokens of the best hypotheses, </s> included."""
        return sum(len(hypotheses[0]) + 1 for hypotheses in self.lists())

    def best(self) -> list[list[int]]:
        """Translate all; returns the words of the best hypotheses, as numbers."""
        return [hypotheses[0] for hypotheses in self.lists()]

    @torch.no_grad()
    def lists(self) -> list[list[list[int]]]:
        """Translate all; returns the words of each sentence's hypotheses, best first."""
        with autocast(self.args):
            found = self.generator.generate([self.model], self.sample)
        return [[each["tokens"][:-1].tolist() for each in hypotheses] for hypotheses in found]


def chosen(args: argparse.Namespace) -> dict[str, tuple[Row, bool]]:
    """All rows, and those with a target LM without its cache: the row and whether it reads again, by name."""
    found = {}
    for row in (*ROWS, FAIRSEQ):
        if args.rows and row.name not in {BASELINE, *args.rows}:
            continue
        found[row.name] = (row, False)
        if row.tgt != NONE and not args.no_again:
            found[row.name + AGAIN] = (row, True)
    return found


def measure(max_tokens: int, args: argparse.Namespace, arguments: list[str] | None) -> dict[str, Any]:
    """Figures of all rows with batches of a size."""
    rows = chosen(args)
    peaks = {}
    if not args.no_memory:
        peaks = memory.peaks(__file__, arguments, list(rows), ["--max-tokens", str(max_tokens)])
    running = {name: Generation(*row, max_tokens, args) for name, row in rows.items()}
    operations = {name: counting.operations(generation.run) for name, generation in running.items()}
    tokens = running[BASELINE].run()
    time = alternate({name: generation.run for name, generation in running.items()}, args.rounds)
    return {"tokens": tokens, "seconds": time, "operations": operations, "peak_bytes": peaks}


def beside_peers(max_tokens: int, args: argparse.Namespace) -> tuple[Table, dict[str, Any]]:
    """The table of fairseq's transformer, the baseline and other programs, and its figures."""
    own = {row.name: Generation(row, False, max_tokens, args) for row in (FAIRSEQ, ROWS[0])}
    baseline, in_int8 = own[BASELINE], Generation(ROWS[0], False, max_tokens, args)
    quantize(in_int8.model)
    own[f"{BASELINE}, int8"] = in_int8
    # CTranslate2's reader wants weights as they are before decoding is made fast.
    plain = ROWS[0].build(args.sizes).eval()
    sides: dict[str, peers.Best] = {name: each.best for name, each in own.items()}
    sides |= peers.peers(plain, baseline.sample["net_input"]["src_tokens"], args)
    found = {name: best() for name, best in sides.items()}
    expected = baseline.lists()
    tokens = {
        name: sum(map(len, rows)) + len(rows) * (name in own or name == peers.MARIAN) for name, rows in found.items()
    }
    same = {name: f"{sum(row in of for row, of in zip(rows, expected))} of {len(rows)}" for name, rows in found.items()}
    time = alternate(sides, args.rounds)
    title = f"Generation by other programs, {args.models}, beam {args.beam}, sentences a batch: {len(expected)}"
    return peers.table(title, time, tokens, same, FAIRSEQ.name), {"tokens": tokens, "seconds": time, "same": same}


def main(arguments: list[str] | None = None) -> None:
    """Prints a table for each batch size."""
    parser = flags(__doc__, rounds=3)
    default = [36, 12_000] if torch.cuda.is_available() else [36, 576]
    text = f"padded source tokens of a batch; several make several tables (here: {default})"
    parser.add_argument("--max-tokens", type=int, nargs="+", default=default, help=text)
    parser.add_argument("--length", type=int, default=30, help="tokens of every hypothesis (30)")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--rows", nargs="+", metavar="NAME", help="only these, beside the baseline")
    parser.add_argument("--no-again", action="store_true", help='leave out the rows "LM again", which take long')
    text = (
        "beside the baseline in Hugging Face's Marian and in CTranslate2 (pip install 'lmfusion[hf,ctranslate2]'); CPU"
    )
    parser.add_argument("--peers", action="store_true", help=text)
    memory.add_flags(parser)
    args = parse(parser, arguments)
    check_names(parser, args.rows, [row.name for row in (*ROWS, FAIRSEQ)])
    if args.peak_memory_of:
        row = chosen(args)[args.peak_memory_of]
        memory.print_own(lambda: Generation(*row, args.max_tokens[-1], args).run())
        return
    figures, tables = {}, []
    if args.peers:
        for max_tokens in args.max_tokens:
            made, figures[max_tokens] = beside_peers(max_tokens, args)
            tables.append(made)
        report("generation", args, tables, batches=figures)
        return
    for max_tokens in args.max_tokens:
        figures[max_tokens] = found = measure(max_tokens, args, arguments)
        many = max(1, max_tokens // LONGEST)
        title = f"Generation, {args.models}, {args.precision}, beam {args.beam}, sentences a batch: {many}"
        tables.append(ratio_table(title, found["tokens"], found["seconds"], found["operations"], found["peak_bytes"]))
    report("generation", args, tables, batches=figures)


if __name__ == "__main__":
    main()
