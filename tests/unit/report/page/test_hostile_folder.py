"""A run folder from a stranger: nothing outside it gets onto the page, and none of its text becomes markup."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from lmfusion import cli
from lmfusion.report import compare
from lmfusion.report.page.markdown import code_block, escape, escape_cell
from lmfusion.runs import provenance

SECRET = "root:x:0:0"
HOSTILE = [
    "<script>alert(1)</script>",
    "[click](javascript:alert(1)) ![x](http://example.org/x.png) <http://example.org>",
    "a | b ` c *d* __e__ ~~f~~ \\| &lt;img&gt; snake_case # no heading",
]


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file outside all run folders, with as many lines as the test set."""
    path = tmp_path / "private" / "passwd"
    path.parent.mkdir()
    path.write_text("".join(f"{SECRET} {number}\n" for number in range(3)), encoding="utf-8")
    return path


def edit(path: Path, name: str, change: Callable[[dict], object]) -> None:
    """Change a JSON file of a run folder."""
    content = json.loads((path / name).read_text())
    change(content)
    (path / name).write_text(json.dumps(content))


def link(path: Path, name: str, target: Path) -> None:
    """Put a link in the place of a file."""
    (path / name).unlink(missing_ok=True)
    (path / name).symlink_to(target)


def named(path: Path, name: str) -> None:
    edit(path, "scores.json", lambda scores: scores["test"].update(hypotheses=name))


def renamed_data_set(path: Path, secret: Path) -> None:
    secret.rename(secret.with_suffix(".hyp"))

    def change(scores: dict) -> None:
        entry = scores.pop("test")
        entry.pop("hypotheses")
        scores[f"../../../private/{secret.name}"] = entry

    edit(path, "scores.json", change)


