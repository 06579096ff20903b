#!/usr/bin/env python3
"""Build labelled sentences and pairs from Debian's package descriptions; needs apt, and a few minutes.

    python data-prep/debian/sentence_tasks.py --out my-tasks

writes section-*.tsv, synopsis-*.tsv and similarity-*.tsv (train, valid, test), counts.json and SHA256SUMS.
debian_corpus/labelled.py says what the labels are.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from debian_corpus import indices, labelled, output, pools
from debian_corpus.errors import exit_status


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="new folder for the tasks")
    parser.add_argument("--suite", help="e.g. bookworm (default: this system's release)")
    parser.add_argument("--mirror", help="archive address (default: the one in this machine's apt sources)")
    parser.add_argument("--indices", type=Path, help="read the indices from this folder of apt lists, without apt")
    parser.add_argument("--plain", action="store_true", help="write plain text rather than .xz")
    return parser.parse_args(argv)


def build(args: argparse.Namespace) -> None:
    """Everything, from the indices to the folder."""
    with output.whole_folder(args.out) as folder, tempfile.TemporaryDirectory(prefix="debian-indices-") as fetched:
        lists = args.indices
        if lists is None:
            print("fetching the indices with apt ...", file=sys.stderr)
            indices.fetch(args.suite, "de", "main", args.mirror, Path(fetched))
            lists = Path(fetched) / "lists"
        found = indices.read(lists, "de", "main")
        files, dropped = labelled.files(found.packages, found.english)
        provenance = {
            "release": found.release,
            "indices": {name: digest for name, digest in found.checksums.items() if "Translation-de" not in name},
            "seed": pools.SEED,
            "dropped_near_training_text": dropped,
        }
        output.write(folder, files, provenance, args.plain)


def main(argv: list[str] | None = None) -> int:
    """Exit status 0, or 1 after one clear message."""
    args = arguments(argv)
    status = exit_status("sentence_tasks.py", lambda: build(args), args.out)
    if status == 0:
        print(f"{args.out}: done", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
