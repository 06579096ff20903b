"""Learn one joint BPE (sentencepiece) on tokenized text of all languages, and fairseq's dictionary for it.

    python data-prep/learn_bpe.py --input mono.en mono.de --size 4000 --model spm.model --dict dict.txt

SPEC §3: the BPE is learned on the monolingual text. The same input, size and seed give the same bytes, on any number of
cores and under any file name. The dictionary holds the model's symbols without <unk>, <s>, </s>: fairseq adds its own.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sentencepiece

from lmfusion.text import textio
from lmfusion.text.sentencepiece_errors import LOGGED, SPECIAL_SYMBOLS, SizeError, size_error

logger = logging.getLogger(__name__)
SAMPLE_LINES = 5_000_000
LONGEST_LINE = 1 << 30
"""Bytes, the most that sentencepiece allows: by default it leaves out lines of more than 4,192, such as articles."""
FAIRSEQ_SYMBOLS = frozenset(("<s>", "<pad>", "</s>", "<unk>"))


def sentences(paths: list[Path]) -> Iterator[str]:
    """Yield the non-empty lines of all files; a file is repeated to come nearest the longest one.

    Without that, a language with little text would be cut into letters by the merges of one with much.
    """
    sizes = [textio.count_lines(path) for path in paths]
    for path, size in zip(paths, sizes):
        for _ in range(round(max(sizes) / size) if size else 0):
            yield from (line for line in textio.read_lines(path) if line.strip())


def learn(paths: list[Path], size: int, seed: int = 1, words: tuple[str, ...] = (), required: str = "") -> bytes:
    """Learn a BPE of `size` symbols on all files together and return the model's bytes.

    Text is taken as it is (no Unicode normalization), so that decoding gives back what was encoded.

    Args:
        words: tokens that are symbols of their own, even if the text does not have them.
        required: characters that are symbols, too, even if the text has them hardly or not; besides these, it is those
            that make up 99.99% of the text.

    Raises:
        DataError: a file is missing, or the text is too small for so many symbols.
    """
    if next(sentences(paths), None) is None:
        raise textio.DataError(f"{', '.join(map(str, paths))}: no text to learn a BPE from")
    model = io.BytesIO()
    # A model holds its settings: one without this setting has other bytes than one where it is empty.
    more: dict[str, Any] = {"required_chars": required} if required else {}
    sentencepiece.set_random_generator_seed(seed)
    try:
        with _warnings_logged():
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=sentences(paths),
                model_writer=model,
                model_type="bpe",
                vocab_size=size + SPECIAL_SYMBOLS,
                character_coverage=0.9999,
                user_defined_symbols=[f"\u2581{word}" for word in words],
                normalization_rule_name="identity",
                input_sentence_size=SAMPLE_LINES,
                max_sentence_length=LONGEST_LINE,
                shuffle_input_sentence=True,
                num_threads=1,
                minloglevel=1,
                **more,
            )
    except RuntimeError as error:
        raise size_error(paths, size, str(error)) from error
    return model.getvalue()


def learn_up_to(
    paths: list[Path], size: int, seed: int = 1, words: tuple[str, ...] = (), required: str = ""
) -> tuple[bytes, int]:
    """Learn a BPE of `size` symbols, or of as many as the text has; return the model's bytes and their number.

    Raises:
        DataError: see `learn`.
    """
    try:
        return learn(paths, size, seed, words, required), size
    except SizeError as error:
        if error.possible is None or not 0 < error.possible < size:
            raise
        return learn(paths, error.possible, seed, words, required), error.possible


@contextmanager
def _warnings_logged() -> Iterator[None]:
    """Log what sentencepiece's C++ code writes to standard error, unless it fails: its error then says it all."""
    with tempfile.TemporaryFile() as stream:
        terminal = os.dup(2)
        os.dup2(stream.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)
        stream.seek(0)
        for match in LOGGED.finditer(stream.read().decode("utf-8", errors="replace")):
            logger.warning(f"sentencepiece: {match[1]}")


