"""lmfusion plan: counts against built models, arithmetic by hand, and what a real update holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data import indexed_dataset
from fairseq.trainer import Trainer

import lmfusion
from lmfusion import cli
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.inspection import inspect_checkpoint
from lmfusion.planning.machines import find
from lmfusion.planning.memory import optimizer_states, precision
from lmfusion.planning.model import read_flags
from lmfusion.planning.plan import Asked, Plan, make_plan
from lmfusion.planning.text import made_up

lmfusion.install()
SLOW = pytest.mark.slow
ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "pretrained" / "en-cloze.pt"
TYPES, LENGTH, WIDTH, FFN, LAYERS = 50, 10, 16, 24, 2
STACK = f"--decoder-embed-dim {WIDTH} --decoder-ffn-embed-dim {FFN} --decoder-layers {LAYERS} "
STACK += "--decoder-attention-heads 2 --max-tokens 40 --max-update 5 "
PAIRS = f"--encoder-embed-dim {WIDTH} --encoder-ffn-embed-dim {FFN} --encoder-layers {LAYERS} "
PAIRS += "--encoder-attention-heads 2 --decoder-output-dim 16 "
LM = "--arch transformer_lm --share-decoder-input-output-embed --decoder-input-dim 16 --decoder-output-dim 16 " + STACK


def plan(flags: str, **given: Any) -> Plan:
    """Plan with tiny numbers."""
    asked = {"types": TYPES, "data": None, "tokens": None, "length": LENGTH, "gpus": 1, "beam": 1, "share": 0.5}
    return make_plan(Asked(flags=flags.split(), machine=find("A100"), **{**asked, **given}))


def total(found: Plan) -> int:
    """All parameters of a plan."""
    return sum(part.parameters for part in found.parameters)


def block() -> int:
    """Multiply-adds of a decoder's block for a token of the whole square of attention."""
    return 4 * WIDTH * WIDTH + 2 * WIDTH * FFN + 2 * LENGTH * WIDTH


def test_language_models_multiply_adds_by_hand() -> None:
    found = plan(LM)
    forward = LAYERS * block() + WIDTH * TYPES
    assert found.train_macs == 3 * forward  # its embeddings are trained, so every input has a gradient
    # Step by step the prefix is half the square, and one more.
    assert found.write_macs == forward - LAYERS * (LENGTH - 1) * WIDTH


@pytest.mark.parametrize("arch", ["bi_transformer_lm", "uni_transformer_lm", "bi_recurrent_lm", "uni_recurrent_lm"])
def test_a_language_model_is_planned_alone_and_inside_another_model(arch: str) -> None:
    """With the targets that it is pretrained with, which nobody has to give."""
    size = f"--decoder-embed-dim {WIDTH} --decoder-layers 1 --max-tokens 40 --max-update 5"
    assert total(plan(f"--arch {arch} {size}")) > TYPES * WIDTH
    found = plan(f"--arch src_elmo_tiny --src-lm {arch} --max-tokens 40 --max-update 5")
    assert any(part.name.startswith("source LM") and not part.trained for part in found.parameters)


@pytest.mark.slow
def test_a_frozen_language_model_is_read_and_not_trained() -> None:
    alone = plan("--arch bi_transformer_lm --share-decoder-input-output-embed " + STACK)
    plain = plan("--arch transformer " + PAIRS + STACK, types=4000)
    fused = plan(f"--arch src_elmo --src-lm {SHIPPED} " + PAIRS + STACK, types=4000)
    inside = [part for part in fused.parameters if part.name.startswith("source LM")]
    assert sum(part.trained for part in inside) == 0
    assert sum(part.parameters for part in inside) == inspect_checkpoint(SHIPPED).total
    assert alone.write_macs is None
    # In place of the cell's own embeddings the language model is read once, without its softmax and a backward pass.
    assert plain.train_macs < fused.train_macs < plain.train_macs + 1.2 * (fused.read_macs - plain.read_macs)


@pytest.mark.parametrize(
    "arch",
    ["lmfusion"]
    + [pytest.param(arch, marks=SLOW) for arch in ("transformer", "lstm_lmfusion", "prefix_lm", "uni_recurrent_lm")],
)
def test_parameters_are_those_of_the_built_model(arch: str, tmp_path: Path) -> None:
    sizes = "--max-tokens 40 --max-update 5 --decoder-embed-dim 16 --decoder-layers 1 "
    sizes += (
        PAIRS + "--decoder-ffn-embed-dim 24 --decoder-attention-heads 2 " if arch in ("transformer", "lmfusion") else ""
    )
    flags = f"--arch {arch} {sizes}"
    request = read_flags(flags.split(), made_up(tmp_path, TYPES, None, LENGTH, {}), 1)
    built = request.task.build_model(request.cfg.model)
    assert total(plan(flags)) == sum(weight.numel() for weight in built.parameters())


