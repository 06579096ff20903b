"""A small file that would take much memory when it is read, copied or printed is refused before."""

from __future__ import annotations

import resource
import struct
import zipfile
import zlib
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from numpy._core import multiarray

from lmfusion import cli
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.errors import InputError

HUGE = 300_000_000
MEBIBYTE = 1 << 20


class Call:
    """Is stored as a call of a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def peak() -> int:
    """Bytes of memory that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def saved(path: Path, old_format: bool = False, **entries: Any) -> Path:
    """A checkpoint with further entries."""
    torch.save({"model": {"a": torch.ones(2)}, **entries}, path, _use_new_zipfile_serialization=not old_format)
    return path


CALLS = {
    "bytes": Call(bytearray, HUGE),
    "tensor": Call(torch.Tensor, HUGE),
    "tensor of a type": Call(torch.FloatTensor, HUGE),
    "storage": Call(torch.UntypedStorage, HUGE),
    "array": Call(np.ndarray, (HUGE,)),
    "array to be filled": Call(multiarray._reconstruct, np.ndarray, (HUGE,), b"d"),
    "number": Call(multiarray.scalar, np.dtype(f"V{HUGE}")),
    "type": Call(np.dtype, f"V{HUGE}"),
}


@pytest.mark.parametrize("old_format", [False, True], ids=["zip", "2019"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_memory_for_a_number_in_the_file(tmp_path: Path, call: Call, old_format: bool) -> None:
    path = saved(tmp_path / "small.pt", old_format, extra_state={"x": call})
    assert path.stat().st_size < 3000
    before = peak()
    for read in (read_checkpoint, checkpoint_utils.load_checkpoint_to_cpu):
        with pytest.raises(InputError, match=r"small\.pt"):
            read(str(path))
    assert peak() - before < 100 * MEBIBYTE


def entries(path: Path) -> dict[str, bytes]:
    """The files inside a checkpoint."""
    with zipfile.ZipFile(path) as archive:
        return {f"x/{entry.filename.partition('/')[2]}": archive.read(entry) for entry in archive.infolist()}


def in_capitals(path: Path, hidden: dict[str, bytes], _: dict[str, bytes]) -> None:
    """Write a file whose pickle has a name that torch, which does not look at capitals, takes for its own."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in hidden.items():
            archive.writestr(name.replace("data.pkl", "DATA.pkl"), content)


def of_two_tables(path: Path, hidden: dict[str, bytes], shown: dict[str, bytes]) -> None:
    """Write a file with two tables of contents: torch reads the one at the place it names, zipfile the last one."""
    length, body, tables = sum(46 + len(name) for name in hidden), b"", []
    for files, shift in ((hidden, 0), (shown, length)):
        tables.append(b"")
        for name, content in files.items():
            place, title = len(body) - shift & 0xFFFFFFFF, name.encode()
            about = struct.pack("<4x2HIII2H", 0, 33, zlib.crc32(content), len(content), len(content), len(title), 0)
            tables[-1] += b"PK\1\2\x14\0\x14\0" + about + struct.pack("<10xI", place) + title
            body += b"PK\3\4\x14\0" + about + title + content
    end = struct.pack("<4xHHIIH", len(hidden), len(hidden), length, len(body), 0)
    path.write_bytes(body + b"".join(tables) + b"PK\5\6" + end)


@pytest.mark.parametrize("write", [in_capitals, of_two_tables])
def test_the_pickle_that_counts_is_the_one_that_torch_reads(tmp_path: Path, write: Any) -> None:
    path = tmp_path / "small.pt"
    hidden = entries(saved(tmp_path / "hidden.pt", extra_state={"x": Call(bytearray, HUGE)}))
    write(path, hidden, entries(saved(tmp_path / "shown.pt", extra_state={"x": 5})))
    before = peak()
    with pytest.raises(InputError, match=r"small\.pt .* asks to run builtins\.bytearray"):
        read_checkpoint(path)
    assert peak() - before < 100 * MEBIBYTE
    harmless = entries(saved(tmp_path / "harmless.pt", extra_state={"x": 7}))
    write(path, harmless, entries(tmp_path / "shown.pt"))
    assert read_checkpoint(path)["extra_state"] == {"x": 7}, "the file is one that torch reads"


def test_what_torch_would_unpack_beyond_the_file_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = entries(saved(tmp_path / "whole.pt"))
    of_two_tables(tmp_path / "small.pt", whole, whole)
    content = bytearray((tmp_path / "small.pt").read_bytes())
    place = content.index(b"x/data/0", content.index(b"PK\1\2"))  # the weight's in the table that torch reads
    content[place - 36 : place - 34] = b"\x08\0"  # compressed
    content[place - 22 : place - 18] = (2**31 - 1).to_bytes(4, "little")  # to so many bytes
    (tmp_path / "small.pt").write_bytes(content)
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("torch reads it"))
    with pytest.raises(InputError, match=r"small\.pt"):
        read_checkpoint(tmp_path / "small.pt")


@pytest.mark.parametrize("claimed", [2**40, 2**62], ids=str)
@pytest.mark.parametrize("operation", [b"\x8d", b"\x8e", b"\x96"], ids=["text", "bytes", "array"])
def test_a_length_that_the_file_does_not_have(tmp_path: Path, operation: bytes, claimed: int) -> None:
    path = saved(tmp_path / "small.pt", old_format=True)
    magic = path.read_bytes().index(b"\x8a")  # of the first pickle: the protocol, then torch's number
    path.write_bytes(path.read_bytes()[:magic] + operation + claimed.to_bytes(8, "little") + b"abc")
    with pytest.raises(InputError, match=rf"small\.pt .* {claimed} "):
        read_checkpoint(path)


@pytest.mark.parametrize("module", ["numpy._core.multiarray", "numpy.core.multiarray"], ids=["2", "1"])
def test_meters_of_eval_bleu_are_read_whichever_numpy_wrote_them(tmp_path: Path, module: str) -> None:
    counts = {"array": np.arange(5) * 3, "number": np.float64(2.5), "int": np.int64(7), "bool": np.array([True, False])}
    counts |= {"short": np.arange(3, dtype=np.int32), "single": np.float32(0.5)}
    path = saved(tmp_path / "meters.pt", old_format=True, extra_state=counts)  # its pickle has no check sum
    path.write_bytes(path.read_bytes().replace(b"numpy._core.multiarray", module.encode()))
    assert module.encode() in path.read_bytes()
    found = read_checkpoint(path)["extra_state"]
    assert found["array"].tolist() == [0, 3, 6, 9, 12]
    assert found["array"].dtype == np.int64
    assert (found["number"], found["int"], found["bool"].tolist()) == (2.5, 7, [True, False])
    assert (found["short"].tolist(), found["short"].dtype, found["single"]) == ([0, 1, 2], np.int32, 0.5)


@pytest.mark.parametrize("old_format", [False, True], ids=["zip", "2019"])
def test_plain_values_of_every_kind_are_read(tmp_path: Path, old_format: bool) -> None:
    plain = {"set": {1, 2}, "ordered": OrderedDict(b=1, a=2), "bytes": b"\xff\0", "size": torch.Size([2, 3])}
    plain |= {"device": torch.device("cpu"), "type": torch.bfloat16, "none": None, "tuple": (1.5, True, "x")}
    assert read_checkpoint(saved(tmp_path / "plain.pt", old_format, extra_state=plain))["extra_state"] == plain


def views(storages: int, parts: int, elements: int) -> dict[str, torch.Tensor]:
    """Tensors of which many are the same memory."""
    there = [torch.zeros(elements) for _ in range(storages)]
    return {f"{number}.{part}": there[number].view(-1) for number in range(storages) for part in range(parts)}


def test_many_tensors_of_one_storage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is as large as what is stored; a copy of each would take 4 GB."""
    path, out = tmp_path / "small.pt", tmp_path / "out.pt"
    torch.save({"model": views(1, 1000, 1_000_000)}, path)
    before = peak()
    for words in (["inspect"], ["average", str(path), "--out", str(out)], ["export", "--half", "--out", str(out)]):
        assert cli.main([words[0], str(path), *words[1:]]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "small.pt" in error
    assert not out.exists()
    assert peak() - before < 100 * MEBIBYTE


def test_weights_that_are_tied_are_taken(tmp_path: Path) -> None:
    """Embeddings at three places, and a small model with one layer at a hundred."""
    torch.save({"model": views(5, 3, 10_000_000)}, tmp_path / "tied.pt")
    assert len(read_checkpoint(tmp_path / "tied.pt")["model"]) == 15
    torch.save({"model": views(9, 100, 10_000)}, tmp_path / "layers.pt")
    assert len(read_checkpoint(tmp_path / "layers.pt")["model"]) == 900
