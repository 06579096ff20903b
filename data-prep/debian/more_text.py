#!/usr/bin/env python3
"""More monolingual text for the language models: manual pages, handbooks and message catalogs that Debian ships.

    python data-prep/debian/more_text.py --out more-text

writes mono.more.{en,de}.xz, counts.json (packages, versions, checksums, licences, what was left out) and SHA256SUMS.
The packages of more_text.tsv are fetched by apt into a temporary folder, checked and read; none is installed. Nothing
of what is written is a near-duplicate of a validation or test text of --corpus, and no package of a held-out family is
read. Language models train on it by `prepare.py --more-text`, or MORE_TEXT=more-text bash recipes/pretrain_longer.sh.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check_split import language, read_corpus
from debian_corpus import debs, more, output
from debian_corpus.errors import CorpusError, exit_status
from debian_corpus.text import count_words

HERE = Path(__file__).resolve().parent


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="new folder for the text")
    parser.add_argument("--lang", default="de", help="the language beside English (default: de)")
    parser.add_argument("--corpus", type=Path, default=HERE / "en-de", help="corpus it goes with, of build.py")
    parser.add_argument("--packages", type=Path, metavar="FOLDER", help="take the .deb files from here, without apt")
    parser.add_argument("--table", type=Path, default=HERE / "more_text.tsv", help="which packages (more_text.tsv)")
    parser.add_argument("--any-version", action="store_true", help="take other versions than those of the table")
    parser.add_argument("--plain", action="store_true", help="write plain text rather than .xz")
    return parser.parse_args(argv)


def corpus_lines(folder: Path, lang: str) -> tuple[more.Lines, more.Lines]:
    """The corpus' monolingual training text and all its held-out text, of both languages.

    Raises:
        CorpusError: the folder is no corpus of these languages.
    """
    files = read_corpus(folder)
    train: more.Lines = {}
    held: more.Lines = {}
    for spoken in ("en", lang):
        if f"mono.train.{spoken}" not in files:
            raise CorpusError(f"{folder} has no mono.train.{spoken}: give the --corpus of this --lang, by build.py")
        train[spoken] = files[f"mono.train.{spoken}"]
        names = [name for name in files if language(name) == spoken and "train" not in name.split(".")]
        held[spoken] = [line for name in names for line in files[name]]
    return train, held


def build(args: argparse.Namespace) -> None:
    """Everything, from the packages to the folder."""
    with output.whole_folder(args.out) as folder:
        train, held = corpus_lines(args.corpus, args.lang)
        rows = [row for row in debs.read_table(args.table) if row.speaks("en") or row.speaks(args.lang)]
        rows = more.allowed(rows)
        given = nullcontext(args.packages) if args.packages else tempfile.TemporaryDirectory(prefix="debian-packages-")
        with given as packages:
            if not args.packages:
                debs.download(rows, Path(packages))
            found = debs.find(rows, Path(packages), args.any_version)
            files, provenance = more.gather(found, train, held, args.lang)
        output.write(folder, files, {"languages": ["en", args.lang], **provenance}, args.plain)
    for name, lines in files.items():
        print(f"{args.out / name}: {len(lines):,} lines, {sum(map(count_words, lines)):,} words")


def main(argv: list[str] | None = None) -> int:
    """Exit status 0, or 1 after one clear message."""
    args = arguments(argv)
    return exit_status("more_text.py", lambda: build(args), args.out)


if __name__ == "__main__":
    sys.exit(main())
