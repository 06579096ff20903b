"""Pretraining of the language models: tokens/s against a plain implementation and against fairseq's transformer_lm.

    python benchmarks/pretraining.py [--size small|big] [--tokens N] [--rounds N] [--json FILE]

"plain" computes the same model on the same weights as a textbook would (benchmarks/plain_lm.py); that both give the
same logits is checked first. fairseq's transformer_lm has as many blocks as both towers together. A step is forward,
backward and Adam's update on made-up sentences of 20 to 36 tokens. On a GPU, weights are bf16.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import torch
import torch.nn.functional as F
from fairseq.models.transformer_lm import TransformerLanguageModel, TransformerLanguageModelConfig
from models import Sizes, dictionary_of_size, language_model
from plain_lm import causal_logits, cloze_logits
from rows import SIZES
from timing import alternate, machine, save, show
from torch import Tensor, nn
from training import EOS, PAD, batch

BATCHES = 3


def sentences(tokens: int, vocabulary: int, number: int) -> Tensor:
    """``</s> w1 … wn </s>``, right-padded: B x T."""
    target = batch(tokens, vocabulary, number)["target"]
    return torch.cat([torch.full((target.size(0), 1), EOS), target], 1)


class Pretraining:
    """A language model in training; ``logits`` maps tokens to B x T x V."""

    def __init__(self, lm: nn.Module, logits: Callable[[Tensor], Tensor], rows: list[Tensor], cloze: bool) -> None:
        self.logits, self.rows, self.cloze = logits, rows, cloze
        self.optimizer = torch.optim.Adam(lm.parameters(), lr=1e-5, betas=(0.9, 0.98))

    def epoch(self) -> None:
        """A step on every batch."""
        for row in self.rows:
            tokens, target = (row, row) if self.cloze else (row[:, :-1], row[:, 1:])
            self.optimizer.zero_grad(set_to_none=True)
            scores = F.log_softmax(self.logits(tokens), dim=-1, dtype=torch.float32)
            F.nll_loss(scores.flatten(0, 1), target.flatten(), ignore_index=PAD, reduction="sum").backward()
            self.optimizer.step()


def fairseq_lm(sizes: Sizes, blocks: int) -> TransformerLanguageModel:
    """fairseq's own causal LM with tied embeddings."""
    cfg = TransformerLanguageModelConfig(
        decoder_embed_dim=sizes.lm_channels,
        decoder_output_dim=sizes.lm_channels,
        decoder_input_dim=sizes.lm_channels,
        decoder_ffn_embed_dim=sizes.lm_ffn,
        decoder_layers=blocks,
        decoder_attention_heads=sizes.lm_heads,
        decoder_normalize_before=True,
        share_decoder_input_output_embed=True,
        tokens_per_sample=sizes.max_positions,
        max_target_positions=sizes.max_positions,
        dropout=0.1,
        attention_dropout=0.1,
        activation_dropout=0.05,
        tpu=False,
        add_bos_token=False,
    )
    dictionary = dictionary_of_size(sizes.vocabulary)
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    return TransformerLanguageModel.build_model(cfg, task)


@torch.no_grad()
def check_equal(ours: Tensor, plain: Tensor, tokens: Tensor) -> float:
    """Largest difference of two models' logits at words; they are of order 1."""
    difference = float((ours - plain)[tokens.ne(PAD)].abs().max())
    assert difference < 1e-3, f"the plain implementation is another model: logits differ by {difference}"
    return difference


def sides(kind: str, sizes: Sizes, rows: list[Tensor], device: str) -> dict[str, Pretraining]:
    """lmfusion's, the plain one and fairseq's, of one kind of language model."""
    cloze, dictionary = kind == "cloze", dictionary_of_size(sizes.vocabulary)
    plain: Callable[[Any, Tensor], Tensor] = cloze_logits if cloze else causal_logits
    models: dict[str, Any] = {}
    for name in ("lmfusion", "plain"):
        torch.manual_seed(1)
        models[name] = language_model("src" if cloze else "tgt", sizes, dictionary).to(device)
    lm = models["lmfusion"].eval()
    difference = check_equal(lm(rows[0])[0], plain(lm, rows[0]), rows[0])
    print(f"{kind} LM: logits of lmfusion and the plain implementation differ by at most {difference:.1e} in float32")
    models["fairseq"] = fairseq_lm(sizes, sizes.lm_layers * (2 if cloze else 1)).to(device)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    models = {name: model.to(dtype).train() for name, model in models.items()}
    logits: dict[str, Callable[[Tensor], Tensor]] = {
        "lmfusion": lambda tokens: models["lmfusion"](tokens)[0],
        "plain": lambda tokens: plain(models["plain"], tokens),
        "fairseq": lambda tokens: models["fairseq"](tokens)[0],
    }
    return {name: Pretraining(models[name], logits[name], rows, cloze) for name in models}


def main() -> None:
    """Prints a table for each language model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="big" if torch.cuda.is_available() else "small")
    parser.add_argument("--tokens", type=int, default=1500, help="padded tokens of a batch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    logging.getLogger("lmfusion").setLevel(logging.WARNING)
    device, sizes = "cuda" if torch.cuda.is_available() else "cpu", SIZES[args.size]
    rows = [sentences(args.tokens, sizes.vocabulary, number).to(device) for number in range(BATCHES)]
    tokens = sum(int(row.ne(PAD).sum()) for row in rows)
    results = {}
    for kind in ("cloze", "causal"):
        measured = sides(kind, sizes, rows, device)
        results[kind] = seconds = alternate({name: side.epoch for name, side in measured.items()}, args.rounds)
        ours = seconds["lmfusion"].median
        table = [
            [name, f"{tokens / time.median:,.0f} ± {100 * time.spread:.0f}%", f"{time.median / ours:.2f}×"]
            for name, time in seconds.items()
        ]
        title = f"Pretraining, {kind} LM: {machine(args.threads)}, {args.size}"
        show(title, ["", "tokens/s", "time / lmfusion's"], table)
    save(args.json, machine=machine(args.threads), sizes=sizes, tokens=tokens, seconds=results)


if __name__ == "__main__":
    main()
