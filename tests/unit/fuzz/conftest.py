"""Damage by rule: the same seed makes the same cases."""

from __future__ import annotations

import copy
import os
import pickle
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest
import torch

from lmfusion.errors import InputError

WRONG = [None, -1, 0, 10**12, 1.5, float("nan"), "x", "", b"x", True, [], {}, [1], {"a": 1}, {1: 2}, torch.zeros(0)]
WRONG += [torch.zeros(3, 3), torch.tensor(7), torch.zeros(2, dtype=torch.int64), "\0", "ü" * 1000, [[[[]]]], ()]


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The content cut, or with flipped bits, or with other bytes in it, or with bytes too many or too few."""
    place = rng.randrange(len(content)) if content else 0
    size = rng.choice((1, 2, 8, 64, 1000))
    kind = rng.choice(("cut", "flip", "flip", "flip", "overwrite", "zero", "insert", "delete", "repeat"))
    if kind == "cut":
        return content[:place]
    if kind == "flip":
        changed = bytearray(content)
        for _ in range(rng.choice((1, 1, 1, 5, 50))):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        return bytes(changed)
    new = {"overwrite": rng.randbytes(size), "zero": bytes(size), "insert": rng.randbytes(size), "delete": b""}
    middle = new.get(kind, content[place : place + size] * 2)
    return content[:place] + middle + content[place + (0 if kind == "insert" else size) :]


def with_wrong_type(value: Any, rng: random.Random) -> Any:
    """A copy of nested lists and dictionaries in which one value, at any depth, is another one."""
    value = copy.deepcopy(value)
    places = list(_places(value))
    container, key = rng.choice(places)
    if isinstance(container, dict) and rng.random() < 0.2:
        del container[key]
    else:
        container[key] = copy.deepcopy(rng.choice(WRONG))
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from _places(inner)


CASES: Counter[str] = Counter()
"""Damaged or hostile files that were read, by test."""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many there were."""
    for name, count in sorted(CASES.items()):
        terminalreporter.write_line(f"fuzzed: {count:6,} {name}")
    terminalreporter.write_line(f"fuzzed: {CASES.total():6,} damaged or hostile files in all")


@pytest.fixture
def attempt(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """What was read: ``attempt(read, path)``; None if it was refused in one line that names the file."""
    name = request.node.originalname.removeprefix("test_").replace("_", " ")

    def attempted(read: Callable[[Path], Any], path: Path, refusal: type[Exception] = InputError) -> Any:
        CASES[name] += 1
        try:
            return read(path)
        except refusal as error:
            text = str(error)
            assert len(text) > 20
            assert path.name in text or path.parent.name in text, text
            return None

    return attempted


@pytest.fixture
def damage() -> Callable[[bytes, int], bytes]:
    """``damage(content, seed)``: the content cut, or with flipped bits, or other bytes, or too many, or too few."""
    return lambda content, seed: damaged(content, random.Random(seed))


@pytest.fixture
def wrong_type() -> Callable[[Any, int], Any]:
    """``wrong_type(value, seed)``: a copy in which one value, at any depth, is another one."""
    return lambda value, seed: with_wrong_type(value, random.Random(seed))


@pytest.fixture
def fuzz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempt: Any) -> Callable[..., int]:
    """Read damaged copies of a file: ``fuzz(path, read, seeds, check)``; how many of them were refused.

    ``check`` is given what was read of a copy that was not refused.
    """
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    def run(path: Path, read: Callable[[Path], Any], seeds: range, check: Callable[[Any], None]) -> int:
        whole, refused = path.read_bytes(), 0
        for seed in seeds:
            path.write_bytes(damaged(whole, random.Random(seed)))
            try:
                found = attempt(read, path)
                refused += found is None
                if found is not None:
                    check(found)
            except BaseException:
                print(f"seed {seed}")
                raise
        path.write_bytes(whole)
        assert os.listdir(tmp_path / "elsewhere") == []
        return refused

    return run


class Attack:
    """Unpickled without care, it calls what it names."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.fixture
def attacks(tmp_path: Path) -> tuple[Path, list[Any]]:
    """A file that must not come to be, and objects and pickles (bytes) that make it when they are unpickled."""
    victim = tmp_path / "executed"
    touch = f"open({str(victim)!r}, 'w').close()"
    objects: list[Any] = [
        *(Attack(eval, touch), Attack(exec, touch), Attack(os.system, f"touch '{victim}'"), Attack(Path.touch, victim)),
        *(Attack(os.mkdir, str(victim)), Attack(open, str(victim), "w"), Attack(re.sub, "a", Attack(eval, touch), "a")),
        Attack(getattr, Attack(__import__, "os"), "system"),
        Attack(torch.load, str(victim)),
    ]
    name = str(victim).encode()
    objects += [
        b"\x80\x02cposix\nmkdir\nX" + len(name).to_bytes(4, "little") + name + b"\x85R.",  # GLOBAL, REDUCE
        b"\x80\x04\x8c\x05posix\x8c\x05mkdir\x93\x8c" + bytes([min(len(name), 255)]) + name[:255] + b"\x85R.",
        b"(S'" + name + b"'\niposix\nmkdir\n.",  # INST
        b"(cposix\nmkdir\nS'" + name + b"'\no.",  # OBJ
        pickle.dumps(Attack(eval, touch), protocol=5),
    ]
    return victim, objects
