"""The command ``lmfusion``. One function per subcommand; a mistake of the user's ends in one line and status 2."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmfusion.errors import LMFusionError, UserError

if TYPE_CHECKING:
    from rich.console import Console

    from lmfusion.inspection import Inspection
    from lmfusion.scoring.bleu import BleuScore, PairedResult

SUCCESS, USER_ERROR, INTERRUPTED = 0, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: as on the command line, which they are by default.

    Returns:
        The exit status: 0, 2 for a user's mistake, 130 when interrupted.
    """
    args = build_parser().parse_args(arguments)
    try:
        args.run(args)
    except LMFusionError as error:
        print(f"lmfusion: error: {error}", file=sys.stderr)
        return USER_ERROR
    except KeyboardInterrupt:
        print("lmfusion: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader has seen enough (lmfusion inspect … | head -1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return SUCCESS


def build_parser() -> argparse.ArgumentParser:
    """All commands; each names the function that runs it by ``set_defaults(run=…)``."""
    parser = argparse.ArgumentParser(
        prog="lmfusion", description="Pretrained language models inside sequence-to-sequence models (fairseq plugin)."
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    _add_user_dir(commands)
    _add_inspect(commands)
    _add_average(commands)
    _add_export(commands)
    _add_score(commands)
    return parser


def _add_user_dir(commands: Any) -> None:
    text = 'print the folder for fairseq\'s --user-dir: fairseq-train --user-dir "$(lmfusion user-dir)" …'
    commands.add_parser("user-dir", help=text, description=text).set_defaults(run=user_dir)


def _add_inspect(commands: Any) -> None:
    text = "describe a checkpoint: kind, architecture, parameters, language models inside, mixing weights"
    parser = commands.add_parser("inspect", help=text, description=text)
    parser.add_argument("checkpoint", metavar="CKPT", help="checkpoint file of any fairseq model")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=inspect)


def _add_average(commands: Any) -> None:
    text = "average the weights of several checkpoints of one model"
    parser = commands.add_parser("average", help=text, description=text)
    parser.add_argument("checkpoints", metavar="CKPT", nargs="+", help="two checkpoints or more")
    parser.add_argument("--out", metavar="FILE", required=True, help="checkpoint to write")
    parser.set_defaults(run=average)


def _add_export(commands: Any) -> None:
    text = "write a checkpoint without its optimizer, for passing on"
    parser = commands.add_parser("export", help=text, description=text)
    parser.add_argument("checkpoint", metavar="CKPT", help="checkpoint file of any fairseq model")
    parser.add_argument("--out", metavar="FILE", required=True, help="checkpoint to write")
    parser.add_argument("--half", action="store_true", help="in half precision: half the size")
    parser.set_defaults(run=export)


def _add_score(commands: Any) -> None:
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


def user_dir(args: argparse.Namespace) -> None:
    """``lmfusion user-dir``"""
    import lmfusion

    print(lmfusion.USER_DIR)


def average(args: argparse.Namespace) -> None:
    """Average checkpoints."""
    from lmfusion import checkpoints

    checkpoints.average(args.checkpoints, args.out)
    print(f"wrote {args.out}, the average of {len(args.checkpoints)} checkpoints")


def export(args: argparse.Namespace) -> None:
    """Write a checkpoint for passing on."""
    from lmfusion import checkpoints

    checkpoints.export(args.checkpoint, args.out, half=args.half)
    print(f"wrote {args.out}, {os.path.getsize(args.out) / 1e6:.1f} MB")


def inspect(args: argparse.Namespace) -> None:
    """``lmfusion inspect CKPT [--json]``"""
    from rich.console import Console

    from lmfusion.inspection import inspect_checkpoint

    found = inspect_checkpoint(args.checkpoint)
    if args.json:
        print(json.dumps(found.to_dict(), indent=2))
    else:
        _show_inspection(found, Console(highlight=False, soft_wrap=True))


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


def _show_inspection(found: Inspection, console: Console) -> None:
    console.print(f"[bold]{found.kind}[/bold], architecture {found.architecture}")
    updates = "" if found.updates is None else f", after {found.updates:,} updates"
    console.print(f"{found.path}{updates}", markup=False)
    console.print(f"parameters   {found.total:>13,}")
    console.print(f"  trainable  {found.trainable:>13,}")
    console.print(f"  frozen     {found.frozen:>13,}")
    for lm in found.language_models:
        state = "frozen" if lm.frozen else "trained"
        console.print(f"{lm.side} side: {lm.kind}, {lm.fusion}, {lm.parameters:,} parameters, {state}")
        if lm.dictionary_hash:
            console.print(f"  dictionary {lm.dictionary_hash[:16]}…, LM as pretrained {str(lm.fingerprint)[:16]}…")
    for mix in found.mixes:
        console.print(f"{mix.side} side mixes its layers, gamma {mix.gamma:.3f}")
        largest = max(mix.shares.values())
        for name, share in mix.shares.items():
            console.print(f"  {name:<10} {share:6.1%} [cyan]{'█' * max(1, round(40 * share / largest))}[/cyan]")


if __name__ == "__main__":
    sys.exit(main())
