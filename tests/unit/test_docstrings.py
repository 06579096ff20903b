"""Docstrings can be read alone: a function says what it does, a class what it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Union

import pytest

import lmfusion

PACKAGE = Path(lmfusion.__file__).parent
FUNCTION_WORDS = {
    *("about", "after", "as", "at", "because", "before", "behind", "by", "for", "from", "how", "if", "in", "into"),
    *("of", "on", "over", "than", "that", "through", "to", "under", "what", "when", "where", "whether", "which", "who"),
    *("whose", "why", "with", "within", "without", "fairseq's", "it", "its", "same"),
}
NO_VERBS = {"a", "an", "all", "any", "each", "every", "no", "none", "some", "the", "there", "these", "this", "those"}

Definition = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def definitions(body: list[ast.stmt], scope: str) -> Iterator[tuple[str, Definition]]:
    """Yield public functions, classes and methods, with their names; what stands inside functions is private."""
    for node in body:
        if isinstance(node, (ast.If, ast.Try)):
            yield from definitions(node.body, scope)
        if isinstance(node, DEFINITIONS) and not node.name.startswith("_") and not is_overload(node):
            yield f"{scope}{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from definitions(node.body, f"{scope}{node.name}.")


def is_overload(node: Definition) -> bool:
    return any("overload" in ast.unparse(decorator) for decorator in node.decorator_list)


def problem(node: Definition) -> str | None:
    text = ast.get_docstring(node)
    if not text:
        return "has no docstring"
    first = text.split()[0].strip(".,:;").lower()
    if isinstance(node, ast.ClassDef):
        return f"begins with {first!r}" if first in FUNCTION_WORDS else None
    if first in FUNCTION_WORDS | NO_VERBS or not first.replace("-", "").isalpha():
        return f"begins with {first!r}, which is no verb"
    return None


def problems(path: Path) -> list[str]:
    found = definitions(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return [f"{name}: {text}" for name, node in found if (text := problem(node)) is not None]


SOURCES = [path.relative_to(PACKAGE) for path in sorted(PACKAGE.rglob("*.py"))]


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_every_public_docstring_begins_with_what_it_does(source: Path) -> None:
    assert problems(PACKAGE / source) == []


def test_the_listed_words_are_recognized(tmp_path: Path) -> None:
    text = '''
class Bad:
    """Of the next update."""
    def bare(self): return 1
    def good(self):
        """Return the factor."""
class Good:
    """A factor."""
    def bad(self):
        """The factor."""
def shape():
    """... x C -> ... x V."""
def _private(): ...
'''
    path = tmp_path / "module.py"
    path.write_text(text, encoding="utf-8")
    assert [line.split(":")[0] for line in problems(path)] == ["Bad", "Bad.bare", "Good.bad", "shape"]