def load_processor(model: Path) -> sentencepiece.SentencePieceProcessor:
    """Read a sentencepiece model.

    Raises:
        DataError: the file is missing or is not a sentencepiece model.
    """
    if not model.is_file():
        raise textio.DataError(f"{model}: no such file")
    try:
        return sentencepiece.SentencePieceProcessor(model_file=str(model))
    except RuntimeError as error:
        raise textio.DataError(f"{model}: not a sentencepiece model ({error})") from error


def dictionary_symbols(processor: sentencepiece.SentencePieceProcessor) -> list[str]:
    """Return the model's symbols in order, without its own special ones.

    Raises:
        DataError: a symbol that fairseq keeps for itself, or one its dictionary format cannot hold.
    """
    ids = range(processor.get_piece_size())
    symbols = [processor.id_to_piece(i) for i in ids if not (processor.is_control(i) or processor.is_unknown(i))]
    bad = [s for s in symbols if s in FAIRSEQ_SYMBOLS or s.split() != [s]]
    if bad:
        raise textio.DataError(
            f"the BPE has symbols fairseq cannot hold: {bad}. Tokenize the text (tokenize_text.py) "
            f"before learning the BPE."
        )
    return symbols


def write_dictionary(model: Path, path: Path) -> int:
    """Write fairseq's dict.txt for a sentencepiece model; return the number of symbols.

    Raises:
        DataError: see `load_processor` and `dictionary_symbols`.
    """
    symbols = dictionary_symbols(load_processor(model))
    with textio.writing(path) as stream:
        stream.writelines(f"{symbol} 1\n" for symbol in symbols)
    return len(symbols)


def check_dictionary(model: Path, dictionary: Path, given_model: Path | None, given_dictionary: Path | None) -> None:
    """Check that dictionary and BPE belong together.

    Args:
        model: sentencepiece model.
        dictionary: fairseq's dictionary.
        given_model: where the model comes from, for messages; None: it was learned.
        given_dictionary: the same of the dictionary.

    Raises:
        DataError: they do not; names the first symbol that differs.
    """
    symbols = dictionary_symbols(load_processor(model))
    listed = [line.rsplit(" ", 1)[0] for line in textio.read_lines(dictionary)]
    for number in range(max(len(symbols), len(listed))):
        ours, theirs = symbols[number : number + 1], listed[number : number + 1]
        if ours != theirs:
            raise textio.DataError(
                f"{given_dictionary or dictionary}, line {number + 1}: the dictionary has {theirs or 'no symbol'} "
                f"where the BPE {given_model or model} has {ours or 'none'}. Give the --dict that was written with "
                f"this --spm, and delete {model} and {dictionary}."
            )


def learn_to_files(
    paths: list[Path],
    size: int,
    seed: int,
    model: Path,
    dictionary: Path,
    words: tuple[str, ...] = (),
    *,
    required: str = "",
    fewer: bool = False,
) -> int:
    """Learn a BPE and write model and dictionary; the model comes last, so it implies both.

    Args:
        words: see `learn`.
        required: see `learn`.
        fewer: learn as many symbols as the text has where it has fewer than `size`.

    Returns:
        The number of symbols.

    Raises:
        DataError: see `learn`; or an output is an input.
    """
    for output in (model, dictionary):
        textio.refuse_overwriting(output, paths)
    partial = textio.partial_name(model)
    model.parent.mkdir(parents=True, exist_ok=True)
    try:
        if fewer:
            learned, size = learn_up_to(paths, size, seed, words, required)
        else:
            learned = learn(paths, size, seed, words, required)
        partial.write_bytes(learned)
        write_dictionary(partial, dictionary)
        partial.replace(model)
    finally:
        partial.unlink(missing_ok=True)
    return size


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--input", type=Path, nargs="+", required=True, help="tokenized text")
    parser.add_argument("--size", type=int, required=True, help="symbols, e.g. 37000")
    parser.add_argument("--seed", type=int, default=1, help="for sampling huge inputs (default: 1)")
    parser.add_argument("--model", type=Path, required=True, help="sentencepiece model to write")
    parser.add_argument("--dict", type=Path, required=True, help="fairseq dictionary to write")
    args = parser.parse_args()
    learn_to_files(args.input, args.size, args.seed, args.model, args.dict)


if __name__ == "__main__":
    sys.exit(textio.run_command(main))
