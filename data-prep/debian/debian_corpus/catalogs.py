"""Message catalogs (.mo): English messages and their translations, as sentences rather than menu entries."""

from __future__ import annotations

import gettext
import io
import re
import struct

from .markup import html_blocks

_MARK = re.compile(r"(?<!\s)[_&~](?=\w)|(?<!\S)[_&~](?=\w)")  # stands before the letter that is the menu's shortcut
_DIRECTIVE = re.compile(r"%[^\s%]|\{[^}\s]*\}|\$[\w{(]|\\\w|@\w+@|&\w+;(?<!&amp;)(?<!&lt;)(?<!&gt;)(?<!&quot;)")
_TAG = re.compile(r"<[/\w][^>]*>")


class _Catalog(gettext.GNUTranslations):
    """A catalog whose messages can be listed."""

    def messages(self) -> list[tuple[str, str]]:
        """(English, translation) of each message; plural forms with the form's number apart."""
        pairs = []
        for name, translation in self._catalog.items():  # type: ignore[attr-defined]
            english = name[0] if isinstance(name, tuple) else name
            pairs.append((english.rsplit("\x04", 1)[-1], translation))  # "context\4message"
        return pairs


def messages(data: bytes) -> list[tuple[str, str]]:
    """(English, translation) of every message that is plain text, without the catalog's header.

    Raises:
        ValueError: not a .mo file.
    """
    try:
        catalog = _Catalog(io.BytesIO(data))
    except (OSError, EOFError, LookupError, struct.error) as error:
        raise ValueError(str(error)) from error
    return [pair for pair in catalog.messages() if pair[0] and not any(map(_DIRECTIVE.search, pair))]


def message_blocks(message: str) -> list[str]:
    """The paragraphs of one message, without markup and the marks of keyboard shortcuts."""
    if _TAG.search(message):
        return html_blocks(message)
    marks = _MARK.findall(message)
    if len(marks) == 1:
        message = _MARK.sub("", message)
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", message) if part.strip()]
