"""fairseq-generate's output -> plain text in the order of the data set, and its score into the run folder.

    python -m lmfusion.runs.hypotheses RUN --reference test.de
    python -m lmfusion.runs.hypotheses RUN --reference test.synopsis --metric rouge

reads RUN/generate.log and writes RUN/test.hyp and RUN/scores.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union

from lmfusion.checkpoint.atomic_files import replacing
from lmfusion.errors import InputError, exit_status
from lmfusion.runs import provenance
from lmfusion.runs.run_folder import RunFolder
from lmfusion.scoring import bleu, generate_output, rouge, unicode_words
from lmfusion.scoring.bleu_metric import tokenizer_for
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
    target_lang: str = "",
) -> Score:
    """Write a run's hypotheses as text and their score to scores.json, and return the score.

    Args:
        reference: raw reference text, a sentence or summary a line.
        step: the step whose log holds the hypotheses.
        data_set: name of the test set, which scores and hypotheses are kept under.
        metric: "bleu" (with chrF) for translations, "rouge" for summaries.
        sentence_marker: for ROUGE: what stands between the sentences of a line; None if a line is one sentence.
        source: raw source text, only to be named in scores.json for those who show translations.
        target_lang: code of the hypotheses' language, which says how BLEU tokenizes; other names do no harm.

    Raises:
        InputError: hypotheses are missing, or files are.
    """
    references = read_lines(reference)
    log = run.log(step)
    generated = generate_output.read(log)
    expected = len(references)
    if generated.ids != list(range(expected)):
        raise InputError(
            f"{log} has hypotheses for {len(generated.ids):,} sentences, which are not the {expected:,} lines of "
            f"{reference}. Generate again from the data that were prepared together with it, without leaving out long "
            f"sentences."
        )
    output = run.file(f"{data_set}.hyp")
    with replacing(output) as stream:
        stream.write("".join(line + "\n" for line in generated.hypotheses).encode())
    score: Score
    if metric == ROUGE:
        words = unicode_words.kind_of(references)
        score = rouge.score(generated.hypotheses, references, sentence_marker, words=words)
    else:
        score = bleu.score(generated.hypotheses, references, tokenizer=tokenizer_for(target_lang))
    entry: dict[str, Any] = {**score.to_dict(), "hypotheses": output.name}
    for name, path in {"reference": reference, **({"source": source} if source else {})}.items():
        entry.update({name: str(path), f"{name}_sha256": provenance.hash_file(path)})
    run.add_score(data_set, entry)
    return score


def headline(entry: Mapping[str, Any]) -> dict[str, float]:
    """Return the figures of an entry of scores.json that a table shows, 0..100: BLEU and chrF, or F1 of ROUGE.

    Raises:
        KeyError, TypeError: the entry is half-written.
    """
    if "bleu" in entry:
        return {"BLEU": entry["bleu"], "chrF": entry["chrf"]}
    return {rouge.HEADINGS[name]: 100 * entry[name]["f1"]["mean"] for name in rouge.METRICS if name in entry}


def main() -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m lmfusion.runs.hypotheses", description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="run folders with a generate.log")
    parser.add_argument("--reference", type=Path, required=True, help="raw reference text")
    parser.add_argument("--source", type=Path, help="raw source text, for reports that show translations")
    parser.add_argument("--data-set", default="test", metavar="NAME", help="name of the test set (default: test)")
    parser.add_argument("--step", default="generate", help="step whose log holds the hypotheses (default: generate)")
    parser.add_argument("--metric", choices=(BLEU, ROUGE), default=BLEU, help="%(default)s by default")
    parser.add_argument("--target-lang", default="", metavar="LANG", help="of the hypotheses: how BLEU finds words")
    parser.add_argument("--sentence-marker", metavar="TEXT", help="for ROUGE: between the sentences of a line")
    args = vars(parser.parse_args())
    if args["sentence_marker"] is not None and args["metric"] != ROUGE:
        parser.error("--sentence-marker goes with --metric rouge: BLEU does not look at sentences within a line")
    return exit_status(lambda: _score_and_print(args.pop("runs"), args))


def _score_and_print(runs: list[Path], options: dict[str, Any]) -> None:
    for path in runs:
        score = score_run(RunFolder(path), **options)
        figures = {metric: f"{value:.2f}" for metric, value in headline(score.to_dict()).items()}
        if options["metric"] == BLEU:
            shown = ", ".join(f"{metric} {figure}" for metric, figure in figures.items())
        else:
            shown = f"ROUGE-1/2/L {'/'.join(figures.values())}"
        print(f"  {path.name}: {shown}  {score.signature}")


if __name__ == "__main__":
    sys.exit(main())