@pytest.mark.slow
def test_a_shipped_model_has_the_parameters_its_flags_give() -> None:
    model = read_checkpoint(SHIPPED)["cfg"]["model"]
    names = [f"decoder_{name}" for name in ("embed_dim", "ffn_embed_dim", "layers", "attention_heads")]
    sizes = " ".join(f"--{name.replace('_', '-')} {model[name]}" for name in names)
    flags = f"--arch bi_transformer_lm --share-decoder-input-output-embed {sizes} --max-tokens 40 --max-update 5"
    types = len((ROOT / "pretrained" / "dict.txt").read_text(encoding="utf-8").splitlines()) + 4
    assert total(plan(flags, types=types)) == inspect_checkpoint(SHIPPED).total


@pytest.mark.parametrize(
    "optimizer", ["adam", *(pytest.param(name, marks=SLOW) for name in ("nag", "sgd", "adagrad", "adadelta", "adamax"))]
)
def test_weights_gradients_and_states_are_what_an_update_leaves(optimizer: str, tmp_path: Path) -> None:
    words = (LM + f"--optimizer {optimizer} --lr 0.001 --cpu").split()
    request = read_flags(words, made_up(tmp_path, TYPES, None, LENGTH, {}), 1)
    task = request.task
    model, criterion = task.build_model(request.cfg.model), task.build_criterion(request.cfg.criterion)
    trainer = Trainer(request.cfg, task, model, criterion)
    rows = torch.full((2, LENGTH), 5)
    batch = {"net_input": {"src_tokens": rows, "src_lengths": torch.tensor([LENGTH] * 2)}, "target": rows}
    trainer.train_step([{**batch, "ntokens": 20, "nsentences": 2, "id": torch.arange(2)}])
    weights = list(trainer.model.parameters())
    states = [value for state in trainer.optimizer.optimizer.state.values() for value in state.values()]
    held = sum(value.nbytes for value in states if torch.is_tensor(value) and value.dim())
    found = plan(" ".join(words)).memory
    assert found.weights == found.gradients == sum(weight.nbytes for weight in weights)
    assert found.gradients == sum(weight.grad.nbytes for weight in weights)
    assert found.optimizer == held
    assert optimizer_states(request.cfg) * total(plan(" ".join(words))) == held


@pytest.mark.slow
@pytest.mark.parametrize(("row", "arch", "layers"), [("cloze lmfusion", "bi_transformer_lm", 3)])
def test_memory_is_near_what_the_benchmark_measures(row: str, arch: str, layers: int) -> None:
    """What a process takes is above the plan, for gradients in flight and what its allocator rounds up."""
    sizes = "--size small --channels 128 --lm-layers 3 --vocabulary 4000 --threads 1"
    script = [sys.executable, str(ROOT / "benchmarks" / "pretraining.py"), *sizes.split()]
    taken = {}
    for tokens in (1500, 6000):
        command = [*script, "--tokens", str(tokens), "--peak-memory-of", row]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        taken[tokens] = json.loads(done.stdout.splitlines()[-1])["peak"]
    flags = f"--arch {arch} --share-decoder-input-output-embed --decoder-embed-dim 128 --decoder-ffn-embed-dim 512 "
    flags += f"--decoder-attention-heads 2 --decoder-layers {layers} --cpu "
    flags += "--criterion chunked_cross_entropy --max-update 5 "
    planned = {
        tokens: plan(f"{flags} --max-tokens {tokens}", types=4000, length=29).memory.total for tokens in (1500, 6000)
    }
    more = (taken[6000] - taken[1500]) / (planned[6000] - planned[1500])
    assert 1.0 < more < 1.9


@pytest.mark.slow
def test_half_precision_holds_two_copies() -> None:
    found, single = plan(LM + "--bf16").memory, plan(LM).memory
    weights = single.weights // 4
    assert (found.weights, found.gradients, found.optimizer) == (2 * weights, 2 * weights, 16 * weights)
    assert found.activations < single.activations


