"""Text in the pieces of a Hugging Face model, and the file that prepared text keeps of its tokenizer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from lmfusion.errors import InputError
from lmfusion.text import line_map, textio
from lmfusion.text.huggingface import PieceTokenizer

_tokenizer: PieceTokenizer


def read_sides(folders: Mapping[str, Path], target: str) -> dict[str, PieceTokenizer]:
    """Read the tokenizers of the sides' models.

    Args:
        folders: of the models, by the side's name.
        target: name of the target side, whose pieces have to become text again as it was.

    Raises:
        InputError: if one cannot be read, or the target's turns capitals into small letters.
    """
    found = {side: PieceTokenizer.from_folder(folder) for side, folder in folders.items()}
    if target in found and not found[target].keeps_case:
        raise InputError(
            f"--tgt-hf {folders[target]}: its tokenizer turns capitals into small letters, which a target cannot get "
            f"back: give a model that keeps case (cased)."
        )
    return found


def write_pieces(tokenizer: PieceTokenizer, path: Path, dictionary: Path) -> None:
    """Write a tokenizer as one file, and fairseq's dictionary of its pieces; the tokenizer comes last."""
    with textio.writing(dictionary) as stream:
        stream.write(tokenizer.dictionary_text())
    with textio.writing(path) as stream:
        json.dump(tokenizer.to_values(), stream)


def read_pieces(path: str | Path) -> PieceTokenizer:
    """Read a tokenizer from a file of :func:`write_pieces`.

    Raises:
        InputError: if there is none, or it is damaged.
    """
    try:
        return PieceTokenizer.from_values(json.loads(Path(path).read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is damaged ({error}): run lmfusion data again, into a new folder.") from error


def prepare_worker(path: str) -> None:
    """Read the tokenizer once in each process."""
    global _tokenizer
    _tokenizer = read_pieces(path)


def encode_chunk(lines: list[str]) -> list[str]:
    """Encode lines with this process's tokenizer."""
    return [" ".join(_tokenizer.encode(line)) for line in lines]


def encode_file(source: Path, target: Path, pieces: Path, workers: int | None = None) -> None:
    """Encode the raw text `source` into `target`, line by line, with the tokenizer in the file `pieces`.

    Raises:
        DataError: missing file, or a line that is not UTF-8.
        InputError: `pieces` is damaged.
        OSError: `target` cannot be written.
    """
    textio.refuse_overwriting(target, [source, pieces])
    total = textio.count_lines(source)
    settings = (workers, prepare_worker, (str(pieces),))
    encoded = line_map.map_lines(encode_chunk, textio.read_lines(source), total, f"encoding {source.name}", *settings)
    with textio.writing(target) as stream:
        stream.writelines(line + "\n" for line in encoded)
