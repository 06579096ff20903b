"""fairseq-generate's output -> plain text in the order of the data set, and its score into the run folder.

    python -m lmfusion.report.hypotheses RUN --reference test.de

reads RUN/generate.log and writes RUN/test.hyp and RUN/scores.json.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lmfusion.errors import UserError
from lmfusion.report import provenance
from lmfusion.report.run_folder import RunFolder
from lmfusion.scoring import bleu, generate_output
from lmfusion.scoring.text_files import read_lines


def score_run(run: RunFolder, reference: Path, step: str = "generate", data_set: str = "test") -> bleu.BleuScore:
    """Write a run's hypotheses as text and their score to scores.json.

    Raises:
        UserError: hypotheses are missing, or files are.
    """
    references = read_lines(reference)
    generated = generate_output.read(run.log(step))
    if generated.ids != list(range(len(references))):
        raise UserError(
            f"{run.log(step)} has translations of {len(generated.ids):,} sentences, but {reference} has "
            f"{len(references):,} lines. Generate again from the data that were prepared together with it, without "
            f"leaving out long sentences."
        )
    hypotheses = generated.hypotheses
    output = run.path / f"{data_set}.hyp"
    partial = output.with_name(output.name + ".partial")
    partial.write_text("".join(line + "\n" for line in hypotheses), encoding="utf-8")
    partial.replace(output)
    score = bleu.score(hypotheses, references)
    run.add_score(
        data_set,
        {
            **score.to_dict(),
            "hypotheses": output.name,
            "reference_sha256": provenance.hash_file(reference),
        },
    )
    return score


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m lmfusion.report.hypotheses", description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="run folders with a generate.log")
    parser.add_argument("--reference", type=Path, required=True, help="raw reference text")
    args = parser.parse_args()
    try:
        for path in args.runs:
            score = score_run(RunFolder(path), args.reference)
            print(f"  {path.name}: BLEU {score.bleu:.2f}  {score.signature}")
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
