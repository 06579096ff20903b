"""Multiply-adds of a token, against arithmetic by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

import lmfusion
from lmfusion.planning.cost import Cost, count
from lmfusion.planning.model import read_flags
from lmfusion.planning.text import made_up

lmfusion.install()
TYPES, LENGTH, WIDTH, FFN = 50, 10, 16, 24


def cost(flags: str, folder: Path) -> Cost:
    """What a token costs on made-up text."""
    words = f"{flags} --decoder-ffn-embed-dim {FFN} --max-tokens 40 --max-update 5".split()
    return count(read_flags(words, made_up(folder, TYPES, None, LENGTH, {}), 1), LENGTH)


def test_a_translation_models_multiply_adds_by_hand(tmp_path: Path) -> None:
    """Of an encoder of two layers and a decoder of one."""
    flags = f"--arch transformer --encoder-embed-dim {WIDTH} --decoder-embed-dim {WIDTH} --encoder-ffn-embed-dim {FFN} "
    flags += "--encoder-layers 2 --decoder-layers 1 --encoder-attention-heads 2 --decoder-attention-heads 2"
    found = cost(flags, tmp_path)
    block = 4 * WIDTH * WIDTH + 2 * WIDTH * FFN + 2 * LENGTH * WIDTH
    across = 4 * WIDTH * WIDTH + 2 * LENGTH * WIDTH
    assert found.read == 2 * block
    # Step by step the prefix is half the square, and one more; keys and values of the source are made once.
    assert found.write == block + across + TYPES * WIDTH - (LENGTH - 1) * WIDTH
    assert found.train == 3 * (3 * block + across + TYPES * WIDTH)


def test_a_language_model_that_cannot_write_is_read(tmp_path: Path) -> None:
    """For what a forward pass costs, of the training's three."""
    flags = f"--arch bi_transformer_lm --decoder-embed-dim {WIDTH} --decoder-layers 1 --decoder-attention-heads 2"
    found = cost(flags, tmp_path)
    assert found.write is None
    assert found.read == pytest.approx(found.train / 3)
