#!/usr/bin/env python3
"""Build a corpus from Debian's package descriptions and their translations; needs apt, and a few minutes.

    python data-prep/debian/build.py --lang de --out my-corpus

writes bitext (train/valid/test.{en,XX}), monolingual sentences (mono.train/valid.{en,XX}), the synopsis task
(synopsis.train/valid/test.{description,synopsis}), counts.json and SHA256SUMS.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from debian_corpus import indices, output, pools, split
from debian_corpus.entries import pair_entries
from debian_corpus.errors import CorpusError, exit_status


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lang", default="de", help="language Debian translates into, e.g. de, fr, ja (default: de)")
    parser.add_argument("--out", type=Path, required=True, help="new folder for the corpus")
    parser.add_argument("--suite", help="e.g. bookworm (default: this system's release)")
    parser.add_argument("--component", default="main", help="archive component (default: main)")
    parser.add_argument("--mirror", help="archive address (default: the one in this machine's apt sources)")
    parser.add_argument("--indices", type=Path, help="read the indices from this folder of apt lists, without apt")
    parser.add_argument("--plain", action="store_true", help="write plain text rather than .xz")
    return parser.parse_args(argv)


def load(args: argparse.Namespace) -> indices.Indices:
    """The indices, from a folder or by apt."""
    if args.indices:
        return indices.read(args.indices, args.lang, args.component)
    with tempfile.TemporaryDirectory(prefix="debian-indices-") as folder:
        print("fetching the indices with apt ...", file=sys.stderr)
        indices.fetch(args.suite, args.lang, args.component, args.mirror, Path(folder))
        return indices.read(Path(folder) / "lists", args.lang, args.component)


def build(args: argparse.Namespace) -> None:
    """Everything, from the indices to the folder."""
    with output.whole_folder(args.out) as folder:
        found = load(args)
        entries = pair_entries(found.packages, found.english, found.target, args.lang)
        if not any(entry.target_synopsis for entry in entries):
            raise CorpusError(f"no description has a translation into {args.lang!r}: are the indices of one suite?")
        corpus = split.make(pools.pools(entries, args.lang), args.lang)
        provenance = {
            "languages": ["en", args.lang],
            "release": found.release,
            "indices": found.checksums,
            "seed": pools.SEED,
            "descriptions": len(entries),
            "translated_descriptions": sum(entry.target_synopsis is not None for entry in entries),
        }
        output.write(folder, output.texts(corpus, args.lang), provenance, args.plain)


def main(argv: list[str] | None = None) -> int:
    """Exit status 0, or 1 after one clear message."""
    args = arguments(argv)
    try:
        status = exit_status("build.py", lambda: build(args), args.out)
    except UnicodeDecodeError as error:
        print(f"build.py: an index is not UTF-8 ({error}). Fetch it again.", file=sys.stderr)
        return 1
    if status == 0:
        print(f"{args.out}: done", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
