"""``lmfusion score``: generated text against references."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmfusion.commands import score_buckets, score_seeds
from lmfusion.commands.parsers import add_command
from lmfusion.commands.score_tokenizer import tokenizer_of_files
from lmfusion.errors import InputError

if TYPE_CHECKING:
    from lmfusion.scoring.bleu import BleuScore, PairedResult
    from lmfusion.scoring.rouge import RougeScore
    from lmfusion.scoring.rouge_significance import PairedRouge


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "score generated text"
    parser = add_command(commands, "score", text, "lmfusion score bleu --hyp out.de --ref test.de")
    metrics = parser.add_subparsers(title="metrics", metavar="METRIC", dest="metric", required=True)
    _add_bleu(metrics)
    _add_rouge(metrics)
    score_seeds.add(metrics)
    score_buckets.add(metrics)


def _add_bleu(metrics: Any) -> None:
    text = "BLEU and chrF of sacreBLEU, on detokenized text, with signatures"
    examples = (
        "lmfusion score bleu --hyp out.de --ref test.de --baseline baseline.de",
        "lmfusion score bleu --generate generate.log --detokenize de --test-set wmt18 --language-pair en-de",
    )
    parser = add_command(metrics, "bleu", text, *examples)
    _add_system(parser, "hypotheses, detokenized, one per line")
    parser.add_argument(
        "--ref", metavar="FILE", action="append", help="references, one per line; several times for several references"
    )
    parser.add_argument(
        "--test-set", metavar="NAME", help="instead of --ref: a test set that sacreBLEU knows and downloads (wmt18, …)"
    )
    parser.add_argument(
        "--language-pair",
        metavar="PAIR",
        help="en-zh, …: of --test-set; its target says how BLEU finds words (default: the ending of --ref, or spaces)",
    )
    _add_baseline(parser)
    parser.set_defaults(run=score_bleu)


def _add_rouge(metrics: Any) -> None:
    text = "ROUGE-1, -2 and -L of summaries, with a signature"
    example = 'lmfusion score rouge --hyp out.summary --ref test.summary --sentence-marker "<q>"'
    parser = add_command(metrics, "rouge", text, example)
    _add_system(parser, "summaries, detokenized, one per line")
    parser.add_argument("--ref", metavar="FILE", action="append", help="reference summaries, one per line")
    parser.add_argument(
        "--sentence-marker",
        metavar="TEXT",
        help="what stands between the sentences of a line (<q>, …); by default, a line is one sentence",
    )
    parser.add_argument(
        "--exceptions",
        metavar="FILE",
        action="extend",
        nargs="+",
        default=[],
        help="irregular words and their base forms in WordNet's format (noun.exc, …), which ROUGE-1.5.5.pl uses where "
        "its data base has them; none by default",
    )
    parser.add_argument(
        "--like",
        choices=("ROUGE-1.5.5", "rouge-score"),
        default="ROUGE-1.5.5",
        help="whose figures: those of the script ROUGE-1.5.5.pl -m -a -n 2 (default), or those of the Python package "
        "rouge-score with its stemmer and rougeLsum, which many later papers print",
    )
    _add_baseline(parser)
    parser.set_defaults(run=score_rouge)


def _add_system(parser: argparse.ArgumentParser, text: str) -> None:
    system = parser.add_mutually_exclusive_group(required=True)
    system.add_argument("--hyp", metavar="FILE", help=text)
    system.add_argument(
        "--generate",
        metavar="FILE",
        help="what fairseq-generate printed, or its generate-*.txt: put in order, its BPE removed",
    )
    parser.add_argument("--detokenize", metavar="LANG", help="undo Moses tokenization of --generate (de, en, …)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _add_baseline(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--baseline",
        "--paired",
        metavar="FILE",
        help="paired bootstrap test against this system; a file of the same kind as the system's",
    )


def score_bleu(args: argparse.Namespace) -> None:
    """Run ``lmfusion score bleu``: print BLEU and chrF2 (0..100), and the paired test if there is a baseline.

    Raises:
        InputError: if a file cannot be read, flags contradict each other, or numbers of sentences differ.
    """
    from lmfusion.scoring import bleu

    logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # no news of each step of the paired test
    name = _system_name(args)
    hypotheses, references = _read_bleu(args)
    pair = args.language_pair
    tokenizer = tokenizer_of_files(pair, args.ref or [], references, args.detokenize)
    score = bleu.score(hypotheses, references, args.test_set, pair, tokenizer)
    paired: list[PairedResult] = []
    if args.baseline:
        baseline = _read_baseline(args, name, len(hypotheses))
        systems = {name: hypotheses}
        paired = bleu.paired_bootstrap(baseline, systems, references, language_pair=pair, tokenizer=tokenizer)
    if args.json:
        print(json.dumps({**score.to_dict(), "paired": [result.to_dict() for result in paired]}, indent=2))
    else:
        _show_bleu(score, paired)


def _read_bleu(args: argparse.Namespace) -> tuple[list[str], list[list[str]]]:
    """Return hypotheses and references, the latter from files or of a test set that sacreBLEU knows."""
    from lmfusion.scoring.files import read_named_test_set, read_test_set

    _check_detokenize(args)
    if args.test_set and not args.language_pair:
        raise InputError("--test-set needs --language-pair: --test-set wmt18 --language-pair en-de")
    if not args.test_set:
        return read_test_set(args.hyp, args.generate, args.ref or [], args.detokenize)
    if args.ref:
        raise InputError("--test-set brings the references of its own: leave out --ref, or --test-set.")
    return read_named_test_set(args.hyp, args.generate, args.test_set, args.language_pair, args.detokenize)


def _read_baseline(args: argparse.Namespace, name: str, count: int) -> list[str]:
    from lmfusion.scoring.files import read_system

    baseline = read_system(args.baseline, bool(args.generate), args.detokenize)
    if len(baseline) != count:
        raise InputError(
            f"{args.baseline} has {len(baseline)} sentences, but {name} has {count}. "
            "Both have to be outputs for the same test set."
        )
    return baseline


def _system_name(args: argparse.Namespace) -> str:
    """Return the system's file name, as it stands beside "baseline" in the results."""
    name = str(args.generate or args.hyp)
    return f"./{name}" if name == "baseline" else name


