"""A manual page's source -> its paragraphs, for pages in the man macros (man(7)).

A reduction, not a typesetter: it wants running text, and drops what is shown as it stands (examples, tables, synopses
with their own macros). Pages in the mdoc macros of BSD, which few are translated from, give nothing.
"""

from __future__ import annotations

import re

_ARGUMENT = re.compile(r'"((?:[^"]|"")*)"?|((?:\\.|\S)+)')
_WORDS = frozenset("B I SM SB R".split())
_ALTERNATING = frozenset("BR BI IB IR RB RI".split())
_QUIET = frozenset("IX PD ad hy nh na ft in ti ta ll nr ds ne hw ps fam ss cp rn".split())  # within a paragraph too
_VERBATIM = {"nf": "fi", "EX": "EE", "TS": "TE", "Vb": "Ve", "SY": "YS", "EQ": "EN", "de": ".", "ig": ".", "am": "."}
_MDOC = re.compile(r"^\.(?:Dd|Sh)\s", re.MULTILINE)

_NAMED = {
    "aq": "'",
    "dq": '"',
    "lq": "“",
    "rq": "”",
    "oq": "‘",
    "cq": "’",
    "Bq": "„",
    "bq": "‚",
    "Fo": "«",
    "Fc": "»",
    "em": "—",
    "en": "–",
    "hy": "-",
    "mi": "-",
    "bu": "•",
    "co": "©",
    "rg": "®",
    "tm": "™",
    "de": "°",
    "mc": "µ",
    "ha": "^",
    "ti": "~",
    "rs": "\\",
    "ga": "`",
    "sl": "/",
    "at": "@",
    "sh": "#",
    "ba": "|",
    "or": "|",
    "ul": "_",
    "mu": "×",
    "+-": "±",
    "<=": "≤",
    ">=": "≥",
    "!=": "≠",
    "->": "→",
    "<-": "←",
    "pc": "·",
    "sc": "§",
    "Eu": "€",
    ":a": "ä",
    ":o": "ö",
    ":u": "ü",
    ":A": "Ä",
    ":O": "Ö",
    ":U": "Ü",
    "ss": "ß",
    "'e": "é",
    "`e": "è",
    "/o": "ø",
    "lB": "[",
    "rB": "]",
    "lC": "{",
    "rC": "}",
    "la": "⟨",
    "ra": "⟩",
    "Aq": "'",
    "C`": '"',
    "C'": '"',
    'L"': '"',
    'R"': '"',
    "--": "–",
    "Tm": "™",
    "R": "®",
    "dg": "†",
    "fm": "′",
    "pl": "+",
    "eq": "=",
    "**": "*",
}
_SIMPLE = {"e": "\\", "~": " ", "0": " ", "t": " ", **{char: char for char in " -'`_.\\"}}
_ESCAPE = re.compile(
    r"""\\(?:
        (?P<drop>f(?:\[[^]]*\]|\(..|.)|s[-+]?(?:\[[^]]*\]|\(..|\d)|[mMFY]\[[^]]*\]|[hvwlLoxDZbA]'[^']*'|k.|[&,/:%)|^cdruzap{}])
      | \[(?P<code>u[0-9A-F]{4,5})\]
      | \*?\[(?P<long>[^]]*)\] | \*?\((?P<two>..) | \*(?P<one>.)
      | (?P<simple>.)
    )""",
    re.VERBOSE,
)
_UNKNOWN = "\ufffd"


def plain(text: str) -> str:
    """Text without roff's escapes; what is not known of them becomes U+FFFD."""
    return _ESCAPE.sub(_character, re.sub(r'\\["#].*', "", text))


def _character(match: re.Match[str]) -> str:
    if match["drop"] is not None:
        return ""
    if match["code"]:
        return chr(int(match["code"][1:], 16))
    if match["simple"] is not None:
        return _SIMPLE.get(match["simple"], _UNKNOWN)
    return _NAMED.get(match["long"] or match["two"] or match["one"] or "", _UNKNOWN)


def arguments(rest: str) -> list[str]:
    """The arguments of a macro line: quoted ones may hold spaces, and quotes as \"\"."""
    return [match[1].replace('""', '"') if match[1] is not None else match[2] for match in _ARGUMENT.finditer(rest)]


class _Reader:
    """Reads one line after the other and gathers paragraphs."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._lines: list[str] = []
        self._until: str | None = None  # the macro that ends what is being left out
        self._depth = 0  # of conditional blocks, which are left out: they draw characters, or serve other devices
        self._tag = False  # the next line is the tag of a paragraph

    def flush(self) -> None:
        text = " ".join(" ".join(self._lines).split())
        self._lines.clear()
        if text and _UNKNOWN not in text:
            self.found.append(text)

    def line(self, line: str) -> None:
        """Take one line of source."""
        macro = re.match(r"[.']\s*(\S*)\s*(.*)", line)
        name, rest = (macro[1], macro[2]) if macro else ("", "")
        if self._until is not None:
            if macro and name == self._until:
                self._until = None
        elif self._depth or name in ("if", "ie", "el"):
            self._depth = max(0, self._depth + line.count("\\{") - line.count("\\}"))
        elif not macro:
            self._text(line)
        elif name in _VERBATIM:
            self.flush()
            self._until = _VERBATIM[name]
        else:
            self._macro(name, rest)

    def _text(self, line: str) -> None:
        if not line.strip() or line[0].isspace():
            self.flush()
        self._add(line)

    def _add(self, text: str) -> None:
        self._lines.append(plain(text))
        if self._tag:
            self._tag = False
            self.flush()

    def _macro(self, name: str, rest: str) -> None:
        if name.startswith('\\"') or name in _QUIET or not name:
            return
        given = arguments(rest)
        if name in _WORDS:
            self._add(" ".join(given))
        elif name in _ALTERNATING:
            self._add("".join(given))
        elif name in ("UE", "ME"):  # the end of a link, with the punctuation after it
            self._lines[-1:] = ["".join([*self._lines[-1:], *map(plain, given[:1])])]
        else:
            self.flush()
            if name in ("SH", "SS") and given:
                self._add(" ".join(given))
                self.flush()
            self._tag = name in ("TP", "TQ") or (name in ("SH", "SS") and not given)


def paragraphs(source: str) -> list[str]:
    """The paragraphs, headings and tags of a page; none of a page that only points to another (.so)."""
    if _MDOC.search(source):
        return []
    reader = _Reader()
    for line in source.splitlines():
        reader.line(line)
    reader.flush()
    return reader.found
