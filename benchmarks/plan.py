"""What `lmfusion bench all` runs, in order, and about how long each takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    """A benchmark with its options.

    Attributes:
        name: of its results.
        benchmark: as ``lmfusion bench`` knows it.
        options: of it.
        minutes: on the machine the plan was made for; only their proportions matter to the estimate.
    """

    name: str
    benchmark: str
    options: tuple[str, ...]
    minutes: float


def _run(name: str, benchmark: str, options: str, minutes: float) -> Run:
    return Run(name, benchmark, tuple(options.split()), minutes)


# One core of a server CPU.
CPU = (
    _run("limits", "limits", "", 0.6),
    _run("training", "training", "--tokens 540", 4.5),
    _run("training_autocast", "training", "--tokens 540 --precision autocast --no-memory", 2.5),
    _run("lstm", "lstm", "--channels 192 --vocabulary 4004", 1.5),
    _run("pretraining", "pretraining", "--tokens 720", 4),
    _run("chunked_loss", "chunked_loss", "--channels 256 --tokens 1500", 2),
    _run("generation", "generation", "--max-tokens 36 288 --no-memory", 3.5),
    _run("decoding_cache", "decoding_cache", "--hypotheses 5", 3),
    _run("growth", "growth", "--channels 128 --vocabulary 4625 --tokens 512", 4.5),
    _run("rouge_speed", "rouge_speed", "", 0.2),
    _run("score_memory", "score_memory", "--lines 100000", 2),
    _run("text_preparation", "text_preparation", "--sentences 200000", 1),
    _run("translate", "translate", "--sentences 300", 6),
)

# A GPU with 80 GB.
GPU = (
    _run("gpu", "gpu", "", 9),
    _run("limits", "limits", "", 0.5),
    _run("training", "training", "--tokens 3584", 3),
    _run("training_fp32", "training", "--tokens 3584 --precision fp32 --no-memory", 3),
    _run("pretraining", "pretraining", "--tokens 9920", 3),
    _run("pretraining_fp32", "pretraining", "--tokens 2480 --precision fp32", 3),
    _run("chunked_loss", "chunked_loss", "--channels 1024 --tokens 3584", 1),
    _run(
        "chunked_loss_unsmoothed",
        "chunked_loss",
        "--channels 1024 --tokens 3584 --smoothing 0 --precision fp32 bf16",
        1,
    ),
    _run("generation", "generation", "--max-tokens 36 12000", 6),
    _run("decoding_cache", "decoding_cache", "--hypotheses 100", 4),
    _run("growth", "growth", "--tokens 4096", 6),
    _run("rouge_speed", "rouge_speed", "", 0.2),
    _run("translate", "translate", "--sentences 1000", 3),
)

# The same code on models of a size that proves nothing: a rehearsal.
_TINY = "--size small --channels 32 --layers 1 --lm-layers 2 --vocabulary 200 --rounds 1"
REHEARSAL = (
    _run("gpu", "gpu", "--tiny --device cpu --rounds 1", 1),
    _run("limits", "limits", f"{_TINY} --tokens 8", 0.1),
    _run("training", "training", f"{_TINY} --tokens 72 --no-memory", 0.1),
    _run("lstm", "lstm", f"{_TINY} --tokens 72", 0.1),
    _run("pretraining", "pretraining", f"{_TINY} --tokens 72 --no-memory", 0.1),
    _run("chunked_loss", "chunked_loss", "--vocabulary 200 --channels 32 --tokens 72 --rounds 1 --no-memory", 0.1),
    _run("generation", "generation", f"{_TINY} --max-tokens 36 --length 6 --no-memory", 0.1),
    _run("decoding_cache", "decoding_cache", f"{_TINY} --lengths 8 16 --hypotheses 2", 0.1),
    _run("growth", "growth", f"{_TINY} --along length --values 8 16 --tokens 64", 0.1),
    _run("rouge_speed", "rouge_speed", "--summaries 50", 0.1),
    _run("score_memory", "score_memory", "--lines 500", 0.1),
    _run("text_preparation", "text_preparation", "--sentences 500 --compared 50 --rounds 1", 0.1),
    _run("translate", "translate", "--sentences 4 --beam 2 --rounds 1", 1),
)
