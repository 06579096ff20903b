"""``lmfusion score``: generated text against references."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmfusion.errors import UserError

if TYPE_CHECKING:
    from lmfusion.scoring.bleu import BleuScore, PairedResult


def add(commands: Any) -> None:
    """The command's flags."""
    text = "score generated text"
    metrics = commands.add_parser("score", help=text, description=text).add_subparsers(
        title="metrics", metavar="METRIC", dest="metric", required=True
    )
    text = "BLEU and chrF of sacreBLEU, on detokenized text, with signatures"
    parser = metrics.add_parser("bleu", help=text, description=text)
    system = parser.add_mutually_exclusive_group(required=True)
    system.add_argument("--hyp", metavar="FILE", help="hypotheses, detokenized, one per line")
    system.add_argument(
        "--generate",
        metavar="FILE",
        help="what fairseq-generate printed, or its generate-*.txt: put in order, its BPE removed",
    )
    parser.add_argument(
        "--ref", metavar="FILE", action="append", help="references, one per line; several times for several references"
    )
    parser.add_argument(
        "--baseline",
        "--paired",
        metavar="FILE",
        help="paired bootstrap test against this system; a file of the same kind as the system's",
    )
    parser.add_argument("--detokenize", metavar="LANG", help="undo Moses tokenization of --generate (de, en, …)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=score_bleu)


def score_bleu(args: argparse.Namespace) -> None:
    """``lmfusion score bleu``"""
    from lmfusion.scoring import bleu
    from lmfusion.scoring.files import read_system, read_test_set

    logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # no news of each step of the paired test
    if args.detokenize and not args.generate:
        raise UserError("--detokenize goes with --generate: the text of --hyp has to be detokenized already.")
    name = args.generate or args.hyp
    hypotheses, references = read_test_set(args.hyp, args.generate, args.ref or [], args.detokenize)
    score = bleu.score(hypotheses, references)
    paired: list[PairedResult] = []
    if args.baseline:
        baseline = read_system(args.baseline, bool(args.generate), args.detokenize)
        if len(baseline) != len(hypotheses):
            raise UserError(
                f"{args.baseline} has {len(baseline)} sentences, but {name} has {len(hypotheses)}. "
                "Both have to be translations of the same test set."
            )
        paired = bleu.paired_bootstrap(baseline, {name: hypotheses}, references)
    if args.json:
        print(json.dumps({**score.to_dict(), "paired": [result.to_dict() for result in paired]}, indent=2))
    else:
        _show_bleu(score, paired)


def _show_bleu(score: BleuScore, paired: Sequence[PairedResult]) -> None:
    precisions = "/".join(f"{precision:.1f}" for precision in score.precisions)
    ratio = score.hypothesis_length / max(score.reference_length, 1)
    print(f"BLEU   {score.bleu:6.2f}  {score.signature}")
    print(f"               {score.legacy_signature}")
    print(
        f"               {precisions}, brevity penalty {score.brevity_penalty:.3f}, length ratio {ratio:.3f} "
        f"({score.hypothesis_length}/{score.reference_length}), {score.sentences} sentences"
    )
    print(f"chrF2  {score.chrf:6.2f}  {score.chrf_signature}")
    if paired:
        print(f"\nPaired bootstrap test (BLEU, mean ± 95% interval)  {paired[0].signature}")
    for result in paired:
        p = "" if result.p_value is None else f"  p = {result.p_value:.4f}"
        print(f"  {result.bleu:6.2f}  {result.mean:6.2f} ± {result.ci:.2f}{p}  {result.name}")
