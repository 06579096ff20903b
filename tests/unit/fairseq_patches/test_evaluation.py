"""Expressions in configurations are values, not code; fairseq evaluates nothing else from a checkpoint."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import fairseq
import fairseq_cli
import pytest

from lmfusion.checkpoint.literals import evaluate
from lmfusion.fairseq_patches.evaluation import MODULES

# The user's own: flags of the optimizer, and --model-overrides.
FROM_THE_COMMAND_LINE = ("fairseq.optim.", "fairseq_cli.validate", "fairseq_cli.eval_lm")
# Not imported unless --user-dir names them.
EXAMPLES = "fairseq.examples."

READ_AS_BEFORE = [
    *("[(512, 3)] * 20", "[(512, 10, 5)] + [(512, 3, 2)] * 4 + [(512, 2, 2)] + [(512, 2, 2)]", "2 * [[1, 'a']] + []"),
    *(
        "True",
        "None",
        "50,100",
        "[0.5, 1e-3]",
        "(0.9, 0.98)",
        " -1",
        "+1",
        "{'beam': 5, 'x': (1, [2])}",
        "3 * 4 + 1",
        "''",
    ),
]
REFUSED = [
    *("__import__('os').system('true')", "__import__('os').system('true') * 0 or [50, 100]", "open('x')", "torch", "x"),
    *("(lambda: 1)()", "[x for x in (1,)]", "f'{1}'", "().__class__", "[1][0]", "{**{}}", "1 if 1 else 2", "(a := 1)"),
    *("2 ** 3", "1 and 2", "not 1", "b'x'", "...", "1j", "", "1 +", "'a' + 1", "[1] * 2.0", "{[1]: 2}", "\0", "\ud800"),
]
TOO_LARGE = [
    *("[1] * 10**9", "[1] * 999999999", "'a' * 999999999", "9" * 5000, "[" * 9000, "-" * 9000 + "1", "[1] * 1e400"),
    *("[[[1] * 99] * 99] * 99", "[1] * 9000 + [1] * 9000", "9223372036854775807 * 9223372036854775807"),
    *("1" + "+1" * 9000, f"'{'a' * 5000}' * 3", "[[], [], [], []] * 2100", f"[{{'{'a' * 100}': 1}}] * 100"),
]


@pytest.mark.parametrize("text", READ_AS_BEFORE)
def test_literals_sums_and_products_have_the_values_of_python(text: str) -> None:
    assert evaluate(text) == eval(text)
    assert type(evaluate(text)) is type(eval(text))


@pytest.mark.parametrize("text", [*REFUSED, *TOO_LARGE], ids=lambda text: ascii(text)[:40])
def test_all_else_and_what_is_too_large_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="was not evaluated"):
        evaluate(text)


@pytest.mark.parametrize("value", [True, 5, None, [1], b"1"])
def test_what_is_no_text_is_a_type_error_as_of_eval(value: object) -> None:
    """fairseq's eval_bool counts on it."""
    with pytest.raises(TypeError):
        evaluate(value)


def evaluating_modules() -> Iterator[str]:
    """Modules of the installed fairseq with a call of the builtin ``eval`` or ``exec``."""
    for package in (fairseq, fairseq_cli):
        (root,) = package.__path__
        for path in sorted(Path(root).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            called = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
            if any(isinstance(function, ast.Name) and function.id in ("eval", "exec") for function in called):
                yield ".".join([package.__name__, *path.relative_to(root).with_suffix("").parts])


@pytest.mark.slow
def test_no_module_of_fairseq_evaluates_a_checkpoints_values_as_code() -> None:
    found = list(evaluating_modules())
    assert len(found) > 20, "the sweep found what is known"
    reachable = {name for name in found if not name.startswith((*FROM_THE_COMMAND_LINE, EXAMPLES))}
    assert reachable <= set(MODULES)
    for name in reachable:
        assert vars(importlib.import_module(name))["eval"] is evaluate


def test_a_pytorch_whose_safe_reading_has_a_hole_is_not_installed() -> None:
    """CVE-2025-32434: before 2.6, ``weights_only=True`` could be made to run code."""
    setup = Path(__file__).parents[3].joinpath("setup.py").read_text(encoding="utf-8")
    found = re.search(r'"torch>=(\d+)\.(\d+)', setup)
    assert found is not None
    assert (int(found[1]), int(found[2])) >= (2, 6)
