"""Which values of a configuration have the type of their field."""

from __future__ import annotations

import math
from argparse import Namespace
from dataclasses import dataclass
from enum import Enum
from typing import Any, Optional, Union

import pytest
from omegaconf import MISSING

from lmfusion.checkpoint.config_types import check_fields, fields_of
from lmfusion.errors import InputError


class Choice(Enum):
    """A type of fairseq's choices."""

    one = "one"


@dataclass
class Config:
    """Fields as fairseq's dataclasses have them."""

    needed: int
    _name: str | None = "x"
    none: int = None  # type: ignore[assignment]
    refers: int = "${task.other}"  # type: ignore[assignment]
    missing: float = MISSING
    number: int = 3
    text: str = "a ${task.other} b"


NUMBERS = [(kind, value) for kind in (bool, int, float) for value in (1, 0, True)]
FIT = [
    *NUMBERS,
    *((int, 6.0), (float, 0.5), (float, math.nan), (Optional[int], None), (Optional[int], 2)),
    *((str, "x"), (str, 5), (str, 0.5), (str, Choice.one), (Choice, Choice.one), (Choice, "one")),
    *((list[int], [1, 2]), (list[int], (1, 2)), (list[int], []), (list[int], "[1, 2]"), (list, ["x", 1])),
    *((dict[str, Any], {}), (dict[str, Any], Namespace(a=1)), (Config, {"a": 1}), (Config, Namespace())),
    *((Any, 1j), (Any, None), (Union[int, str], "x"), (Union[int, list[int]], [1]), (type(None), None)),
    (bytes, 1j),  # of a type that no flag has
]
DIFFER = [
    *((int, 6.5), (int, math.inf), (int, math.nan), (int, None), (int, "6"), (int, [6]), (Optional[int], "x")),
    *((float, "0.5"), (float, None), (float, {}), (bool, "yes"), (bool, None), (bool, [])),
    *((str, ["x"]), (str, None), (str, {}), (Choice, ["one"]), (Choice, None), (type(None), 5)),
    *(
        (list[int], [1, "x"]),
        (list[int], "[1, 'x']"),
        (list[int], "print(1)"),
        (list[int], {}),
        (list, "[1,"),
        (list, 5),
    ),
    *((dict[str, Any], []), (dict[str, Any], None), (Config, 5), (Config, None), (bytes, None)),
    *((Union[int, list[int]], "x"), (Union[int, list[int]], None), (int, "${task.other}")),
]
FIT_AS_TEXT = [
    *((int, "6"), (int, "-6"), (float, "0.5"), (float, "1e-3"), (float, "6"), (Optional[int], "6")),
    *((bool, word) for word in "yes y on true 1 no n off false 0 TRUE".split()),
    *((int, "${task.other}"), (list[int], "${other}"), (list[int], ["6"])),
]
DIFFER_AS_TEXT = [
    *(
        (int, "6.5"),
        (int, 6.5),
        (int, "x"),
        (int, ""),
        (float, "a tenth"),
        (bool, "maybe"),
        (bool, "0.5"),
        (int, ["6"]),
    ),
    *((int, "${oc.env:HOME}"), (int, "x${task.other}"), (int, "${task.other}x"), (list[int], ["x"])),
]


@pytest.mark.parametrize(("kind", "value"), FIT, ids=str)
@pytest.mark.parametrize("as_text", [False, True])
def test_a_value_of_its_fields_type_is_taken(kind: Any, value: Any, as_text: bool) -> None:
    check_fields("a.pt", {"field": value, "unknown": object}, {"field": kind, "other": int}, as_text=as_text)


@pytest.mark.parametrize(("kind", "value"), DIFFER, ids=str)
def test_a_value_of_another_type_is_refused(kind: Any, value: Any) -> None:
    with pytest.raises(InputError, match=r"^a\.pt .*field of its configuration"):
        check_fields("a.pt", {"field": value}, {"field": kind})


@pytest.mark.parametrize(("kind", "value"), FIT_AS_TEXT, ids=str)
def test_a_number_in_text_is_taken_where_omegaconf_reads_it(kind: Any, value: Any) -> None:
    check_fields("a.pt", {"field": value}, {"field": kind}, as_text=True)
    with pytest.raises(InputError):
        check_fields("a.pt", {"field": value}, {"field": kind})


@pytest.mark.parametrize(("kind", "value"), DIFFER_AS_TEXT, ids=str)
def test_a_text_that_is_no_number_is_refused(kind: Any, value: Any) -> None:
    with pytest.raises(InputError):
        check_fields("a.pt", {"field": value}, {"field": kind}, as_text=True)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (int, "int"),
        (Optional[int], "int"),
        (Union[int, list[float], None], "int or .*list.float."),
        (Config, "Config"),
    ],
)
def test_the_type_is_named_without_none(kind: Any, name: str) -> None:
    with pytest.raises(InputError, match=rf" 'x' \(str\), not {name}\. "):
        check_fields("a.pt", {"field": "x"}, {"field": kind})


def test_a_long_value_is_told_in_part() -> None:
    with pytest.raises(InputError) as caught:
        check_fields("a.pt", {"field": "x" * 100_000}, {"field": int})
    assert "x" * 100 in str(caught.value)
    assert "x" * 101 not in str(caught.value)


def test_none_is_a_value_where_the_default_is_none_or_stands_elsewhere() -> None:
    assert fields_of(Config) == {
        "needed": int,
        "none": Optional[int],
        "refers": Optional[int],
        "missing": Optional[float],
        "number": int,
        "text": str,
    }
