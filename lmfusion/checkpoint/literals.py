"""Evaluate the expressions that configurations hold as text, such as ``"[(512, 3)] * 20"``, without running code."""

from __future__ import annotations

import ast
from typing import Any

from lmfusion.errors import InputError

LONGEST = 10_000
"""Characters of an expression, and numbers, characters and containers in its value."""
_LARGEST = 2**63
_NAMED = (type(None), bool, int, float, str)


def evaluate(text: Any) -> Any:
    """Return the value of an expression of literals, ``+`` and ``*``.

    It takes the place of :func:`eval`. Nothing is called, looked up or imported, and the value is bounded.

    Args:
        text: numbers, strings, True, False and None, lists, tuples and dictionaries of these; lists and tuples joined
            by ``+`` and repeated by ``*``; sums and products of numbers.

    Raises:
        TypeError: if it is no text, as with :func:`eval`.
        InputError: if it is any other expression, or its value is too large.
    """
    if not isinstance(text, str):
        raise TypeError(f"an expression is text, not {type(text).__name__}")
    try:
        if len(text) > LONGEST:
            raise ValueError("it is too long")
        return _value(ast.parse(text.strip(), mode="eval").body)[0]
    except (ValueError, SyntaxError, TypeError, ArithmeticError, RecursionError, MemoryError) as error:
        raise InputError(
            f"{text[:100]!r} was not evaluated ({error}): only numbers, strings, lists, tuples and dictionaries, "
            f"joined by + or repeated by *, are values of a configuration."
        ) from error


def _value(node: ast.expr) -> tuple[Any, int]:
    """Return the value of a part of an expression, and its size: the numbers, characters and containers in it."""
    if isinstance(node, ast.Constant) and type(node.value) in _NAMED:
        return _bounded(node.value, len(node.value) if isinstance(node.value, str) else 1)
    if isinstance(node, (ast.List, ast.Tuple)):
        parts = [_value(part) for part in node.elts]
        kind = list if isinstance(node, ast.List) else tuple
        return _bounded(kind(value for value, _ in parts), 1 + sum(size for _, size in parts))
    if isinstance(node, ast.Dict):
        pairs = [(_value(key), _value(value)) for key, value in zip(node.keys, node.values) if key is not None]
        if len(pairs) == len(node.values):  # no **{…} among them
            size = 1 + sum(key[1] + value[1] for key, value in pairs)
            return _bounded({key[0]: value[0] for key, value in pairs}, size)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value, size = _value(node.operand)
        return (-value if isinstance(node.op, ast.USub) else +value), size
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
        return _combined(_value(node.left), _value(node.right), is_sum=isinstance(node.op, ast.Add))
    raise ValueError(f"{ast.unparse(node)[:60]} is no literal")


def _combined(left: tuple[Any, int], right: tuple[Any, int], *, is_sum: bool) -> tuple[Any, int]:
    """Return a sum or product and its size, which is known before it is made."""
    (a, a_size), (b, b_size) = left, right
    if is_sum:
        _bounded(None, a_size + b_size)
        return _bounded(a + b, a_size + b_size)
    if isinstance(a, int) and not isinstance(b, (int, float)):  # 20 * [...]
        (a, a_size), (b, b_size) = right, left
    size = 1 if isinstance(a, (int, float)) else 1 + a_size * max(int(b), 0)
    _bounded(None, size)
    return _bounded(a * b, size)


def _bounded(value: Any, size: int) -> tuple[Any, int]:
    if size > LONGEST or (isinstance(value, int) and abs(value) > _LARGEST):
        raise ValueError("its value is too large")
    return value, size
