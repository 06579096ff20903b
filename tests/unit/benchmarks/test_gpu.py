"""The GPU's benchmark, rehearsed on a CPU: what it prints, writes and leaves out, not how fast it is."""

from __future__ import annotations

import json
import math
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from lmfusion.lm.transformer.layout import RowLayout

Module = Callable[[str], Any]
TINY = "--tiny --device cpu --threads 1 --rounds 1"


def run(module: Module, path: Path, options: str) -> dict[str, Any]:
    module("gpu").main([*TINY.split(), *options.split(), "--json", str(path)])
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_sections_are_measured_and_shown_as_a_page(module: Module, tmp_path: Path) -> None:
    found = run(module, tmp_path / "gpu.json", "--sections peak attention states")
    figures = found["figures"]
    assert figures["failed"] == {}
    assert figures["peak"]["peaks"]["fp32"] > 0
    assert figures["attention"]["64"] == {"cuDNN": None, "efficient": None, "math": 0}
    for name in ("cloze", "causal"):
        assert figures["states"][f"{name}, fp32"] == [0.0, 0.0, 1.0]
        assert 0 < figures["states"][f"{name}, fp16"][0] < figures["states"][f"{name}, bf16"][0] < 0.1
    page = module("render").page(tmp_path)
    assert "| copy of 2 MB, read and written |" in page
    assert "| cloze, bf16 |" in page


def test_a_section_that_fails_takes_nothing_with_it(
    module: Module, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(args: Any, budget: Any, found: Any) -> None:
        found.figures["half"] = 1
        raise RuntimeError("no such kernel")

    monkeypatch.setitem(module("gpu").SECTIONS, "attention", fail)
    path = tmp_path / "gpu.json"
    with pytest.raises(SystemExit, match=r"these sections failed.*: attention"):
        run(module, path, "--sections attention peak")
    figures = json.loads(path.read_text(encoding="utf-8"))["figures"]
    assert figures["failed"] == {"attention": "RuntimeError: no such kernel"}
    assert figures["attention"] == {"half": 1}
    assert figures["peak"]["copy_bytes_per_second"] > 0


def test_what_takes_too_long_is_ended(module: Module, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def wait(args: Any, budget: Any, found: Any) -> None:
        while True:
            torch.ones(10).sum()

    monkeypatch.setitem(module("gpu").SECTIONS, "attention", wait)
    monkeypatch.setattr(module("on_gpu.sections"), "AROUND", 0.0)
    figures = run(module, tmp_path / "gpu.json", "--sections attention --minutes 0.005")["figures"]
    assert (figures["ended"], figures["failed"]) == (["attention"], {})


def test_rows_that_do_not_fit_are_named(module: Module, tmp_path: Path) -> None:
    figures = run(module, tmp_path / "gpu.json", "--sections rows --minutes 0.5 --tokens 72")["figures"]
    assert "SRC-FT, 72" in figures["rows"]["skipped"]


def test_the_lines_that_wait_and_the_kernels_of_attention_are_told(module: Module) -> None:
    watching = module("on_gpu.watching")
    mask = torch.tensor([[False, False, True], [False, False, False]])
    places = watching.waits(lambda: RowLayout(mask))
    assert sum(places.values()) >= 2
    assert all(place.startswith("lmfusion/lm/transformer/layout.py:") for place in places)
    query = torch.randn(1, 1, 4, 8)
    found = watching.kernels(lambda: torch.nn.functional.scaled_dot_product_attention(query, query, query))
    assert found == {"flash (CPU)": 1}


def test_a_folder_of_the_same_name_is_not_taken_for_the_package(module: Module, tmp_path: Path) -> None:
    script = tmp_path / "lmfusion" / "elsewhere.py"
    script.parent.mkdir()
    script.write_text("import torch\ntorch.ones(2, 2).nonzero()\n", encoding="utf-8")
    (place,) = module("on_gpu.watching").waits(lambda: runpy.run_path(str(script)))
    assert "elsewhere" not in place


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_a_gpu_that_is_not_there_is_refused(module: Module, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        module("gpu").main(["--device", "cuda"])
    assert "--device cuda: PyTorch sees no GPU here" in capsys.readouterr().err


@pytest.mark.slow
def test_everything_is_rehearsed(module: Module, tmp_path: Path) -> None:
    found = run(module, tmp_path / "gpu.json", "")
    figures = found["figures"]
    assert (figures["failed"], figures["ended"]) == ({}, [])
    assert set(figures) == {"failed", "ended", *module("gpu").SECTIONS}
    rows = figures["rows"]
    assert rows["skipped"] == []
    for name in ("fairseq transformer", "baseline", "SRC-ELMO", "SRC-FT", "TGT-ELMO", "TGT-FT", "cloze LM"):
        for tokens in (72, 144):
            assert rows[f"{name}, {tokens}"]["tokens"] > 0
    assert rows["SRC-FT, 72"]["operations"] > rows["SRC-ELMO, 72"]["operations"]
    assert set(figures["generation"]) == {"1", "3"}
    assert {"fairseq", "512 MiB"} <= set(figures["chunks"]["seconds"])
    losses = figures["precisions"]["SRC-ELMO, --fp16 --fp16-no-flatten-grads"]["losses"]
    assert losses[-1] < losses[0]
    assert figures["precisions"]["skipped"] == ["--fp16", "--amp"]
    assert set(figures["compiled"]["seconds"]) == {"as it is", "compiled"}


def test_an_update_that_was_skipped_is_neither_counted_nor_timed(module: Module) -> None:
    described = module("on_gpu.precisions").described
    figures = {"losses": [math.nan, 9.0, math.nan, 12.0, 7.5], "scale": 8.0, "peak_bytes": 2 * 10**9}
    figures["seconds"] = [3.0, 2.0, 0.001, 0.04, 0.02]
    name, counted, first, lowest, last, milliseconds, _, scale = described("baseline, --fp16", figures)
    assert (name, counted, first, lowest, last) == ("baseline, --fp16", "3 of 5", "9.000", "7.500", "7.500")
    assert (milliseconds, scale) == ("30.0", "8")
    nothing = {"losses": [math.nan], "seconds": [1.0], "scale": None, "peak_bytes": 0}
    assert described("SRC-FT", nothing)[2:6] == ["none"] * 4
