"""Content that contains itself, or stands for far more than there is of it, is refused before it is copied."""

from __future__ import annotations

import io
import pickletools
import resource
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils

from lmfusion import cli
from lmfusion.checkpoint.nesting import check_nesting
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.errors import InputError

MEBIBYTE = 1 << 20


def peak() -> int:
    """Bytes of memory that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def saved(path: Path, old_format: bool = False, **entries: Any) -> Path:
    """A checkpoint with further entries."""
    torch.save({"model": {"a": torch.ones(2)}, **entries}, path, _use_new_zipfile_serialization=not old_format)
    return path


def itself(kind: type) -> Any:
    """A container in itself."""
    inner: Any = [] if kind is list else {} if kind is dict else Namespace()
    vars(inner).update(x=inner) if kind is Namespace else inner.append(inner) if kind is list else inner.update(x=inner)
    return inner


def doubled(times: int) -> Any:
    """A list twice in a list twice in a list …"""
    value: Any = ["x" * 100]
    for _ in range(times):
        value = [value, value]
    return value


def nested(times: int) -> Any:
    """A dictionary in a dictionary in a dictionary …"""
    value: Any = {}
    for _ in range(times):
        value = {"x": value}
    return value


NESTED = {
    "a list in itself": itself(list),
    "a dictionary in itself": itself(dict),
    "a namespace in itself": itself(Namespace),
    "lists twice in lists": doubled(40),
    "a long text at many places": ["x" * 100_000] * 1000,
    "a hundred levels": nested(150),
}
PLACES = {
    "model": lambda value: {"cfg": {"model": {"_name": "transformer_lm", "x": value}}},
    "unknown section": lambda value: {"cfg": {"x": value}},
    "args": lambda value: {"args": Namespace(arch="transformer", x=value)},
    "optimizer": lambda value: {"last_optimizer_state": {"x": value}},
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("value", NESTED.values(), ids=NESTED)
def test_content_without_end(tmp_path: Path, capsys: pytest.CaptureFixture[str], value: Any, place: Any) -> None:
    path = saved(tmp_path / "small.pt", **place(value))
    before = peak()
    for read in (read_checkpoint, checkpoint_utils.load_checkpoint_to_cpu):
        with pytest.raises(InputError, match=r"small\.pt is damaged"):
            read(str(path))
    assert cli.main(["inspect", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert peak() - before < 100 * MEBIBYTE


def test_content_of_a_usual_size_and_depth_is_taken() -> None:
    shared = {"betas": (0.9, 0.999)}
    check_nesting({"symbols": [f"w{number}" for number in range(50_000)], "zeros": [0] * 3_000_000})
    check_nesting({"groups": [shared] * 5000, "deep": nested(50), "twice": doubled(10)})


def doubled_pair(times: int) -> Any:
    """As doubled(), of what may be a key."""
    value: Any = ("x" * 100,)
    for _ in range(times):
        value = (value, value)
    return value


HIDDEN = {
    "a tuple": doubled_pair(17),
    "a key": {doubled_pair(17): 1},
    "a set": {doubled_pair(17)},
    "a set that stays": frozenset([doubled_pair(17)]),
    "a namespace": Namespace(a=doubled(17)),
    "bytes at many places": [bytes(100_000)] * 1000,
}


@pytest.mark.parametrize("value", HIDDEN.values(), ids=HIDDEN)
def test_what_stands_for_much_is_found_in_every_container(value: Any) -> None:
    with pytest.raises(ValueError, match=r"it is [\d,]+ values and characters, written out"):
        check_nesting({"extra_state": [value]})


def test_one_hundred_levels_are_the_most() -> None:
    check_nesting(nested(100))
    with pytest.raises(ValueError, match="more than 100 times"):
        check_nesting(nested(101))


@pytest.mark.parametrize(
    "value",
    ["x" * 1000, [0] * 1000, ["x" * 99] * 10, dict.fromkeys(range(500)), Namespace(a="x" * 997)],
    ids=["text", "numbers", "short texts", "dictionary", "namespace"],
)
def test_a_content_may_stand_for_ten_times_its_size_and_a_million_more(value: Any) -> None:
    """A list of one value is, written out, itself and as many times that value, which counts 1001 here."""
    once = 1 + 1001
    most = (10 * once + 1_000_000 - 1) // 1001
    check_nesting([value] * most)
    with pytest.raises(ValueError, match=f"it is {1 + (most + 1) * 1001:,} values .* of which {once:,} differ"):
        check_nesting([value] * (most + 1))


def test_the_place_of_what_contains_itself_is_told() -> None:
    with pytest.raises(ValueError, match=r"\[a\]\[0\]\[0\] contains itself"):
        check_nesting({"a": [itself(list)]})


def test_a_key_is_not_written_out_for_the_message() -> None:
    """It may be a tuple twice in a tuple twice in a tuple …"""

    class Key(tuple[int, ...]):
        def __repr__(self) -> str:
            raise AssertionError("it is written out")

    check_nesting({Key([1, 2]): [3]})
    with pytest.raises(ValueError, match="contains itself"):
        check_nesting({Key([1, 2]): itself(list)})


def test_a_small_content_may_stand_for_a_million_values() -> None:
    check_nesting({"a": doubled(12)})  # 400,000 of a hundred
    check_nesting([0] * 2_000_000)


def with_key(path: Path, times: int) -> Path:
    """A checkpoint of the old format with a tuple of twice a tuple … as a key; hashing it takes 2^times steps."""
    content, end = saved(path, old_format=True).read_bytes(), 0
    stream = io.BytesIO(content)
    for _ in range(4):  # three about the format
        *_, (_, _, end) = pickletools.genops(stream)
    key = b"()q\xc8" + times * b"h\xc8h\xc8\x86q\xc8" + b"t"
    path.write_bytes(content[:end] + key + b"Ns" + content[end:])
    return path


def test_a_key_that_would_take_hours_to_hash_is_refused_before(tmp_path: Path) -> None:
    few = read_checkpoint(with_key(tmp_path / "few.pt", 2))
    assert (((), ()), ((), ())) in next(key for key in few if isinstance(key, tuple))
    with pytest.raises(InputError, match=r"many\.pt .*its tuples stand for"):
        read_checkpoint(with_key(tmp_path / "many.pt", 24))


def test_tuples_at_many_places_are_taken(tmp_path: Path) -> None:
    symbols, betas = tuple(f"w{number}" for number in range(20_000)), (0.9, 0.999)
    extra = {"symbols": [symbols] * 10, "betas": [{"betas": betas} for _ in range(20_000)]}
    assert read_checkpoint(saved(tmp_path / "many.pt", extra_state=extra))["extra_state"] == extra
