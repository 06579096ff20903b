"""A package description -> blocks -> sentences.

Debian's format (Debian Policy, 5.6.13): " ." is an empty line, lines with one leading space are running text that may
be re-wrapped, lines with more are shown as they stand. Lists are written by hand, in either kind of line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from .text import UNSPACED, tidy

Kind = Literal["text", "item"]

_BULLET = re.compile(r"^(\s*)(?:[-*+•·–‣]{1,2}|\(?\d{1,2}[.)]|\(?[a-z]\))\s+(?=\S)")
_LETTER_BULLET = re.compile(r"^(\s+)o\s+(?=\S)")  # "o" is a bullet only where the line is indented
_RULER = re.compile(r"^[\s=~_*+#.-]+$")
_UNSPACED_CHAR = re.compile(f"[{UNSPACED}]")
# A line broken behind a hyphen is one word ("Linux-" + "Kernel"), unless the hyphen stands for a left-out part.
_SUSPENDED = re.compile(r"^(?:and|or|und|oder|bzw\.|sowie|et|ou|y|o|e|en|of)\b")


@dataclass
class Block:
    """A stretch of text: running text, or one list item without its marker."""

    kind: Kind
    text: str


def paragraphs(lines: list[str]) -> list[list[Block]]:
    """The blocks of each paragraph; `lines` are a description's lines without its synopsis, leading space removed."""
    result: list[list[Block]] = []
    chunk: list[str] = []
    for line in [*lines, "."]:
        if line.strip() not in (".", ""):
            chunk.append(line.expandtabs())
        elif chunk:
            blocks = _blocks(chunk)
            if blocks:
                result.append(blocks)
            chunk = []
    return result


def _blocks(lines: list[str]) -> list[Block]:
    """One paragraph's lines -> its blocks. Indented lines that are neither items nor prose are dropped."""
    blocks: list[Block] = []
    parts: list[str] = []  # of the block being read
    kind: Literal["text", "item", "verbatim"] = "text"
    bullet_indent = 0

    def flush() -> None:
        text = tidy(_join(parts))
        parts.clear()
        if text and (kind != "verbatim" or _is_prose(text)):
            blocks.append(Block("item" if kind == "item" else "text", text))

    for line in lines:
        indent = len(line) - len(line.lstrip())
        marker = _marker(line, in_list=kind == "item", after=parts[-1] if parts else "")
        if marker:
            flush()
            kind, bullet_indent, line = "item", indent, line[marker:]
        elif kind == "item" and (indent > bullet_indent or indent == bullet_indent == 0):
            pass  # the item goes on
        elif kind != ("verbatim" if indent else "text"):
            flush()
            kind = "verbatim" if indent else "text"
        if not _RULER.match(line):
            parts.append(line.strip())
    flush()
    return blocks


def _marker(line: str, in_list: bool, after: str) -> int:
    """Length of the list marker at the start of `line`, 0 if there is none.

    A dash at the start of an unindented line may be a dash of the sentence before: there it needs a list around it.
    """
    match = _BULLET.match(line) or _LETTER_BULLET.match(line)
    if not match:
        return 0
    return match.end() if match.group(1) or in_list or not after or after.endswith((":", ".")) else 0


def _is_prose(text: str) -> bool:
    """Whether indented text is a paragraph someone indented, rather than a table, an example or ASCII art."""
    return text.endswith((".", "!", "?")) and text.count(" ") >= 7 and "  " not in text


def _join(lines: list[str]) -> str:
    """Undo line wrapping."""
    text = ""
    for line in lines:
        hyphenated = re.search(r"[^\W\d_]-$", text) and not _SUSPENDED.match(line)
        unspaced = _UNSPACED_CHAR.match(text[-1:]) and _UNSPACED_CHAR.match(line)
        text += ("" if not text or hyphenated or unspaced else " ") + line
    return text


# --- sentences -------------------------------------------------------------------------------------------------------

_END = re.compile(r"(?:[.!?]+|…)[\"'”“»«›’)\]]*(?=\s+[\"'“„«»‚‘(\[]*[^\W_])|[。！？]+(?=.)")
_NEVER_LAST = frozenset(
    # English
    "e.g i.e eg ie cf vs viz resp approx dr mr mrs ms prof st no nr vol fig incl excl esp aka al a.k.a inc. ver ca pp "
    # German
    "z.b d.h u.a z.t u.u o.ä o.a s.a s.o s.u i.d.r v.a bzw ca vgl evtl ggf inkl exkl bspw sog engl dt allg gem zzgl "
    "usf einschl mind max min std mio mrd b h a d u z t i r "
    # French, Spanish, Portuguese, Italian, Dutch, Polish, Russian
    "p.ex ex env p.ej ej pág núm n.b bijv o.a d.w.z m.b.v np tzn tzw m.in itp т.е т.д т.п".split()
)


def sentences(text: str, lang: str) -> list[str]:
    """Split running text. Where in doubt it does not split: a long unit is a lesser evil than a broken one."""
    found: list[str] = []
    start = 0
    for match in _END.finditer(text):
        if _ends_sentence(text, match, lang):
            found.append(text[start : match.end()].strip())
            start = match.end()
    found.append(text[start:].strip())
    return [sentence for sentence in found if sentence]


def _ends_sentence(text: str, match: re.Match[str], lang: str) -> bool:
    mark = match.group()
    following = text[match.end() :].lstrip().lstrip("\"'“„«»‚‘([")
    if mark[0] in "。！？":
        return True
    # Lower case goes on ("e.g. foo", "Yahoo! is"); scripts without case and digits may begin a sentence.
    if following[:1].islower():
        return False
    if mark[0] != "." or mark.startswith(".."):
        return True
    before = text[: match.start()].rsplit(None, 1)[-1].lstrip("([\"'“„»«").casefold() if match.start() else ""
    initial = re.fullmatch(r"[^\W\d_]", before) and before not in ("c", "x", "r")  # but "written in C." ends a sentence
    if before in _NEVER_LAST or initial:
        return False
    # German and its neighbours write ordinals with a full stop: "der 3. Version".
    ordinal = lang[:2] in ("de", "da", "nb", "cs", "sk", "fi", "hu", "pl", "tr", "hr", "sr")
    return not (ordinal and re.fullmatch(r"\d{1,2}", before))
