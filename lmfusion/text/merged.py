"""Binarized text of several languages in one folder, for models that are pretrained on all of them at once.

python -m lmfusion.text.merged DATA/lm.en DATA/lm.de --out DATA/both
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from fairseq.data.indexed_dataset import MMapIndexedDataset, MMapIndexedDatasetBuilder

from lmfusion.text import textio
from lmfusion.text.binarize import making_folder
from lmfusion.text.dictionaries import read_dictionary

DICTIONARY = "dict.txt"
SPLITS = ("train", "valid")


def merge(folders: Sequence[Path], out: Path) -> dict[str, int]:
    """Write the sentences of several folders behind each other into one.

    Args:
        folders: made by ``fairseq-preprocess --only-source``, with the same symbols.
        out: folder to make.

    Returns:
        The number of sentences of each split.

    Raises:
        DataError: if a file is missing, dictionaries differ, or their sizes made fairseq choose another type of number.
    """
    _check_same_symbols(folders)
    counts = {}
    with making_folder(out) as work:
        for split in SPLITS:
            indices = [_index(folder / split) for folder in folders]
            builder = MMapIndexedDatasetBuilder(str(work / f"{split}.bin"), dtype=indices[0].dtype)
            for folder, index in zip(folders, indices):
                if index.dtype != indices[0].dtype:
                    raise textio.DataError(f"{folder / split}.idx: its numbers are of another type: binarize it again.")
                builder.merge_file_(str(folder / split))
            builder.finalize(str(work / f"{split}.idx"))
            counts[split] = sum(map(len, indices))
        shutil.copyfile(folders[0] / DICTIONARY, work / DICTIONARY)
    return counts


def _check_same_symbols(folders: Sequence[Path]) -> None:
    first, *others = ((folder / DICTIONARY, read_dictionary(folder / DICTIONARY).symbols) for folder in folders)
    for path, symbols in others:
        if symbols != first[1]:
            raise textio.DataError(
                f"{path} has other symbols than {first[0]}: one model needs one dictionary. Prepare the data with a "
                f"BPE that both sides share."
            )


def _index(prefix: Path) -> MMapIndexedDataset.Index:
    path = prefix.with_name(f"{prefix.name}.idx")
    if not path.is_file() or not prefix.with_name(f"{prefix.name}.bin").is_file():
        raise textio.DataError(f"{prefix}: there is no such text; fairseq-preprocess --only-source makes it.")
    return MMapIndexedDataset.Index(str(path))


def main() -> None:
    """Write the folder, and say what it has; where it is already, leave it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER", help="folders of binarized text")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write; kept if it is there")
    args = parser.parse_args()
    if not args.out.exists():
        counts = merge(args.folders, args.out)
        print(f"{args.out}: " + ", ".join(f"{split} {count:,} sentences" for split, count in counts.items()))


if __name__ == "__main__":
    sys.exit(textio.run_command(main))
