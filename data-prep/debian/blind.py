"""A blind test set to go beside a corpus of build.py: text that nothing was trained, chosen or tested on.

    python data-prep/debian/blind.py --out data-prep/debian/blind

writes help.{en,de}.xz (the help of LibreOffice, which is out of domain), counts.json and SHA256SUMS. Needs apt, and a
few minutes. No line is a near-duplicate of any line of the corpus, by the thresholds check_split.py uses.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check_split import language, read_corpus
from debian_corpus import blind, debs, output
from debian_corpus.errors import CorpusError, exit_status

HERE = Path(__file__).resolve().parent
HELP = ("libreoffice-help-en-us", "libreoffice-help-{lang}")


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="new folder for the test set")
    parser.add_argument("--lang", default="de", help="the language beside English (default: de)")
    parser.add_argument("--corpus", type=Path, default=HERE / "en-de", help="corpus it goes with, of build.py")
    parser.add_argument("--size", type=int, default=1500, help="most pairs (default: 1500)")
    parser.add_argument("--packages", type=Path, metavar="FOLDER", help="take the .deb files from here, without apt")
    parser.add_argument("--table", type=Path, default=HERE / "more_text.tsv", help="versions (more_text.tsv)")
    parser.add_argument("--any-version", action="store_true", help="take other versions than those of the table")
    parser.add_argument("--plain", action="store_true", help="write plain text rather than .xz")
    return parser.parse_args(argv)


def known_lines(folder: Path, lang: str) -> blind.Lines:
    """Every line of a corpus by its language."""
    known: blind.Lines = {"en": [], lang: []}
    for name, lines in read_corpus(folder).items():
        if language(name) not in known:
            raise CorpusError(f"{folder} has {name}, and --lang is {lang}: give the --corpus of this --lang")
        known[language(name)] += lines
    return known


def help_packages(args: argparse.Namespace, download: Path) -> list[debs.Deb]:
    """The help packages of both languages, English first."""
    names = [name.format(lang=args.lang) for name in HELP]
    rows = {row.package: row for row in debs.read_table(args.table)}
    if missing := [name for name in names if name not in rows]:
        raise CorpusError(f"{args.table} does not list {missing[0]}: add its row")
    chosen = [rows[name] for name in names]
    if not args.packages:
        debs.download(chosen, download)
    return debs.find(chosen, args.packages or download, args.any_version)


def build(args: argparse.Namespace) -> None:
    """Everything, from the archive to the folder."""
    with output.whole_folder(args.out) as folder:
        known = known_lines(args.corpus, args.lang)
        with tempfile.TemporaryDirectory(prefix="debian-packages-") as download:
            packages = help_packages(args, Path(download))
            candidates = blind.help_pairs(*packages, args.lang)
        pairs = blind.draw(candidates, known, args.lang, args.size)
        files = {f"help.{side}": [pair[place] for pair in pairs] for place, side in enumerate(("en", args.lang))}
        listed = [
            {"package": deb.listed.package, "version": deb.version, "sha256": deb.sha256, "licence": deb.listed.licence}
            for deb in packages
        ]
        output.write(folder, files, {"packages": listed, "candidates": len(candidates)}, args.plain)
    print(f"{args.out}: {len(pairs):,} pairs of {len(candidates):,} candidates")


def main(argv: list[str] | None = None) -> int:
    """Exit status 0, or 1 after one clear message."""
    args = arguments(argv)
    return exit_status("blind.py", lambda: build(args), args.out)


if __name__ == "__main__":
    sys.exit(main())
