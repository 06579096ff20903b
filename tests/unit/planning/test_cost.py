"""Multiply-adds of a token, against arithmetic by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

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


def test_every_target_of_a_language_model_has_a_softmax(tmp_path: Path) -> None:
    """Of a pair of towers, in whose attention a learned key and value stand beside the words, as one more of them."""
    flags = "--arch bi_transformer_lm --future-target --past-target --share-decoder-input-output-embed "
    flags += f"--decoder-embed-dim {WIDTH} --decoder-layers 1 --decoder-attention-heads 2"
    tower = 4 * WIDTH * WIDTH + 2 * WIDTH * FFN + 2 * (LENGTH + 1) ** 2 * WIDTH / LENGTH
    found = cost(flags, tmp_path)
    assert found.train == pytest.approx(3 * 2 * (tower + TYPES * WIDTH))
    assert found.read == pytest.approx(2 * (tower + TYPES * WIDTH))


SIZES = f"--decoder-layers 1 --decoder-embed-dim {WIDTH} --decoder-ffn-embed-dim {FFN} --decoder-attention-heads 2"


@pytest.mark.parametrize(
    "flags",
    [
        f"--arch transformer_lm {SIZES} --decoder-output-dim {WIDTH} --decoder-input-dim {WIDTH}",
        f"--arch bi_transformer_lm {SIZES}",
        "--arch transformer_tiny",
    ],
)
def test_what_waits_for_the_backward_pass_is_what_another_sentence_adds(flags: str, tmp_path: Path) -> None:
    """To a model with real weights that is trained, with its dropout's masks."""
    words = f"{flags} --dropout 0.1 --max-tokens 40 --max-update 5".split()
    request = read_flags(words, made_up(tmp_path, TYPES, None, LENGTH, {}), 1)
    task = request.task
    model, criterion = task.build_model(request.cfg.model).train(), task.build_criterion(request.cfg.criterion)
    own = {weight.untyped_storage().data_ptr() for weight in model.state_dict().values()}

    def kept(sentences: int) -> int:
        rows = torch.full((sentences, LENGTH), 7)
        target = rows.clone() if flags.startswith("--arch transformer_lm") else rows  # one behind the text
        inputs = {"src_tokens": rows, "src_lengths": torch.full((sentences,), LENGTH)}
        inputs |= {"prev_output_tokens": rows.clone()} if request.sequence_to_sequence else {}
        found: dict[int, torch.Tensor] = {}

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            found.setdefault(tensor.untyped_storage().data_ptr(), tensor)
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            loss = criterion(model, {"net_input": inputs, "target": target, "ntokens": rows.numel()})[0]
        assert loss.requires_grad
        return sum(tensor.untyped_storage().nbytes() for place, tensor in found.items() if place not in own)

    saved = count(request, LENGTH).saved
    assert saved.floats + saved.others + saved.logits == kept(5) - kept(4)


def test_a_language_model_that_cannot_write_is_read(tmp_path: Path) -> None:
    """For what a forward pass costs, of the training's three."""
    flags = f"--arch bi_transformer_lm --decoder-embed-dim {WIDTH} --decoder-layers 1 --decoder-attention-heads 2"
    found = cost(flags, tmp_path)
    assert found.write is None
    assert found.read == pytest.approx(found.train / 3)
