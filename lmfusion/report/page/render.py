"""A report as files: an HTML page that needs nothing else, Markdown, tables as CSV, figures as SVG and PNG."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from lmfusion.checkpoint.atomic_files import replacing
from lmfusion.errors import InputError
from lmfusion.report.page import bootstrap, examples
from lmfusion.report.page.build import Block, Report
from lmfusion.report.page.colours import DARK
from lmfusion.report.page.examples import Examples
from lmfusion.report.page.figure import Figure, variable
from lmfusion.report.page.markdown import code_block, escape
from lmfusion.report.page.notices import BAD_INPUT, NOTE, WARNING
from lmfusion.report.page.table import Table, to_csv, to_markdown
from lmfusion.report.verdict import Verdict

PAGE, MARKDOWN = "report.html", "report.md"


def write(report: Report, folder: Path) -> list[Path]:
    """Write everything into a folder, the page first; other files there are left alone.

    Raises:
        InputError: the folder cannot be made or written to.
    """
    contents: dict[str, bytes] = {PAGE: to_html(report).encode(), MARKDOWN: markdown(report).encode()}
    for block in _blocks(report):
        if isinstance(block, Table):
            contents[f"{block.name}.csv"] = to_csv(block).encode()
        elif isinstance(block, Figure):
            contents[f"{block.name}.svg"], contents[f"{block.name}.png"] = block.svg.encode(), block.png
    if report.tests:
        contents[bootstrap.FILE] = report.tests.encode()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            with replacing(folder / name) as stream:
                stream.write(content)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: {error.strerror}. Name another folder with --out.") from error
    return [folder / name for name in contents]


def to_html(report: Report) -> str:
    """Return the page."""
    environment = Environment(
        loader=PackageLoader("lmfusion.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests.update(
        table=lambda block: isinstance(block, Table),
        figure=lambda block: isinstance(block, Figure),
        examples=lambda block: isinstance(block, Examples),
        verdict=lambda block: isinstance(block, Verdict),
    )
    return environment.get_template("page.html").render(
        report=report,
        notices=[(kind, report.notices.of_kind(kind)) for kind in (BAD_INPUT, WARNING, NOTE)],
        colours=[(variable(light), light, dark) for light, dark in DARK.items()],
        written=_today(),
    )


def markdown(report: Report) -> str:
    """Return the same as Markdown; figures are named, for they are files beside it."""
    parts = [f"# {escape(report.title)}\n", f"Written {_today()} by `lmfusion report`.\n"]
    parts += [f"- **{notice.kind}**: {escape(notice.text)}\n" for notice in report.notices.found]
    for section in report.sections:
        parts.append(f"## {escape(section.title)}\n")
        for block in section.blocks:
            if isinstance(block, Table):
                parts.append(to_markdown(block))
            elif isinstance(block, Verdict):
                parts.append(_verdict_line(block))
            elif isinstance(block, Figure):
                title = escape(block.title)
                parts.append(f"### {title}\n\n![{title}]({block.name}.svg)\n\n{escape(block.caption)}\n")
            else:
                parts.append(examples.to_markdown(block))
    for each in report.commands:
        lines = "\n".join(f"# {step}\n{command}" for step, command in each.steps)
        parts.append(f"### Commands of {escape(each.run)}\n\n{code_block(lines, 'bash')}\n")
    return "\n".join(parts)


def _verdict_line(verdict: Verdict) -> str:
    """Return a verdict as Markdown, in bold if it is more than chance."""
    mark = "**" if verdict.holds else ""
    return f"{mark}{escape(verdict.text)}{mark}\n"


def _blocks(report: Report) -> Iterator[Block]:
    for section in report.sections:
        yield from section.blocks


def _today() -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
