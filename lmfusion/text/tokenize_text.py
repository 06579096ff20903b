"""Moses tokenization of a text file, as fairseq's `--tokenizer moses` does it with the flags in tokenizer.flags.

    python data-prep/tokenize_text.py --lang de --input train.de --output train.tok.de

The language is that of the text. fairseq tokenizes what it is asked to translate in the source language and joins its
output in the target language, so text prepared here and raw text given to a trained model become the same tokens.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lmfusion.text import line_map, textio

if TYPE_CHECKING:
    from lmfusion.text.moses import MosesTokenizer

MOSES, NO_TOKENIZER = "moses", "none"
FLAGS_FILE = Path(__file__).with_name("tokenizer.flags")

_tokenizer: MosesTokenizer
_options: dict[str, bool]


def tokenizer_flags(path: Path = FLAGS_FILE) -> list[str]:
    """Return the fairseq flags of tokenizer.flags, as words of a command line."""
    lines = (line.split("#", 1)[0] for line in textio.read_lines(path))
    return [word for line in lines for word in line.split()]


def moses_options(flags: list[str]) -> dict[str, bool]:
    """Return what fairseq's flags mean in sacremoses' terms.

    Raises:
        DataError: a Moses flag this function does not know.
    """
    unknown = {flag for flag in flags if flag.startswith("--moses-")}
    unknown -= {"--moses-no-dash-splits", "--moses-no-escape"}
    if unknown or "moses" not in flags:
        raise textio.DataError(
            f"{FLAGS_FILE}: expected `--tokenizer moses` with --moses-no-dash-splits and "
            f"--moses-no-escape or without; found {' '.join(flags)}"
        )
    return {
        "aggressive_dash_splits": "--moses-no-dash-splits" not in flags,
        "escape": "--moses-no-escape" not in flags,
    }


def prepare_worker(lang: str, options: dict[str, bool]) -> None:
    """Make this process's tokenizer."""
    from lmfusion.text.moses import MosesTokenizer  # sacremoses takes half a second to be imported

    global _tokenizer, _options
    _tokenizer = MosesTokenizer(lang)
    _options = options


def tokenize_chunk(lines: list[str]) -> list[str]:
    """Tokenize lines with this process's tokenizer."""
    return [_tokenizer.tokenize(line.strip(), return_str=True, **_options) for line in lines]


def tokenize_file(source: Path, target: Path, lang: str, workers: int | None = None) -> None:
    """Tokenize `source` into `target`, line by line.

    Raises:
        DataError: missing file, a line that is not UTF-8, or `target` is `source`.
        OSError: `target` cannot be written.
    """
    textio.refuse_overwriting(target, [source])
    total = textio.count_lines(source)
    options = moses_options(tokenizer_flags())
    tokenized = line_map.map_lines(
        tokenize_chunk,
        textio.read_lines(source),
        total,
        f"tokenizing {source.name}",
        workers,
        prepare_worker,
        (lang, options),
    )
    with textio.writing(target) as stream:
        stream.writelines(line + "\n" for line in tokenized)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--lang", required=True, help="language code of the text, e.g. en")
    parser.add_argument("--input", type=Path, required=True, help="UTF-8 text, may be .xz or .gz")
    parser.add_argument("--output", type=Path, required=True, help="tokenized text")
    parser.add_argument("--workers", type=int, help="processes (default: all cores)")
    args = parser.parse_args()
    tokenize_file(args.input, args.output, args.lang, args.workers)


if __name__ == "__main__":
    sys.exit(textio.run_command(main))