ATTACKS = {
    "absolute": lambda path, secret: named(path, str(secret)),
    "upwards": lambda path, secret: named(path, "../../private/passwd"),
    "through the name of the test set": renamed_data_set,
    "link": lambda path, secret: link(path, "test.hyp", secret),
    "link to a folder": lambda path, secret: (link(path, "in", secret.parent), named(path, "in/passwd")),
    "training log": lambda path, secret: link(path, "train.log", secret),
    "generation log": lambda path, secret: link(path, "generate.log", secret),
    "scores": lambda path, secret: link(path, "scores.json", secret),
    "record": lambda path, secret: link(path, "run.json", secret),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_file_outside_the_folder_is_read_and_it_is_named_as_unreadable(
    attack: str, maker, secret: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, reference = maker.texts()
    entry = {**maker.bleu(10.0), "reference_sha256": provenance.hash_file(reference)}
    path = maker.run("stranger", scores={"test": entry})
    ATTACKS[attack](path, secret)
    words = ["report", str(path), "--out", str(tmp_path / "page"), "--source", str(source), "--reference"]
    assert cli.main([*words, str(reference)]) == 2
    said = capsys.readouterr().err
    assert "leads out of the run folder" in said
    assert path.name in said
    written = [file for file in (tmp_path / "page").iterdir() if file.suffix in (".html", ".md", ".csv", ".svg")]
    assert len(written) >= 3
    assert not [file.name for file in written if SECRET in file.read_text(encoding="utf-8")]


def test_a_run_folder_that_is_itself_a_link_is_read_as_ever(maker, tmp_path: Path) -> None:
    path = maker.run("run", bleu=10.0)
    (tmp_path / "linked").symlink_to(path)
    assert cli.main(["report", str(tmp_path / "linked"), "--out", str(tmp_path / "page")]) == 0


def test_the_comparison_on_the_terminal_reads_no_file_outside(
    maker, secret: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, reference = maker.texts()
    runs = [maker.run("one", bleu=1.0), maker.run("two", bleu=2.0)]
    named(runs[1], str(secret))
    link(runs[1], "test.hyp", secret)
    words = ["compare", f"a={runs[0]}", f"b={runs[1]}", "--source", source, "--reference", reference]
    monkeypatch.setattr(sys, "argv", [str(word) for word in words])
    assert compare.main() == 2
    captured = capsys.readouterr()
    assert "leads out of the run folder" in captured.err
    assert SECRET not in captured.out


def test_a_text_outside_the_folder_is_shown_only_if_it_is_the_one_that_was_scored(
    maker, secret: Path, tmp_path: Path
) -> None:
    digest = provenance.hash_file(secret)
    shown = {}
    for known in (True, False):
        texts = {name: str(secret) for name in ("source", "reference")}
        texts.update({f"{name}_sha256": digest if known else "0" * 64 for name in ("source", "reference")})
        path = maker.run(f"known-{known}", scores={"test": {**maker.bleu(1.0), **texts}})
        out = tmp_path / f"page-{known}"
        assert cli.main(["report", str(path), "--out", str(out)]) == 0
        shown[known] = SECRET in (out / "report.html").read_text(encoding="utf-8")
    assert shown == {True: True, False: False}


def test_a_model_whose_side_is_no_side_is_refused_and_gets_into_no_file_name(maker, tmp_path: Path) -> None:
    mix = {"side": '../"><script>', "gamma": 1.0, "shares": {"embedding": 1.0}}
    path = maker.run("stranger", "src_elmo", bleu=1.0, model={"trainable": 1, "frozen": 1, "mixes": [mix]})
    assert cli.main(["report", str(path), "--out", str(tmp_path / "page")]) == 2
    assert "<script>" not in (tmp_path / "page" / "report.html").read_text(encoding="utf-8")


NUMBERS = {
    "a time that is none": ("run.json", lambda run: run["steps"]["train"].update(seconds=float("nan"))),
    "a time without end": ("run.json", lambda run: run["steps"]["train"].update(seconds=float("inf"))),
    "more parameters than a float holds": ("run.json", lambda run: run.update(model={"trainable": 10**400})),
    "a score that no float holds": ("scores.json", lambda scores: scores["test"].update(bleu=10**400)),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers_that_no_run_has_are_named_as_unreadable(
    case: str, maker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = maker.run("stranger", bleu=10.0)
    edit(path, *NUMBERS[case])
    assert cli.main(["report", str(path), "--out", str(tmp_path / "page")]) == 2
    assert path.name in capsys.readouterr().err
    assert (tmp_path / "page" / "report.html").is_file()


@pytest.mark.parametrize("name", ["run.json", "scores.json", "train.log", "test.hyp"])
def test_what_is_no_file_is_not_waited_for(
    maker, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Nobody writes into this pipe."""
    path = maker.run("stranger", bleu=10.0)
    (path / name).unlink()
    os.mkfifo(path / name)
    assert cli.main(["report", str(path), "--out", str(tmp_path / "page")]) == 2
    assert name in capsys.readouterr().err


class Seen(HTMLParser):
    """What a browser would make of a page: its elements, its pictures, and the text of its cells and paragraphs."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.pictures: list[str] = []
        self.texts: list[str] = [""]
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "img":
            self.pictures.append(str(dict(attrs)["src"]))
        if tag in ("td", "p", "h2", "h3", "li"):
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        self.texts[-1] += data


def rendered(markdown: str) -> Seen:
    """Render as lenient viewers do: HTML is let through, tables, strikethrough and bare links are known."""
    return Seen(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown))


def test_text_of_hypotheses_references_and_names_is_no_markup_in_the_markdown_report(maker, tmp_path: Path) -> None:
    source, reference = maker.texts()
    for path in (source, reference):
        path.write_text("".join(f"{line}\n" for line in HOSTILE), encoding="utf-8")
    entry = {**maker.bleu(10.0), "reference_sha256": provenance.hash_file(reference)}
    entry["signature"] = "BLEU|x\n\n<script>\n\n# heading"
    path = maker.run("base <script>", scores={"test": entry}, flags="```\n<script>")
    (path / "test.hyp").write_text("".join(f"{line}\n" for line in HOSTILE), encoding="utf-8")
    words = ["report", str(path), "--out", str(tmp_path / "page"), "--source", str(source), "--reference"]
    assert cli.main([*words, str(reference), "--title", "<script>"]) == 0
    text = (tmp_path / "page" / "report.md").read_text(encoding="utf-8")
    before, commands = text.split("### Commands of")
    assert "<script" not in before
    seen = rendered(text)
    assert seen.tags <= set("h1 h2 h3 p ul li strong table thead tbody tr th td img pre code".split())
    assert all((tmp_path / "page" / name).is_file() for name in seen.pictures), "figures of our own"
    texts = [shown.strip() for shown in seen.texts]
    assert [texts.count(line) for line in HOSTILE] == [2, 2, 2], "as reference and as output, and as it is"
    assert rendered(f"### Commands of{commands}").tags == {"h3", "pre", "code"}


@pytest.mark.parametrize("text", [*HOSTILE, "_a_ b_c __d", "x\r\n\x1b[2J# y", "\\*", "a\\", "&amp;"])
def test_escaped_text_is_shown_as_it_was(text: str) -> None:
    shown = re.sub(r"[\x00-\x1f]+", " ", text)
    assert rendered(f"x {escape(text)}").texts[-1].strip() == f"x {shown}"
    assert f"{shown}" in rendered(f"| a |\n|---|\n| x{escape_cell(text)} |").texts[-1]
    assert rendered(f"x {escape(text)}").tags == {"p"}


def test_nothing_in_a_block_of_code_ends_it() -> None:
    assert rendered(code_block("a\n```\n<script>\n````\n# b", "bash")).tags == {"pre", "code"}
