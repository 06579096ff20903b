"""Split tokenized text into BPE symbols with a sentencepiece model, as fairseq's `--bpe sentencepiece` does.

python data-prep/encode_bpe.py --model spm.model --input train.tok.de --output train.bpe.de
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import sentencepiece

from lmfusion.text import line_map, textio
from lmfusion.text.learn_bpe import load_processor

_processor: sentencepiece.SentencePieceProcessor


def prepare_worker(model: str) -> None:
    """Read the model once in each process."""
    global _processor
    _processor = load_processor(Path(model))


def encode_chunk(lines: list[str]) -> list[str]:
    """Encode lines with this process's model."""
    return [" ".join(_processor.encode(line, out_type=str)) for line in lines]


def encode_file(source: Path, target: Path, model: Path, workers: int | None = None) -> None:
    """Encode `source` into `target`, line by line.

    Raises:
        DataError: missing file, not a sentencepiece model, a line that is not UTF-8, or `target` is one of the two.
        OSError: `target` cannot be written.
    """
    textio.refuse_overwriting(target, [source, model])
    load_processor(model)  # a bad model is one error here, not one in each process
    encoded = line_map.map_lines(
        encode_chunk,
        textio.read_lines(source),
        textio.count_lines(source),
        f"encoding {source.name}",
        workers,
        prepare_worker,
        (str(model),),
    )
    with textio.writing(target) as stream:
        stream.writelines(line + "\n" for line in encoded)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", type=Path, required=True, help="sentencepiece model")
    parser.add_argument("--input", type=Path, required=True, help="tokenized UTF-8 text")
    parser.add_argument("--output", type=Path, required=True, help="text in BPE symbols")
    parser.add_argument("--workers", type=int, help="processes (default: all cores)")
    args = parser.parse_args()
    encode_file(args.input, args.output, args.model, args.workers)


if __name__ == "__main__":
    sys.exit(textio.run_command(main))
