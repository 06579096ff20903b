"""Ranks of states: matrices whose singular values are known, the published reference, and the command."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lmfusion.cli import main
from lmfusion.errors import InputError
from lmfusion.lm.rank import layer_ranks, rank_of


def with_values(values: list[float], rows: int, columns: int) -> torch.Tensor:
    """A matrix with these singular values, in directions of no special kind."""
    left, right = (torch.linalg.qr(torch.randn(size, size, dtype=torch.float64))[0] for size in (rows, columns))
    return left[:, : len(values)] @ torch.diag(torch.tensor(values, dtype=torch.float64)) @ right[: len(values)]


def test_equal_values_share_equally_and_their_number_is_the_rank() -> None:
    found = rank_of(with_values([3.0] * 25, 60, 40))
    assert (found.share, found.share_of_squares) == (pytest.approx(0.4), pytest.approx(0.4))
    assert found.effective == pytest.approx(25)


def test_values_that_differ_count_by_size() -> None:
    values = [8.0, 4.0] + [1.0] * 20
    found = rank_of(with_values(values, 30, 50))
    shares = [value / sum(values) for value in values]
    assert found.share == pytest.approx(20 / 32)
    assert found.share_of_squares == pytest.approx((64 + 16 + 8) / (64 + 16 + 20))
    assert found.effective == pytest.approx(math.exp(-sum(share * math.log(share) for share in shares)))


@pytest.mark.parametrize(("rows", "share"), [(20, 0.53), (128, 0.11)])
def test_noise_has_the_shares_by_which_a_text_must_be_judged(rows: int, share: float) -> None:
    found = rank_of(torch.from_numpy(np.random.default_rng(4).standard_normal((rows, 768))))
    assert found.share == pytest.approx(share, abs=0.005)


@torch.no_grad()
def test_layers_are_those_of_all_words_without_the_frame(make_cloze: Any) -> None:
    lm = make_cloze()
    sentences = ["w1 w5 w0 w9 w4 w2 w7", "w3 w8", "w6 w11 w12 w13 w10 w9 w1 w0"]
    found = layer_ranks(lm, sentences)
    assert [layer.layer for layer in found] == lm.state_names
    for number, layer in enumerate(found):
        words = [lm.layer_states(lm.encode(sentence))[number][0, 1:-1] for sentence in sentences]
        values = np.linalg.svd(torch.cat(words).double().numpy(), compute_uv=False)
        assert (layer.words, layer.channels) == (17, lm.state_dim)
        assert layer.states.share == pytest.approx(values[:10].sum() / values.sum())
        assert layer.random != layer.states
    assert len({layer.random for layer in found}) == 1


def test_text_in_other_symbols_is_measured_with_a_warning(make_cloze: Any, caplog: pytest.LogCaptureFixture) -> None:
    known = "w1 w5 w0 w9 w4 w2 w7 w3 w8 w6 w11"
    layer_ranks(make_cloze(), [known])
    assert not caplog.records
    layer_ranks(make_cloze(), [f"{known} xyz zyx x y"])
    assert "27%" in caplog.text


def test_text_that_cannot_be_judged_is_refused(make_cloze: Any) -> None:
    with pytest.raises(InputError, match="2 words"):
        layer_ranks(make_cloze(), ["w1 w2"])
    with pytest.raises(InputError, match="0 words"):
        layer_ranks(make_cloze(), [])
    with pytest.raises(InputError, match="not finite"):
        rank_of(torch.tensor([[1.0, float("nan")]]))


def test_the_command_prints_every_layer_and_the_reference(
    make_cloze: Any, save_lm: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, text = save_lm(make_cloze()), tmp_path / "text"
    text.write_text("w1 w5 w0 w9 w4 w2 w7\n\nw6 w11 w12 w13 w10 w9 w1 w0\n", encoding="utf-8")
    main(["inspect", str(path), "--rank", "--text", str(text)])
    lines = capsys.readouterr().out.splitlines()
    assert "15 words" in lines[0]
    assert [line.split("  ")[0] for line in lines[2:]][-1] == "random numbers"
    main(["inspect", str(path), "--rank", "--text", str(text), "--json", "--sentences", "2"])
    assert len(json.loads(capsys.readouterr().out)) == len(lines) - 3


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--rank"], "--text FILE"),
        (["--sentences", "3"], "without --rank"),
        (["--rank", "--text", "none.txt", "--card"], "--card"),
        (["--rank", "--text", "none.txt", "--sentences", "0"], "--sentences 0"),
    ],
)
def test_flags_that_lack_each_other_are_refused(flags: list[str], message: str, capsys: Any) -> None:
    assert main(["inspect", "lm.pt", *flags]) != 0
    assert message in capsys.readouterr().err