def _check_detokenize(args: argparse.Namespace) -> None:
    if args.detokenize and not args.generate:
        raise InputError("--detokenize goes with --generate: the text of --hyp has to be detokenized already.")


def score_rouge(args: argparse.Namespace) -> None:
    """Run ``lmfusion score rouge``: print ROUGE-1, -2 and -L (0..100), and the paired test if there is a baseline.

    Raises:
        InputError: if a file cannot be read, flags contradict each other, or numbers of summaries differ.
    """
    from lmfusion.scoring import rouge, rouge_significance, unicode_words
    from lmfusion.scoring.files import read_test_set
    from lmfusion.scoring.irregular_words import read_exceptions

    _check_detokenize(args)
    if args.ref and len(args.ref) > 1:
        raise InputError(f"ROUGE compares with one reference per summary, but --ref is given {len(args.ref)} times.")
    hypotheses, (references,) = read_test_set(args.hyp, args.generate, args.ref or [], args.detokenize)
    marker = args.sentence_marker
    if marker and not any(marker in line for line in (*hypotheses, *references)):
        raise InputError(f"No hypothesis and no reference has the sentence marker {marker}. Check its spelling.")
    exceptions = read_exceptions(args.exceptions)
    how = exceptions, args.like, unicode_words.kind_of(references)
    score = rouge.score(hypotheses, references, marker, *how)
    paired: list[PairedRouge] = []
    if args.baseline:
        name = _system_name(args)
        systems = {name: hypotheses}
        baseline = _read_baseline(args, name, len(hypotheses))
        paired = rouge_significance.paired_bootstrap(baseline, systems, references, marker, *how)
    if args.json:
        print(json.dumps({**score.to_dict(), "paired": [result.to_dict() for result in paired]}, indent=2))
    else:
        _show_rouge(score, paired)


def _show_rouge(score: RougeScore, paired: Sequence[PairedRouge]) -> None:
    from lmfusion.scoring.rouge import HEADINGS

    print(f"{'':20}   mean   95% interval    mean of samples")
    for metric, name in HEADINGS.items():
        for measure, label in {"f1": "F1", "precision": "precision", "recall": "recall"}.items():
            mean, average = getattr(score.means[metric], measure), getattr(score.script_averages[metric], measure)
            low, high = getattr(score.intervals[metric], measure)
            print(
                f"{name if measure == 'f1' else '':9}{label:11}{100 * mean:7.3f}  "
                f"{100 * low:.3f}-{100 * high:.3f}   {100 * average:7.3f}"
            )
    count = len(score.per_pair)
    print(
        f"{count} summaries with {score.hypothesis_sentences / count:.2f} sentences each, "
        f"references {score.reference_sentences / count:.2f}"
    )
    print(score.signature)
    if paired:
        print(f"\nPaired bootstrap test (F1, mean ± 95% interval)  {paired[0].signature}")
    for result in paired:
        _show_paired(result.f1, result, f"{HEADINGS[result.metric]}  {result.name}")


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
        _show_paired(result.bleu, result, result.name)


def _show_paired(score: float, result: PairedResult | PairedRouge, label: str) -> None:
    p = "" if result.p_value is None else f"  p = {result.p_value:.4f}"
    print(f"  {score:6.2f}  {result.mean:6.2f} ± {result.ci:.2f}{p}  {label}")
