"""fairseq-generate's output -> plain text in the order of the data set, and its score into the run folder.

    python -m lmfusion.runs.hypotheses RUN --reference test.de
    python -m lmfusion.runs.hypotheses RUN --reference test.synopsis --metric rouge

reads RUN/generate.log and writes RUN/test.hyp and RUN/scores.json.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Union

from lmfusion.errors import UserError, describe_os_error
from lmfusion.runs import provenance
from lmfusion.runs.run_folder import RunFolder
from lmfusion.scoring import bleu, generate_output, rouge
from lmfusion.scoring.text_files import read_lines

BLEU, ROUGE = "bleu", "rouge"
Score = Union[bleu.BleuScore, rouge.RougeScore]


def score_run(
    run: RunFolder,
    reference: Path,
    step: str = "generate",
    data_set: str = "test",
    metric: str = BLEU,
    sentence_marker: str | None = None,
    source: Path | None = None,
) -> Score:
    """Write a run's hypotheses as text and their score to scores.json.

    Args:
        data_set: name of the test set, which scores and hypotheses are kept under.
        metric: "bleu" (with chrF) for translations, "rouge" for summaries.
        sentence_marker: for ROUGE: what stands between the sentences of a line; None if a line is one sentence.
        source: raw source text, only to be named in scores.json for those who show translations.

    Raises:
        UserError: hypotheses are missing, or files are.
    """
    references = read_lines(reference)
    hypotheses = _read_hypotheses(run.log(step), reference, len(references))
    output = _write_lines(run.path / f"{data_set}.hyp", hypotheses)
    score: Score
    if metric == ROUGE:
        score = rouge.score(hypotheses, references, sentence_marker)
    else:
        score = bleu.score(hypotheses, references)
    run.add_score(
        data_set,
        {
            **score.to_dict(),
            "hypotheses": output.name,
            **_named("reference", reference),
            **(_named("source", source) if source else {}),
        },
    )
    return score


def _read_hypotheses(log: Path, reference: Path, expected: int) -> list[str]:
    """A generation's output in the order of the data, one for each line of the reference."""
    generated = generate_output.read(log)
    if generated.ids != list(range(expected)):
        raise UserError(
            f"{log} has hypotheses for {len(generated.ids):,} sentences, but {reference} has {expected:,} lines. "
            "Generate again from the data that were prepared together with it, without leaving out long sentences."
        )
    return generated.hypotheses


def _write_lines(path: Path, lines: list[str]) -> Path:
    """Write a text file that is whole at every moment."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return partial.replace(path)


def _named(name: str, path: Path) -> dict[str, str]:
    return {name: str(path), f"{name}_sha256": provenance.hash_file(path)}


def _in_short(score: Score) -> str:
    if isinstance(score, bleu.BleuScore):
        return f"BLEU {score.bleu:.2f}"
    return "ROUGE-1/2/L " + "/".join(f"{100 * score.means[metric].f1:.2f}" for metric in rouge.METRICS)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m lmfusion.runs.hypotheses", description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="run folders with a generate.log")
    parser.add_argument("--reference", type=Path, required=True, help="raw reference text")
    parser.add_argument("--source", type=Path, help="raw source text, for reports that show translations")
    parser.add_argument("--data-set", default="test", metavar="NAME", help="name of the test set (default: test)")
    parser.add_argument("--step", default="generate", help="step whose log holds the hypotheses (default: generate)")
    parser.add_argument("--metric", choices=(BLEU, ROUGE), default=BLEU, help="%(default)s by default")
    parser.add_argument("--sentence-marker", metavar="TEXT", help="for ROUGE: between the sentences of a line")
    args = parser.parse_args()
    if args.sentence_marker is not None and args.metric != ROUGE:
        parser.error("--sentence-marker goes with --metric rouge: BLEU does not look at sentences within a line")
    try:
        for path in args.runs:
            score = score_run(
                RunFolder(path),
                args.reference,
                step=args.step,
                data_set=args.data_set,
                metric=args.metric,
                sentence_marker=args.sentence_marker,
                source=args.source,
            )
            print(f"  {path.name}: {_in_short(score)}  {score.signature}")
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {describe_os_error(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