def test_hours_follow_from_operations() -> None:
    found = plan(LM + "--update-freq 3", gpus=4)
    assert found.tokens_per_update == 40 * 3 * 4
    seconds = 5 * found.tokens_per_update * 2 * found.train_macs / (4 * 0.5 * 19.5e12)
    assert found.hours == pytest.approx(seconds / 3600)


def test_epochs_end_where_the_text_does() -> None:
    flags = LM.replace("--max-update 5", "--max-epoch 3")
    found = plan(flags + "--keep-last-epochs 2", tokens=4000)
    assert (found.updates, found.epochs) == (300, 3.0)
    assert found.data_bytes == 4000 * 2 + 400 * 12
    assert found.checkpoints == 4  # last, best and two epochs


def test_an_epoch_reads_a_shard(tmp_path: Path) -> None:
    folders = []
    for number, sentences in enumerate((40, 60)):
        folder = tmp_path / f"shard{number}"
        folder.mkdir()
        made_up(folder, TYPES, None, LENGTH, {})
        builder = indexed_dataset.make_builder(str(folder / "train.bin"), "mmap", vocab_size=TYPES)
        for _ in range(sentences):
            builder.add_item(torch.full((LENGTH,), 5))
        builder.finalize(str(folder / "train.idx"))
        folders.append(folder)
    data = ":".join(map(str, folders))
    found = plan(LM.replace("--max-update 5", "--max-epoch 4"), data=data)
    assert (found.updates, found.epochs) == (4 * 1000 // 2 // 40, 2.0)
    assert found.data_bytes == sum(path.stat().st_size for path in tmp_path.glob("*/train.*")) - 2 * 26  # two headers
    assert cli.main(["check-data", data]) == 0


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--types 50 -- --max-tokens 4", "--arch"),
        ("--types 50 -- --arch nothing --max-tokens 4", "nothing"),
        ("--types 50 -- --arch transformer_lm --max-update 4", "--max-tokens"),
        ("--types 50 -- --arch transformer_lm --max-tokens 40 --max-epoch 4", "--tokens"),
        ("--types 50 -- --arch transformer_lm --no-such-flag 4", "--no-such-flag"),
        ("--types 50 -- --arch transformer_lm --max-tokens 4 --user-dir", "--user-dir"),
        ("--types 50 -- --arch transformer_lm --max-tokens 4 --max-update 1 --update-freq 0", "--update-freq"),
        ("--types 2 -- --arch transformer_lm", "--types 2"),
        ("--types 50 --gpus 0 -- --arch transformer_lm", "--gpus 0"),
        ("--types 50 --gpu abacus -- --arch transformer_lm", "abacus"),
        ("--types 50 --share 1.5 -- --arch transformer_lm", "--share 1.5"),
        ("--data nowhere -- --arch transformer_lm", "nowhere"),
        ("--types 50 -- --arch wav2vec2 --max-tokens 4", "wav2vec2"),
        ("--types 50 -- --arch src_elmo --max-tokens 4 --max-update 1", "--src-lm"),
    ],
)
def test_bad_input_is_one_line(words: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", *words.split()]) == 2
    error = capsys.readouterr().err
    assert named in error
    assert error.count("\n") == 1


def test_precision_is_that_of_the_flags(tmp_path: Path) -> None:
    text = made_up(tmp_path, TYPES, None, LENGTH, {})
    held = precision(read_flags((LM + "--memory-efficient-fp16").split(), text, 1).cfg.common)
    assert (held.weight, held.copies) == (2, 0)


def test_where_epochs_are_not_known_it_is_said_that_their_checkpoints_are_not_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def said(tokens: str, more: str) -> tuple[int, bool]:
        assert cli.main(f"plan --types {TYPES} {tokens} -- {LM} {more}".split()) == 0
        shown = capsys.readouterr().out.partition("\ndisk\n")[2]
        return int(shown.partition("(")[2].split()[0]), "epochs" in shown

    assert said("", "") == (2, True)
    assert said("", "--no-epoch-checkpoints") == (2, False)
    assert said("--tokens 100", "") == (4, False), "5 updates of 40 tokens are two epochs"


def test_less_than_a_token_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    words = f"plan --types {TYPES} --length {LENGTH} --tokens 0.5 --json -- {LM}"
    assert cli.main(words.split()) == 0
    assert json.loads(capsys.readouterr().out)["data_bytes"] == 2 + 12
