"""The page in a real browser without a screen: it opens, complains of nothing, and fits a phone."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lmfusion.cli import main

PLAYWRIGHT = sorted(Path.home().glob(".cache/ms-playwright/chromium*/*/*chrom*"))
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, (*NAMES, *map(str, PLAYWRIGHT)))), None)
PHONE, DESKTOP = 390, "1280,900"
MEASURE = """<script>
addEventListener("load", () => {
  const of = (selector) => [...document.querySelectorAll(selector)];
  const shown = (element) => element.getBoundingClientRect().width > 20 && element.getBoundingClientRect().height > 20;
  const style = getComputedStyle(document.body);
  document.body.dataset.measured = JSON.stringify({
    tables: of("table").filter(shown).length, figures: of("figure svg").filter(shown).length,
    ink: style.color, paper: style.backgroundColor,
    curve: getComputedStyle(document.querySelector("#figure-difference path[style*='--c1d4ed8']")).stroke,
  });
});
</script></body>"""
MEASURE_FRAME = """<script>
addEventListener("load", () => {
  const inside = document.querySelector("iframe").contentDocument;
  document.body.dataset.page = inside.documentElement.scrollWidth;
  document.body.dataset.figure = inside.querySelector("figure svg").getBoundingClientRect().width;
  const hidden = (box) => box.scrollWidth > box.clientWidth + 1;
  const boxes = [...inside.querySelectorAll(".scroll")];
  const hinted = (box) => box.previousElementSibling?.matches(".hint") && box.previousElementSibling.offsetHeight > 0;
  document.body.dataset.cut = boxes.filter(hidden).length;
  document.body.dataset.unhinted = boxes.filter((box) => hidden(box) && !hinted(box)
    && box.querySelectorAll("thead th").length > 4).length;
});
</script></body>"""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")]


@pytest.fixture
def page(maker, tmp_path: Path) -> Path:
    """A report of two rows and two sizes."""
    shares = {"embedding": 0.5, "layer 1": 0.3, "joined": 0.2}
    mix = {"mixes": [{"side": "source", "gamma": 1.5, "shares": shares}], "language_models": []}
    for size in (2500, 5000):
        maker.run(f"base-{size}", bleu=10.0, size=size)
        model = {"trainable": 1, "frozen": 1, **mix}
        path = maker.run(f"elmo-{size}", "src_elmo", bleu=12.0, size=size, model=model)
        lines = [f"S-{n}\tsource {n}\nT-{n}\treference {n}\nH-{n}\t0\tx\nD-{n}\t0\tx\n" for n in range(3)]
        (path / "generate.log").write_text("".join(lines))
        (path / "test.hyp").write_text("a\n" + 400 * "endless" + "\nc\n")
    assert main(["report", str(maker.folder), "--out", str(tmp_path / "out")]) == 0
    return tmp_path / "out" / "report.html"


def browse(page: Path, size: str, dark: bool, profile: Path) -> tuple[str, list[str]]:
    """The page's content after its scripts have run, and what the browser wrote to its console."""
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--user-data-dir={profile}", f"--window-size={size}", "--enable-logging=stderr", "--v=0"]
    command += [f"--blink-settings=preferredColorScheme={0 if dark else 1}", "--dump-dom", page.as_uri()]
    environment = {**os.environ, "HOME": str(profile)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def measured(page: Path, size: str, dark: bool, tmp_path: Path) -> dict[str, object]:
    """What a script sees in a copy of the page that lets scripts run."""
    text = page.read_text(encoding="utf-8")
    copy = tmp_path / "measured.html"
    open_text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    copy.write_text(open_text.replace("</body>", MEASURE), encoding="utf-8")
    dom, _ = browse(copy, size, dark, tmp_path / "profile")
    found = re.search(r'data-measured="([^"]*)"', dom)
    assert found, dom[-2000:]
    values: dict[str, object] = json.loads(found[1].replace("&quot;", '"'))
    return values


def test_it_opens_without_a_word_on_the_console_and_has_its_figures_and_tables(page: Path, tmp_path: Path) -> None:
    dom, console = browse(page, DESKTOP, False, tmp_path / "profile")
    assert console == []
    for expected in ('id="figure-difference"', 'id="table-bleu"', 'id="table-speed"', "<mark>", "<svg", "</html>"):
        assert expected in dom


def test_the_console_is_heard(page: Path, tmp_path: Path) -> None:
    """The policy of the page forbids to fetch anything; a page that tries says so, and this test hears it."""
    text = page.read_text(encoding="utf-8").replace("</body>", '<img src="https://example.org/x.png"></body>')
    bad = tmp_path / "bad.html"
    bad.write_text(text, encoding="utf-8")
    _, console = browse(bad, DESKTOP, False, tmp_path / "profile")
    assert any("Content Security Policy" in line for line in console)


def test_light_and_dark_pages_have_their_own_ink_paper_and_curves(page: Path, tmp_path: Path) -> None:
    light, dark = (measured(page, DESKTOP, is_dark, tmp_path) for is_dark in (False, True))
    assert (light["ink"], light["paper"]) == ("rgb(28, 33, 40)", "rgb(255, 255, 255)")
    assert (dark["ink"], dark["paper"]) == ("rgb(230, 232, 235)", "rgb(20, 24, 29)")
    assert (light["curve"], dark["curve"]) == ("rgb(29, 78, 216)", "rgb(130, 170, 255)")
    assert light["figures"] == dark["figures"] == 4
    assert light["tables"] == dark["tables"] == 8


def test_on_a_phone_nothing_is_wider_than_the_screen(page: Path, tmp_path: Path) -> None:
    """In a frame as wide as a phone, for not every browser makes so small a window."""
    wrapper = tmp_path / "phone.html"
    text = html.escape(page.read_text(encoding="utf-8"))
    frame = f'<iframe style="width: {PHONE}px; height: 844px; border: 0" srcdoc="{text}"></iframe>'
    wrapper.write_text(f"<!doctype html><body>{frame}{MEASURE_FRAME}", encoding="utf-8")
    dom, _ = browse(wrapper, DESKTOP, False, tmp_path / "profile")
    width, figure = re.findall(r'data-(?:page|figure)="([\d.]+)"', dom)
    assert int(width) == PHONE
    assert PHONE * 0.8 < float(figure) < PHONE
    cut, unhinted = (int(re.findall(rf'data-{name}="(\d+)"', dom)[0]) for name in ("cut", "unhinted"))
    assert cut > 0
    assert unhinted == 0
