"""The loss over the vocabulary in chunks against fairseq's criterion on all logits: time and peak memory.

    lmfusion bench chunked_loss [--vocabulary V…] [--channels C…] [--tokens N…] [--precision P…] [--json FILE]

Both sides are label-smoothed criterions, forward and backward, on the same random features and output embeddings, with
a tenth of the targets padding. "memory" is a ratio of peaks, of processes that do nothing else: what both sides need
for features, weights and gradients is in both.
"""

from __future__ import annotations

import argparse
from itertools import product
from types import SimpleNamespace
from typing import Any

import memory
import torch
import torch.nn.functional as F
from fairseq import utils
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from models import dictionary_of_size
from options import AUTOCAST, BF16, FP32, autocast, device, flags, parse
from results import Table, report
from timing import alternate
from torch import Tensor, nn

from lmfusion.lm.interface import Head
from lmfusion.training.criterions import ChunkedLabelSmoothedCrossEntropy

CRITERIONS = {"fairseq": LabelSmoothedCrossEntropyCriterion, "chunked": ChunkedLabelSmoothedCrossEntropy}
COLUMNS = ["types, channels, tokens, precision", "fairseq s", "chunked s", "time", "fairseq", "chunked", "memory"]
SMOOTHING, PADDING = 0.1, 0.1
Setting = tuple[int, int, int, str]


class Softmax(nn.Module):
    """Output embeddings, and what a model would have computed below them."""

    takes_head = True

    def __init__(self, vocabulary: int, channels: int, tokens: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.features = nn.Parameter(torch.randn(1, tokens, channels, dtype=dtype))
        self.weight = nn.Parameter(torch.randn(vocabulary, channels, dtype=dtype) * channels**-0.5)

    def forward(self, head: Head = F.linear) -> tuple[Any, dict[str, Any]]:
        """Logits, or what a criterion's head makes of the features."""
        return head(self.features, self.weight), {}

    def get_normalized_probs(self, net_output: Any, log_probs: bool) -> Tensor:
        """As fairseq's decoders."""
        return utils.log_softmax(net_output[0], dim=-1)

    def get_targets(self, sample: dict[str, Any], net_output: Any) -> Tensor:
        """As fairseq's models."""
        target: Tensor = sample["target"]
        return target


class Step:
    """Loss and gradients of one side."""

    def __init__(self, side: str, setting: Setting) -> None:
        vocabulary, channels, tokens, self.precision = setting
        torch.manual_seed(1)
        dictionary = dictionary_of_size(vocabulary)
        dtype = torch.bfloat16 if self.precision == BF16 else torch.float32
        self.model = Softmax(vocabulary, channels, tokens, dtype).to(device())
        self.criterion = CRITERIONS[side](SimpleNamespace(target_dictionary=dictionary), False, SMOOTHING)
        target = torch.randint(dictionary.nspecial, vocabulary, (1, tokens), device=device())
        target[:, int(tokens * (1 - PADDING)) :] = dictionary.pad()
        self.sample = {"net_input": {}, "target": target, "ntokens": int(tokens * (1 - PADDING))}

    def run(self) -> float:
        """Once; the loss."""
        self.model.zero_grad(set_to_none=True)
        with autocast(argparse.Namespace(precision=self.precision)):
            loss: Tensor = self.criterion(self.model, self.sample)[0]
        loss.backward()
        return loss.item()


def measure(setting: Setting, args: argparse.Namespace, arguments: list[str] | None) -> dict[str, Any]:
    """Seconds of every round and bytes, by side."""
    names = ("vocabulary", "channels", "tokens", "precision")
    more = [word for name, value in zip(names, setting) for word in (f"--{name}", str(value))]
    peaks = {} if args.no_memory else memory.peaks(__file__, arguments, list(CRITERIONS), more)
    steps = {side: Step(side, setting) for side in CRITERIONS}
    losses = [step.run() for step in steps.values()]
    assert abs(losses[0] - losses[1]) < 0.01 * losses[0], f"the sides compute other losses: {losses}"
    time = alternate({side: step.run for side, step in steps.items()}, args.rounds)
    return {"setting": setting, "seconds": time, "peak_bytes": peaks}


def line(found: dict[str, Any]) -> list[str]:
    """Of the table."""
    time, peaks = found["seconds"], found["peak_bytes"]
    name = "{:,}, {}, {:,}, {}".format(*found["setting"])
    shown = [f"{time[side].median:.3f}" for side in CRITERIONS] + [time["chunked"].over(time["fairseq"]).ratio()]
    sizes = [memory.shown(peaks.get(side)) for side in CRITERIONS]
    return [name, *shown, *sizes, f"{peaks['chunked'] / peaks['fairseq']:.2f}×" if peaks else ""]


def main(arguments: list[str] | None = None) -> None:
    """Prints the table."""
    parser = flags(__doc__, rounds=5, sized=False)
    parser.add_argument("--vocabulary", type=int, nargs="+", default=[8000, 37000], metavar="V")
    parser.add_argument("--channels", type=int, nargs="+", default=[256, 1024], metavar="C")
    parser.add_argument("--tokens", type=int, nargs="+", default=[1500, 3584], metavar="N")
    parser.add_argument("--precision", nargs="+", choices=(FP32, BF16, AUTOCAST), default=[FP32, AUTOCAST], metavar="P")
    memory.add_flags(parser)
    args = parse(parser, arguments)
    settings = list(product(args.vocabulary, args.channels, args.tokens, args.precision))
    if args.peak_memory_of:
        memory.print_own(Step(args.peak_memory_of, settings[0]).run)
        return
    found = [measure(setting, args, arguments) for setting in settings]
    report("chunked_loss", args, [Table("Loss and gradients", COLUMNS, [line(each) for each in found])], found=found)


if __name__ == "__main__":
    main()
