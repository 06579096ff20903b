"""WMT's test sets as they were released: SGML with one <seg> a sentence."""

from __future__ import annotations

import re

SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)
WHITE_SPACE = re.compile(r"\s+")


def segments(text: str) -> list[str]:
    """The sentences of an .sgm file, white space made single spaces.

    Entities stay as they are, as in sacreBLEU's copies of the same sets, so that scores by file and by name agree.
    """
    return [WHITE_SPACE.sub(" ", segment).strip() for segment in SEGMENT.findall(text)]
