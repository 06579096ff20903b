"""What training an LSTM costs: lstm_lmfusion beside fairseq's lstm, in float32 and in another precision.

    lmfusion bench lstm [--size small|big] [--channels N] [--tokens N] [--rounds N] [--precision P] [--json FILE]

A step is forward, backward and Adam's update on made-up sentences of 20 to 36 tokens. One layer a side, the encoder in
both directions, attention "general": the row `lstm` of the recipes, for which --channels is 192. Ratios are to the
first row, fairseq's in float32. With --precision autocast (the default), which is what --cpu-bf16 does on a CPU,
lstm_lmfusion's decoder makes fewer and larger products.
"""

from __future__ import annotations

import argparse
from argparse import Namespace

import torch
from fairseq.models.lstm import LSTMModel
from models import Sizes, defaults, task_of
from options import AUTOCAST, FP32, flags, parse
from results import Table, report
from steps import LONGEST, Sample, Training, pairs
from timing import alternate
from torch import nn

from lmfusion.consumers.lstm import LSTMFusion
from lmfusion.consumers.lstm_config import LSTMFusionConfig

BATCHES, DROPOUT = 3, 0.1
CRITERION = "label_smoothed_cross_entropy"
OURS, FAIRSEQS = "lstm_lmfusion", "fairseq's lstm"


def build(name: str, sizes: Sizes) -> nn.Module:
    """A model of the recipes' shape with random weights, the same for both names."""
    torch.manual_seed(1)
    values = defaults(LSTMFusionConfig)
    values.update({f"{side}_embed_dim": sizes.channels for side in ("encoder", "decoder", "decoder_out")})
    values.update(decoder_hidden_size=2 * sizes.channels, encoder_bidirectional=True, dropout=DROPOUT)
    values.update(max_source_positions=sizes.max_positions, max_target_positions=sizes.max_positions)
    if name == OURS:
        return LSTMFusion.build_model(Namespace(**values), task_of(sizes))
    given = {key: value for key, value in values.items() if value is not None}
    model: nn.Module = LSTMModel.build_model(
        Namespace(**{**given, "decoder_attention": "1", "criterion": CRITERION}), task_of(sizes)
    )
    return model


def main(arguments: list[str] | None = None) -> None:
    """Prints the table."""
    parser = flags(__doc__, rounds=5)
    parser.add_argument("--tokens", type=int, default=1500, help="padded target tokens of a batch (1500)")
    parser.set_defaults(precision=AUTOCAST)
    args = parse(parser, arguments)
    samples = [_sorted(pairs(max(1, args.tokens // LONGEST), args.sizes, seed)) for seed in range(BATCHES)]
    running = {
        f"{name}, {precision}": Training(build(name, args.sizes), samples, _in(args, precision), CRITERION)
        for precision in dict.fromkeys((FP32, args.precision))
        for name in (FAIRSEQS, OURS)
    }
    time = alternate({name: training.epoch for name, training in running.items()}, args.rounds)
    first = next(iter(time))
    tokens = running[first].tokens
    table = Table(f"Training, {args.models}, batches of {args.tokens} tokens", ["", "target tokens/s", "times as fast"])
    for name, spread in time.items():
        table.rows.append([name, spread.rate(tokens), time[first].over(spread).ratio()])
    report("lstm", args, [table], tokens=tokens, seconds=time)


def _sorted(sample: Sample) -> Sample:
    """The batch with its longest source first, as fairseq's collater leaves it and its LSTM takes it."""
    order = sample["net_input"]["src_lengths"].argsort(descending=True)
    net_input = {name: rows[order] for name, rows in sample["net_input"].items()}
    return {**sample, "net_input": net_input, "target": sample["target"][order]}


def _in(args: argparse.Namespace, precision: str) -> argparse.Namespace:
    return Namespace(**{**vars(args), "precision": precision})


if __name__ == "__main__":
    main()
