"""A study's tables and figures in a page of the repository, so that no figure is typed.

Every part of a page from `<!-- study NAME BUDGET: HEADING -->` to `<!-- end -->` becomes what the report has below
that heading; its pictures are copied beside the committed results.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from lmfusion.errors import InputError

_PART = re.compile(
    r"(?s)<!-- study (?P<name>\S+) (?P<budget>\S+): (?P<heading>[^\n]+?) -->\n(?P<old>.*?)(?P<end><!-- end -->|\Z)"
)
_HEADING = re.compile(r"(?m)^#{1,3} (.+)$")
_PICTURE = re.compile(r"\]\(([\w-]+\.svg)\)")


def sections(report: str) -> dict[str, str]:
    """A Markdown report's text by heading, without the parts below the next one."""
    pieces = _HEADING.split(report)
    return {heading: text.strip() for heading, text in zip(pieces[1::2], pieces[2::2])}


def fill(page: Path, report: Path, results: Path, name: str, budget: str) -> int:
    """Renew a page's parts of one study and budget; those of others stay.

    Args:
        page: where they stand.
        report: the folder that ``lmfusion report`` wrote.
        results: the folder of committed results, which the pictures are copied into.

    Returns:
        The number of parts.

    Raises:
        InputError: there is no such page, it has no such part or one without an end, or the report has no such heading.
    """
    if not page.is_file():
        raise InputError(f"--into {page}: no such file.")
    found = sections((report / "report.md").read_text(encoding="utf-8"))
    count = 0

    def picture(match: re.Match[str]) -> str:
        shutil.copyfile(report / match[1], results / match[1])
        return f"]({os.path.relpath(results / match[1], page.resolve().parent)})"

    def part(match: re.Match[str]) -> str:
        nonlocal count
        if not match["end"] or "<!-- study " in match["old"]:
            raise InputError(f"{page}: the part {match['heading']!r} has no line `<!-- end -->` below it.")
        if (match["name"], match["budget"]) != (name, budget):
            return match[0]
        if match["heading"] not in found:
            raise InputError(f"{page}: {match['heading']!r} is no heading of the report. It has: {', '.join(found)}.")
        count += 1
        opening = match[0].split("\n", 1)[0]
        return f"{opening}\n{_PICTURE.sub(picture, found[match['heading']])}\n<!-- end -->"

    text = _PART.sub(part, page.read_text(encoding="utf-8"))
    if not count:
        raise InputError(f"--into {page}: it has no line `<!-- study {name} {budget}: HEADING -->`.")
    page.write_text(text, encoding="utf-8")
    return count
