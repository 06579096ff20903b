#!/usr/bin/env python3
"""Table of BLEU and speed of translation models on one text, all in one process, one after the other.

python recipes/speed_table.py test.en test.de "baseline=runs/mine/baseline" "student, int8=fast:int8"
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import lmfusion
from lmfusion.scoring import bleu
from lmfusion.text.textio import read_lines

BEAM = 5


def translator(model: str) -> Callable[[list[str]], list[str]]:
    """Return what translates texts by a run's folder, a checkpoint, or a folder of CTranslate2, `:int8` behind it."""
    from lmfusion.inference import ctranslate
    from lmfusion.inference.translate_lines import Search, translate_lines

    folder, _, kind = model.partition(":")
    if ctranslate.is_folder(folder):
        fast = ctranslate.CTranslator(folder, int8=kind == "int8")
        return lambda lines: [found[0].text for found in fast.translate_lines(lines, Search(beam=BEAM))]
    slow = lmfusion.load_model(folder).float()
    return lambda lines: [found[0].text for found in translate_lines(slow, lines, Search(beam=BEAM))]


def main() -> None:
    """Translate, score, time, and print the table; a few lines are translated before the clock starts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="text to translate")
    parser.add_argument("reference", type=Path, help="its reference")
    parser.add_argument("models", nargs="+", metavar="NAME=MODEL", help="models, with the names of their rows")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the table to a file, too")
    args = parser.parse_args()
    lmfusion.install()
    sources, references = list(read_lines(args.source)), list(read_lines(args.reference))
    table = ["| model | BLEU | chrF | words/s | of the first |", "|---|---:|---:|---:|---:|"]
    first = 0.0
    for name, model in (word.split("=", 1) for word in args.models):
        translate = translator(model)
        translate(sources[:8])
        begun = time.perf_counter()
        hypotheses = translate(sources)
        speed = sum(len(line.split()) for line in hypotheses) / (time.perf_counter() - begun)
        first = first or speed
        score = bleu.score(hypotheses, references)
        table.append(f"| {name} | {score.bleu:.2f} | {score.chrf:.2f} | {speed:,.0f} | {speed / first:.2f} |")
        print(table[-1], flush=True)
    text = "\n".join(table) + f"\n\n{score.signature}, beam {BEAM}, {len(sources):,} sentences\n"
    print(text)
    if args.save:
        args.save.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
