"""Word vectors: every format reads to the same numbers, what is wrong is named by its line, a side gets its symbols."""

from __future__ import annotations

import gzip
import lzma
import random
import re
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.utils import parse_embedding

import lmfusion
from lmfusion.errors import InputError
from lmfusion.lm.loading import build, describe
from lmfusion.lm.static import StaticVectors
from lmfusion.lm.vector_files import read_vectors, recognize

WORDS = ["w3", "Straße", "</s>", "w0", "\u3000", "w7"]  # an ideographic space is no separator
WIDTH = 5


@pytest.fixture
def vectors() -> list[list[float]]:
    """Six vectors of five numbers that float32 holds exactly, as decimal text does."""
    draw = random.Random(5)
    return [[draw.randint(-4000, 4000) / 1024 for _ in range(WIDTH)] for _ in WORDS]


def as_lines(vectors: list[list[float]], end: str = "") -> str:
    return "".join(f"{word} {' '.join(map(repr, row))}{end}\n" for word, row in zip(WORDS, vectors))


def as_binary(vectors: list[list[float]], end: bytes) -> bytes:
    records = (word.encode() + b" " + struct.pack(f"<{WIDTH}f", *row) + end for word, row in zip(WORDS, vectors))
    return f"{len(WORDS)} {WIDTH}\n".encode() + b"".join(records)


HEADER = f"{len(WORDS)} {WIDTH}\n"
FORMATS: dict[str, Any] = {
    "word2vec.txt": lambda vectors: (HEADER + as_lines(vectors)).encode(),
    "fasttext.vec": lambda vectors: (HEADER + as_lines(vectors, end=" ")).encode(),
    "dos.txt": lambda vectors: (HEADER + as_lines(vectors)).replace("\n", "\r\n").encode(),
    "glove.txt": lambda vectors: as_lines(vectors).encode(),
    "google.bin": lambda vectors: as_binary(vectors, b"\n"),
    "gensim.bin": lambda vectors: as_binary(vectors, b""),
    "wiki.vec.gz": lambda vectors: gzip.compress((HEADER + as_lines(vectors)).encode()),
    "wiki.bin.xz": lambda vectors: lzma.compress(as_binary(vectors, b"\n")),
}


@pytest.fixture(params=FORMATS)
def file(request: pytest.FixtureRequest, tmp_path: Path, vectors: list[list[float]]) -> Path:
    """The six vectors in every format."""
    path = tmp_path / request.param
    path.write_bytes(FORMATS[request.param](vectors))
    return path


def test_every_format_reads_to_the_same_words_and_numbers(file: Path, vectors: list[list[float]]) -> None:
    found = read_vectors(file)
    assert found.words == WORDS
    assert torch.equal(found.vectors, torch.tensor(vectors))


def test_fairseq_reads_the_same_numbers(tmp_path: Path) -> None:
    draw = random.Random(7)
    lines = [f"word{n} {' '.join(str(draw.gauss(0, 1)) for _ in range(8))}" for n in range(50)]
    path = tmp_path / "vectors.txt"
    path.write_text("50 8\n" + "\n".join(lines) + "\n", encoding="utf-8")
    theirs, ours = parse_embedding(str(path)), read_vectors(path)
    assert list(theirs) == ours.words
    assert torch.equal(torch.stack(list(theirs.values())), ours.vectors)


@pytest.mark.parametrize("binary", [False, True])
def test_files_of_gensim_are_read(tmp_path: Path, binary: bool) -> None:
    gensim = pytest.importorskip("gensim")
    model = gensim.models.KeyedVectors(vector_size=12)
    values = torch.randn(30, 12)
    model.add_vectors([f"wört{n}" for n in range(30)], values.numpy())
    model.save_word2vec_format(str(tmp_path / "vectors"), binary=binary)
    found = read_vectors(tmp_path / "vectors")
    assert found.words == model.index_to_key
    torch.testing.assert_close(found.vectors, values, rtol=0, atol=0)


