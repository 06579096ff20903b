"""What the strategies cost in training: target tokens/s, and the ratio to the baseline beside its arithmetic limit.

    python benchmarks/training.py [--size small|big] [--tokens N] [--rounds N] [--cpu-bf16] [--rows NAME…] [--json FILE]

A step is forward, backward and Adam's update on made-up sentences of 20 to 36 tokens. The limit is the ratio of
floating-point operations that PyTorch counts in such a step. "stored" is SRC-ELMO from the second epoch on with
--src-lm-cache. On a GPU, weights are bf16.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
from pathlib import Path
from typing import Any

import torch
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from rows import ROWS, SIZES, Row
from timing import alternate, machine, save, show
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from lmfusion.fusion.config import ELMO
from lmfusion.fusion.model import TransformerLMFusion

PAD, EOS, BATCHES = 1, 2, 3
Batch = dict[str, Tensor]


def batch(tokens: int, vocabulary: int, number: int) -> Batch:
    """Pairs of 20 to 36 tokens, padded as fairseq pads: sources on the left, targets on the right."""
    generator = torch.Generator().manual_seed(number)
    count = max(1, tokens // 36)
    rows = {}
    for side in ("source", "target"):
        lengths = torch.randint(20, 37, (count,), generator=generator)
        width = int(lengths.max())
        words = torch.randint(4, vocabulary, (count, width), generator=generator)
        words[:, -1] = EOS
        padding = torch.arange(width) < (width - lengths).unsqueeze(1)
        rows[side] = words.masked_fill(padding, PAD)
    target = torch.stack([torch.cat([row[row != PAD], row[row == PAD]]) for row in rows["target"]])
    shifted = torch.cat([torch.full((count, 1), EOS), target[:, :-1]], 1)
    shifted = shifted.masked_fill(target.eq(PAD), PAD)
    return {"source": rows["source"], "target": target, "shifted": shifted}


class Training:
    """A model in training."""

    def __init__(self, model: TransformerLMFusion, batches: list[Batch], device: str) -> None:
        self.model = model.to(device, torch.bfloat16 if device == "cuda" else torch.float32).train()
        self.batches = [{name: value.to(device) for name, value in batch.items()} for batch in batches]
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.Adam(trained, lr=1e-5, betas=(0.9, 0.98))

    def loss(self, batch: Batch) -> Tensor:
        """Label-smoothed cross entropy, as in the recipes."""
        output = self.model(batch["source"], None, batch["shifted"])
        scores = self.model.get_normalized_probs(output, log_probs=True)
        target = batch["target"].view(-1, 1)
        return label_smoothed_nll_loss(scores.view(-1, scores.size(-1)), target, 0.1, ignore_index=PAD)[0]

    def epoch(self) -> None:
        """A step on every batch."""
        for batch in self.batches:
            self.optimizer.zero_grad(set_to_none=True)
            self.loss(batch).backward()
            self.optimizer.step()

    def operations(self) -> int:
        """Floating-point operations of a step's forward and backward pass."""
        self.loss(self.batches[0])  # what can be stored is stored
        with FlopCounterMode(display=False) as counter:
            self.loss(self.batches[0]).backward()
        self.optimizer.zero_grad(set_to_none=True)
        return int(counter.get_total_flops())


def sides(args: argparse.Namespace, device: str, cache: str) -> dict[str, Training]:
    """All rows in training, and SRC-ELMO on stored states."""
    sizes = SIZES[args.size]
    batches = [batch(args.tokens, sizes.vocabulary, number) for number in range(BATCHES)]
    flags: dict[str, Any] = {"cpu_bf16": args.cpu_bf16, "dropout": 0.1}
    stored = Row("SRC-ELMO, stored", src=ELMO, flags={"src_lm_cache": cache})
    return {
        row.name: Training(row.build(sizes, **flags), batches, device)
        for row in (*ROWS, stored)
        if not args.rows or row.name in {"baseline", *args.rows}
    }


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="big" if torch.cuda.is_available() else "small")
    parser.add_argument("--tokens", type=int, default=1500, help="padded target tokens of a batch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", nargs="+", help="only these, beside the baseline")
    parser.add_argument("--cpu-bf16", action="store_true", help="as the flag of the same name in training")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    logging.getLogger("lmfusion").setLevel(logging.WARNING)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as cache:
        models = sides(args, device, cache)
        operations = {name: training.operations() for name, training in models.items()}
        seconds = alternate({name: training.epoch for name, training in models.items()}, args.rounds)
    tokens = sum(int(batch["target"].ne(PAD).sum()) for batch in models["baseline"].batches)
    base = seconds["baseline"]
    table = [
        [
            name,
            f"{tokens / time.median:,.0f} ± {100 * time.spread:.0f}%",
            f"{time.median / base.median:.2f}×",
            f"{operations[name] / operations['baseline']:.2f}×",
        ]
        for name, time in seconds.items()
    ]
    where = f"{machine(args.threads)}, {args.size}{', --cpu-bf16' if args.cpu_bf16 else ''}"
    show(f"Training: {where}", ["", "target tokens/s", "time / baseline", "operations / baseline"], table)
    save(args.json, machine=where, sizes=SIZES[args.size], tokens=tokens, seconds=seconds, operations=operations)


if __name__ == "__main__":
    main()
