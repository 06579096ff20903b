"""The loss over the vocabulary in chunks against fairseq's criterion on all logits: time and peak memory.

    lmfusion bench chunked_loss [--vocabulary V…] [--channels C…] [--tokens N…] [--precision P…] [--json FILE]

All sides are label-smoothed criterions, forward and backward, on the same random features and output embeddings, with
a tenth of the targets padding. "memory" is a ratio of peaks, of processes that do nothing else: what all sides need
for features, weights and gradients is in all. With --smoothing 0, as in pretraining, PyTorch's own loss in chunks
(torch.nn.functional.linear_cross_entropy, since 2.13) stands beside; it knows neither label smoothing nor autocast.
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

FAIRSEQ, CHUNKED, TORCH = "fairseq", "chunked", "torch"
PADDING = 0.1
COLUMNS = ["types, channels, tokens, precision: side", "s", "time / fairseq", "memory", "memory / fairseq"]
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


class TorchCriterion(LabelSmoothedCrossEntropyCriterion):  # type: ignore[misc]
    """PyTorch's loss in chunks, with its own choice of their size."""

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> Any:
        """As fairseq's, for the loss alone."""
        target = sample["target"].flatten()

        def head(features: Tensor, weight: Tensor) -> Tensor:
            options = torch.nn.LinearCrossEntropyOptions()
            settings = {"reduction": "sum", "ignore_index": self.padding_idx, "options": options}
            return F.linear_cross_entropy(features.flatten(0, -2), weight, target, **settings)

        return model(head=head)[0], sample["ntokens"], {}


CRITERIONS = {
    FAIRSEQ: LabelSmoothedCrossEntropyCriterion,
    CHUNKED: ChunkedLabelSmoothedCrossEntropy,
    TORCH: TorchCriterion,
}


def sides(args: argparse.Namespace, setting: Setting) -> list[str]:
    """Those that compute this."""
    fits = not args.smoothing and setting[-1] != AUTOCAST and hasattr(F, "linear_cross_entropy")
    return [FAIRSEQ, CHUNKED, TORCH] if fits else [FAIRSEQ, CHUNKED]


class Step:
    """Loss and gradients of one side."""

    def __init__(self, side: str, setting: Setting, smoothing: float) -> None:
        vocabulary, channels, tokens, self.precision = setting
        torch.manual_seed(1)
        dictionary = dictionary_of_size(vocabulary)
        dtype = torch.bfloat16 if self.precision == BF16 else torch.float32
        self.model = Softmax(vocabulary, channels, tokens, dtype).to(device())
        self.criterion = CRITERIONS[side](SimpleNamespace(target_dictionary=dictionary), False, smoothing)
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
    names_of_sides = sides(args, setting)
    peaks = {} if args.no_memory else memory.peaks(__file__, arguments, names_of_sides, more)
    steps = {side: Step(side, setting, args.smoothing) for side in names_of_sides}
    losses = {side: step.run() for side, step in steps.items()}
    for side, loss in losses.items():  # PyTorch sums in bf16, which counts to 256 by ones
        allowed = 0.05 if side == TORCH and setting[-1] == BF16 else 0.01
        assert abs(loss - losses[FAIRSEQ]) < allowed * losses[FAIRSEQ], f"the sides compute other losses: {losses}"
    time = alternate({side: step.run for side, step in steps.items()}, args.rounds)
    return {"setting": setting, "seconds": time, "peak_bytes": peaks, "losses": losses}


def table(found: list[dict[str, Any]], smoothing: float) -> Table:
    """A line for each side of each setting."""
    made = Table(f"Loss and gradients, label smoothing {smoothing:g}", COLUMNS)
    for each in found:
        time, peaks = each["seconds"], each["peak_bytes"]
        name = "{:,}, {}, {:,}, {}".format(*each["setting"])
        for side, spread in time.items():
            ratio = f"{peaks[side] / peaks[FAIRSEQ]:.2f}×" if peaks else ""
            row = [f"{name}: {side}", f"{spread.median:.3f}", spread.over(time[FAIRSEQ]).ratio()]
            made.rows.append([*row, memory.shown(peaks.get(side)), ratio])
    return made


def main(arguments: list[str] | None = None) -> None:
    """Prints the table."""
    parser = flags(__doc__, rounds=5, sized=False)
    parser.add_argument("--vocabulary", type=int, nargs="+", default=[8000, 37000], metavar="V")
    parser.add_argument("--channels", type=int, nargs="+", default=[256, 1024], metavar="C")
    parser.add_argument("--tokens", type=int, nargs="+", default=[1500, 3584], metavar="N")
    parser.add_argument("--precision", nargs="+", choices=(FP32, BF16, AUTOCAST), default=[FP32, AUTOCAST], metavar="P")
    parser.add_argument("--smoothing", type=float, default=0.1, help="of the labels (0.1)")
    memory.add_flags(parser)
    args = parse(parser, arguments)
    settings = list(product(args.vocabulary, args.channels, args.tokens, args.precision))
    if args.peak_memory_of:
        memory.print_own(Step(args.peak_memory_of, settings[0], args.smoothing).run)
        return
    found = [measure(setting, args, arguments) for setting in settings]
    report("chunked_loss", args, [table(found, args.smoothing)], found=found)


if __name__ == "__main__":
    main()
