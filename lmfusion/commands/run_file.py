"""The file of ``lmfusion run``: sections called as commands, keys called as their flags, to command lines.

Every value is taken as it is written (``no`` is Norwegian, not false), and what is wrong is told with its line.
"""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import yaml

from lmfusion.errors import InputError, why_no_file

_NO_TEXT = re.compile(r"[\0\ud800-\udfff]")
ON, OFF = ("true", "yes", "on"), ("false", "no", "off")
"""What a flag without a value may be set to."""


def read(path: Path, commands: Mapping[str, argparse.ArgumentParser]) -> list[list[str]]:
    """Return the command lines that a file stands for.

    Args:
        path: the file.
        commands: parsers of the sections that it may have, in the order in which they run.

    Returns:
        For each section the command's name and its words.

    Raises:
        InputError: if it cannot be read, or a section, a key or a value is not one that the command knows.
    """
    if path.is_dir() or not path.exists():  # a pipe may be read: it is read once
        raise InputError(f"{path}: {why_no_file(path)}. lmfusion run --example prints one to begin with.")
    try:
        tree = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except RecursionError as error:
        raise InputError(f"{path}: not such a file: lists in lists without end.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start}).") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise InputError(f"{path}:{mark.line + 1 if mark else 1}: not YAML: {error.problem}.") from error
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not YAML: {' '.join(str(error).split())}.") from error
    sections = dict(_entries(path, tree, "the file", commands))
    if not sections:
        raise InputError(f"{path}: has no section. It may have {', '.join(commands)}: lmfusion run --example.")
    return [[name, *_words(path, name, sections[name], commands[name])] for name in commands if name in sections]


def _entries(path: Path, node: yaml.Node | None, what: str, known: Iterable[str]) -> Iterator[tuple[str, yaml.Node]]:
    """Yield the keys of a mapping and their values; each is known, and there once."""
    if node is None or (isinstance(node, yaml.ScalarNode) and not node.value):
        return
    if not isinstance(node, yaml.MappingNode):
        raise InputError(f"{_place(path, node)}: {what} has to be lines of the form `key: value`.")
    seen, names = set(), list(known)
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or (name := key.value.replace("_", "-")) not in names:
            written = key.value if isinstance(key, yaml.ScalarNode) else "a list or mapping"
            near = difflib.get_close_matches(str(written).replace("_", "-"), names, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"Known are: {', '.join(names)}."
            raise InputError(f"{_place(path, key)}: {what} has no key {written}. {hint}")
        if name in seen:
            raise InputError(f"{_place(path, key)}: {what} has {name} twice.")
        seen.add(name)
        yield name, value


def _words(path: Path, section: str, node: yaml.Node, parser: argparse.ArgumentParser) -> list[str]:
    """Return a section's words: what has no flag, then the flags."""
    actions = {_key(action): action for action in parser._actions if action.dest != "help"}
    flags: list[str] = []
    operands: list[str] = []
    given: set[str] = set()
    for key, value in _entries(path, node, section, actions):
        action = actions[key]
        given.add(key)
        if action.nargs == 0:
            flags += _switch(path, key, value, action)
            continue
        values = _values(path, key, value)
        if action.nargs is None and "," in str(action.metavar):
            values = [",".join(values)]  # a flag that takes several as one word: --rows baseline,shared
        expected = action.nargs if isinstance(action.nargs, int) else 1 if action.nargs is None else len(values)
        if len(values) != expected:
            words = values[0].split() if len(values) == 1 else []
            hint = f" Write {key}: [{', '.join(words)}]." if len(words) == expected else ""
            fault = f"{key} takes {expected}, not {len(values)}: {', '.join(values)}."
            raise InputError(f"{_place(path, value)}: {fault}{hint}")
        if action.option_strings:
            flags += [action.option_strings[-1], *values]
        else:
            operands += values
    if missing := [key for key, action in actions.items() if action.required and key not in given]:
        raise InputError(f"{_place(path, node)}: {section} lacks {', '.join(missing)}: lmfusion run --example.")
    return operands + flags


def _key(action: argparse.Action) -> str:
    """Return what a flag is called in the file: as on the command line, without the dashes."""
    long = [flag for flag in action.option_strings if flag.startswith("--")]
    return long[0][2:] if long else action.dest.replace("_", "-")


def _values(path: Path, key: str, node: yaml.Node) -> list[str]:
    """Return a value, those of a list, or those of a mapping as NAME=VALUE."""
    if isinstance(node, yaml.MappingNode):
        pairs = [(_scalar(path, key, name), _scalar(path, key, value)) for name, value in node.value]
        return [f"{name}={value}" for name, value in pairs]
    items = node.value if isinstance(node, yaml.SequenceNode) else [node]
    return [_scalar(path, key, item) for item in items]


def _scalar(path: Path, key: str, node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise InputError(f"{_place(path, node)}: {key}: lists in lists are no values.")
    if not node.value:
        raise InputError(f"{_place(path, node)}: {key} has no value. Give one, or take the line out.")
    if _NO_TEXT.search(node.value):
        raise InputError(f"{_place(path, node)}: {key} has a character that can stand in no command.")
    return str(node.value)


def _switch(path: Path, key: str, node: yaml.Node, action: argparse.Action) -> list[str]:
    written = str(node.value).lower()
    if written not in ON + OFF:
        raise InputError(f"{_place(path, node)}: {key} is true or false, not {written}.")
    if isinstance(action, argparse.BooleanOptionalAction):  # --flag, --no-flag
        return [action.option_strings[0 if written in ON else -1]]
    return [action.option_strings[-1]] if written in ON else []


def _place(path: Path, node: yaml.Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"