def test_words_with_spaces_inside_stand_in_files_of_glove(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_text("the 0.5 1.5 2\n. . . 1 2 3\nat name@domain.com -1 0 1\n", encoding="utf-8")
    assert read_vectors(path).words == ["the", ". . .", "at name@domain.com"]


def test_loading_gives_one_frozen_state_and_fillers_for_missing_symbols(file: Path, vectors: list[list[float]]) -> None:
    lm = lmfusion.load_lm(file)
    assert isinstance(lm, StaticVectors)
    assert (lm.family, lm.num_states, lm.embed_dim, lm.state_dim) == ("static", 1, WIDTH, WIDTH)
    assert not any(parameter.requires_grad for parameter in lm.parameters())
    table = torch.tensor(vectors)
    rows = {symbol: lm.top_state(torch.tensor([[number]]))[0, 0] for number, symbol in enumerate(lm.symbols)}
    assert torch.equal(rows["w7"], table[5])
    assert torch.equal(rows["</s>"], table[2])
    assert rows["<s>"].eq(0).all()
    assert rows["<pad>"].eq(0).all()
    torch.testing.assert_close(rows["<unk>"], table.mean(0))
    assert torch.equal(
        lm.top_state(lm.encode("w3 Straße nowhere")), torch.stack([table[0], table[1], table.mean(0), table[2]])[None]
    )


def test_padding_is_zero_even_where_the_file_has_a_vector_for_it(tmp_path: Path) -> None:
    path = tmp_path / "vectors.vec"
    path.write_text("3 2\n<pad> 7 8\nw0 1 2\n<s> 3 4\n", encoding="utf-8")
    states = lmfusion.load_lm(path).top_state(torch.tensor([[0, 1, 4]]))[0]
    assert states.tolist() == [[3, 4], [0, 0], [1, 2]]  # <s>, <pad> and w0


@pytest.fixture
def lm(tmp_path: Path, vectors: list[list[float]]) -> Any:
    path = tmp_path / "vectors.vec"
    path.write_text(HEADER + as_lines(vectors), encoding="utf-8")
    return lmfusion.load_lm(path)


def test_a_side_gets_a_row_for_each_of_its_symbols_and_the_share_is_told(
    lm: Any, dictionary: Any, vectors: list[list[float]]
) -> None:
    table = torch.tensor(vectors)
    assert lm.serve(list(dictionary.symbols), what="the source dictionary") == 3 / 20  # w3, w0 and w7 of w0 … w19
    assert lm.symbols == dictionary.symbols
    weights = lm.token_embedding.weight
    assert weights.shape == (24, WIDTH)
    assert torch.equal(weights[dictionary.index("w7")], table[5])
    assert torch.equal(weights[dictionary.eos()], table[2])
    for missing in ("w1", "w19", "<unk>"):
        torch.testing.assert_close(weights[dictionary.index(missing)], table.mean(0))
    assert not weights.requires_grad
    lm.unfreeze()
    lm.top_state(torch.tensor([[dictionary.index("w1"), dictionary.pad()]])).sum().backward()
    touched = lm.token_embedding.weight.grad.abs().sum(1).nonzero().flatten().tolist()
    assert touched == [dictionary.index("w1")], "a symbol without a vector is trained by itself"


def test_a_model_that_serves_a_side_is_described_by_it(lm: Any, dictionary: Any) -> None:
    symbols = list(dictionary.symbols)
    lm.serve(symbols, what="the source dictionary")
    description = describe(lm, symbols)
    assert description == {"family": "static", "channels": WIDTH}
    copy = build(description, symbols)
    copy.load_state_dict(lm.state_dict())
    assert copy.serve(symbols, what="the source dictionary") == 1.0
    assert torch.equal(copy.token_embedding.weight, lm.token_embedding.weight)


def test_the_words_that_fill_a_dictionary_up_do_not_count_in_the_share(lm: Any) -> None:
    """fairseq's --padding-factor; no text has them."""
    fillers = [f"madeupword{number:04d}" for number in range(3)]
    assert lm.serve(["<s>", "<pad>", "</s>", "<unk>", "w3", "w7", *fillers], what="the source dictionary") == 1.0


def test_a_dictionary_of_other_words_is_refused(lm: Any) -> None:
    with pytest.raises(InputError, match=r"none of the 6 symbols of the target dictionary"):
        lm.serve(["<s>", "<pad>", "</s>", "<unk>", "one", "two"], what="the target dictionary")


BAD: dict[str, tuple[bytes, str]] = {
    "another width, fewer": (b"3 2\na 1 2\nb 1\nc 1 2\n", r"line 3: 1 numbers behind 'b', where .* has 2"),
    "another width, more": (b"3 2\na 1 2\nb 1 2\nc 1 2 3\n", r"line 4: 3 numbers behind 'c', where .* has 2"),
    "another width, no header": (b"a 1 2 3\nb 1 2 3\nc 1 2\n", r"line 3: 2 numbers behind 'c', where .* has 3"),
    "other than announced": (b"2 3\na 1 2\nb 1 2\n", r"line 2: 2 numbers behind 'a', where .* has 3"),
    "an empty line": (b"2 2\na 1 2\n\nb 1 2\n", r"line 3: 0 numbers"),
    "a word twice": (b"3 2\na 1 2\nb 1 2\na 3 4\n", r"line 4: 'a' has a vector already, in line 2"),
    "a word twice, no header": (b"a 1 2\nb 1 2\nb 3 4\n", r"line 3: 'b' has a vector already, in line 2"),
    "a NaN": (b"2 2\na 1 2\nb nan 2\n", r"line 3: the vector of 'b' has a number that is not finite"),
    "infinite": (b"2 2\na 1 2\nb 1 -inf\n", r"line 3: the vector of 'b' has a number that is not finite"),
    "beyond float32": (b"2 2\na 1 2\nb 1 1e39\n", r"line 3: the vector of 'b' has a number that is not finite"),
    "no number": (b"2 2\na 1 2\nb 1 x2\n", r"line 3: 'x2' is no number"),
    "no word": (b"2 2\na 1 2\n 1 2\n", r"line 3: a vector without a word"),
    "cut off": (b"3 2\na 1 2\nb 1 2\n", r"line 1, announces 3 vectors, but there are 2"),
    "more than announced": (b"1 2\na 1 2\nb 1 2\n", r"line 1, announces 1 vectors, but there are 2"),
    "no vectors": (b"0 2\n", r"has no vectors"),
    "no UTF-8": (b"2 2\na 1 2\n\xe4 1 2\n", r"line 3: not UTF-8"),
    "binary, cut off": (b"2 2\na " + struct.pack("<2f", 1, 2) + b"b \0\0", r"announces 2 vectors, but there are 1"),
    "binary, too long": (b"1 2\na " + 2 * struct.pack("<2f", 1, 2), r"goes on behind the 1 vectors"),
    "binary, a word twice": (b"2 2\n" + 2 * (b"a " + struct.pack("<2f", 1, 2)), r"vector 2: 'a' .* in vector 1"),
    "binary, a NaN": (b"1 2\na " + struct.pack("<2f", 1, float("nan")), r"vector 1: the vector of 'a'"),
    "binary, no UTF-8": (b"1 2\n\xe4 " + struct.pack("<2f", 1, 2), r"vector 1: its word is not UTF-8"),
    "huge, of nothing": (b"999999999999 999999\na " + b"\0" * 100, r"announces 999,999,999,999 vectors"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_by_line(tmp_path: Path, case: str) -> None:
    content, message = BAD[case]
    path = tmp_path / "vectors.vec"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"{re.escape(str(path))}.*{message}"):
        lmfusion.load_lm(path)


def test_a_binary_file_without_its_header_is_refused(tmp_path: Path, vectors: list[list[float]]) -> None:
    path = tmp_path / "vectors.bin"
    path.write_bytes(as_binary(vectors, b"\n").partition(b"\n")[2])
    with pytest.raises(InputError, match=re.escape(str(path))):
        lmfusion.load_lm(path)


def test_a_damaged_archive_is_refused(tmp_path: Path, vectors: list[list[float]]) -> None:
    path = tmp_path / "vectors.vec.gz"
    lines = "".join(f"v{n} {' '.join(map(repr, vectors[n % 6]))}\n" for n in range(5000))
    path.write_bytes(gzip.compress(f"5000 {WIDTH}\n{lines}".encode())[:-2000])
    with pytest.raises(InputError, match="decompressed"):
        lmfusion.load_lm(path)


def test_other_files_are_not_taken_for_vectors(tmp_path: Path, make_causal: Any, save_lm: Any) -> None:
    (tmp_path / "dict.en.txt").write_text("the 120\nof 80\n", encoding="utf-8")
    (tmp_path / "text.en").write_text("A sentence with 2 numbers 3 .\n", encoding="utf-8")
    (tmp_path / "empty.vec").touch()
    for path in (
        tmp_path / "dict.en.txt",
        tmp_path / "text.en",
        tmp_path / "empty.vec",
        tmp_path,
        save_lm(make_causal()),
    ):
        assert recognize(path) is None, path
