"""README, RESULTS, docs/ and the studies' pages: commands that parse, files and headings that exist."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path

import pytest

from lmfusion.cli import build_parser

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "RESULTS.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "recipes").glob("*.md")]
)
BLOCK = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
LINK_TO_HEADING = re.compile(r"\]\(([^)#\s:]*)#([^)]+)\)")
SHELL = (">", ">>", "<", "|", "&&", ";", "2>&1")


def without_blocks(page: Path) -> str:
    """Return a page's text without what it shows in blocks, where signs mean something else."""
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return GitHub's names of a page's headings: small letters, hyphens for spaces, repeated ones numbered."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", without_blocks(page), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "]", heading).lower()).replace(" ", "-")
        numbered = (f"{name}-{number}" for number in itertools.count(1))
        found.add(next(each for each in itertools.chain([name], numbered) if each not in found))
    return found


def commands(page: Path) -> list[list[str]]:
    """The lmfusion commands of a page's shell blocks, as words up to what the shell takes."""
    found = []
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("lmfusion "):
                words = shlex.split(line, comments=True)
                end = next((place for place, word in enumerate(words) if word in SHELL), len(words))
                found.append([word for word in words[1:end] if word != "…"])
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_what_the_command_line_takes(page: Path) -> None:
    for words in commands(page):
        build_parser().parse_args(words)  # ends the test by SystemExit where it does not


def test_the_pages_have_commands() -> None:
    assert len(commands(ROOT / "docs" / "own_text.md")) >= 6
    assert len(commands(ROOT / "README.md")) >= 4


def test_the_readmes_commands_are_those_of_the_pages_that_are_run() -> None:
    """tests/system/test_docs.py runs the pages; a page may add options."""
    run = [words for page in PAGES if page.name != "README.md" for words in commands(page)]
    for words in commands(ROOT / "README.md"):
        assert any(set(words) <= set(others) for others in run), words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_linked_files_exist(page: Path) -> None:
    for link in LINK.findall(without_blocks(page)):
        if "://" not in link:
            assert (page.parent / link).exists(), link


def test_a_headings_anchor_is_githubs(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# English–German, 2 + 3: `a_b`?\n\n```\n# none\n```\n## [More](x.md)\n## More\n", encoding="utf-8")
    assert anchors(page) == {"englishgerman-2--3-a_b", "more", "more-1"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_linked_headings_exist(page: Path) -> None:
    for link, anchor in LINK_TO_HEADING.findall(without_blocks(page)):
        target = page.parent / link if link else page
        assert anchor in anchors(target), f"{link}#{anchor}"
