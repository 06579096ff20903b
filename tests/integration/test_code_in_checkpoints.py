"""Text in a checkpoint's configuration is not run, whichever command builds the model; fairseq's own text is read."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch

import lmfusion
from lmfusion.checkpoint.reading import read_file

PAIR = ("-s", "en", "-t", "de")
USER = ("--user-dir", lmfusion.USER_DIR, "--cpu")
TRAIN = ("--optimizer", "adam", "--lr", 0.01, "--max-tokens", 2000, "--num-workers", 0, "--no-epoch-checkpoints")
DECODER = ("--decoder-embed-dim", 16, "--decoder-ffn-embed-dim", 16, "--decoder-layers", 1)
DECODER += ("--decoder-attention-heads", 2)
ENCODER = ("--encoder-embed-dim", 16, "--encoder-ffn-embed-dim", 16, "--encoder-layers", 1)
ENCODER += ("--encoder-attention-heads", 2)
CUT = ("--criterion", "adaptive_loss", "--adaptive-softmax-cutoff", "50,100", "--ddp-backend", "legacy_ddp")
LM_TASK = ("--task", "language_modeling", "--sample-break-mode", "eos", "--tokens-per-sample", 256)
CONVOLUTIONS = "[(16, 3)] * 2 + [(24, 1)]"
CODE = "__import__('os').system('touch {victim}') * 0 or [50, 100]"

STOCK = {
    "transformer": (*PAIR, "--arch", "transformer", *ENCODER, *DECODER, *CUT),
    "fconv": (
        *(*PAIR, "--arch", "fconv", "--encoder-embed-dim", 16, "--decoder-embed-dim", 16),
        *("--decoder-out-embed-dim", 16),
        *("--encoder-layers", CONVOLUTIONS, "--decoder-layers", CONVOLUTIONS, "--criterion", "cross_entropy"),
    ),
    "transformer_lm": (*LM_TASK, "--arch", "transformer_lm", *DECODER, *CUT),
}
FIELDS = {"transformer": "adaptive_softmax_cutoff", "fconv": "encoder_layers", "transformer_lm": "character_filters"}
SLOW = pytest.mark.slow
STYLES = [pytest.param(False, id="cfg"), pytest.param(True, id="args", marks=SLOW)]


def training(commands: Any, name: str, out: Path, data: Path, updates: int = 1) -> list[object]:
    """fairseq-train of one of fairseq's own models."""
    words = ["fairseq-train", data, "--save-dir", out, "--max-update", updates, "--disable-validation"]
    return [*words, *STOCK[name], *TRAIN, *USER]


@pytest.fixture(scope="module")
def data(commands: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Binarized text of each model: the bitext with a dictionary for a language model, and text of German alone."""
    bitext: Path = tmp_path_factory.mktemp("bitext")
    for file in commands.bitext.iterdir():
        (bitext / file.name).symlink_to(file)
    (bitext / "dict.txt").symlink_to(commands.bitext / "dict.de.txt")
    return {"transformer": bitext, "fconv": bitext, "transformer_lm": commands.prepared / "lm.de"}


@pytest.fixture(scope="module")
def stock(commands: Any, data: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Checkpoints of fairseq's own models after one update, with convolutions and cut-offs given as text."""
    files = {}
    for name in STOCK:
        out = tmp_path_factory.mktemp(name)
        commands.ok(*training(commands, name, out, data[name]))
        files[name] = out / "checkpoint_last.pt"
    return files


def with_value(path: Path, out: Path, field: str, value: Any, *, old_style: bool = False) -> Path:
    """A copy of a checkpoint with one value of its model's configuration replaced.

    ``old_style`` puts everything into ``args``, as fairseq did until 2020.
    """
    state = read_file(path)
    model = state["cfg"]["model"]
    values = dict(vars(model) if isinstance(model, Namespace) else model)
    values.update({field: value, **({"character_embeddings": True} if field == "character_filters" else {})})
    state["cfg"]["model"] = Namespace(**values) if isinstance(model, Namespace) else values
    if old_style:
        task = {key: inner for key, inner in state["cfg"]["task"].items() if key != "_name"}
        state["args"] = Namespace(**{**task, **values, "arch": values["_name"], "task": state["cfg"]["task"]["_name"]})
        del state["cfg"]
    torch.save(state, out)
    return out


def uses(commands: Any, path: Path, model: str, data: dict[str, Path], text: Path) -> list[list[object]]:
    """Every command that builds a model of a checkpoint."""
    folder = data[model]
    common = [*("--path", path), *USER, "--max-tokens", 2000, "--num-workers", 0]
    if model == "transformer_lm":
        generate = commands.generation(text.with_name("transformer.pt"), "--lm-path", path, "--lm-weight", 0.1)
        generate[1] = data["transformer"]
        evaluate = ["fairseq-eval-lm", folder, *common, "--gen-subset", "valid", *LM_TASK]
        return [generate, evaluate, ["fairseq-validate", folder, *common, "--valid-subset", "valid", *LM_TASK]]
    decoding = [*common, *PAIR, "--beam", 2, "--max-len-b", 5]
    return [
        ["fairseq-generate", folder, *decoding, "--gen-subset", "test"],
        ["fairseq-interactive", folder, *decoding, "--input", text],
        ["fairseq-validate", folder, *common, "--valid-subset", "valid", "--task", "translation"],
    ]


@pytest.fixture
def text(tmp_path: Path, stock: dict[str, Path]) -> Path:
    """Text to translate, beside a model that may be used with an LM."""
    (tmp_path / "transformer.pt").symlink_to(stock["transformer"])
    (tmp_path / "text.en").write_text("a b\n", encoding="utf-8")
    return tmp_path / "text.en"


@pytest.mark.slow
@pytest.mark.parametrize("model", STOCK)
def test_fairseqs_own_models_work_as_before(
    commands: Any, stock: dict[str, Path], data: dict[str, Path], text: Path, model: str
) -> None:
    """fconv's convolutions are an expression, the cut-offs of an adaptive softmax are a list."""
    for words in uses(commands, stock[model], model, data, text):
        commands.ok(*words)


@pytest.mark.parametrize("old_style", STYLES)
@pytest.mark.parametrize("model", ["transformer", *(pytest.param(name, marks=SLOW) for name in list(STOCK)[1:])])
def test_code_in_a_model_is_refused_by_every_command_and_not_run(
    commands: Any, stock: dict[str, Path], data: dict[str, Path], text: Path, model: str, old_style: bool
) -> None:
    victim = text.with_name("PWNED")
    code = CODE.format(victim=victim)
    path = with_value(stock[model], text.with_name("attack.pt"), FIELDS[model], code, old_style=old_style)
    for words in uses(commands, path, model, data, text):
        assert "attack.pt" in commands.refused(*words)
        assert not victim.exists()
    if model == "transformer" and not old_style:
        with pytest.raises(lmfusion.InputError, match=r"attack\.pt.*adaptive_softmax_cutoff"):
            lmfusion.load_model(path, data=str(data[model])).translate(["a b"])
        assert not victim.exists()


class Attack:
    """Touches a file when it is unpickled."""

    def __init__(self, victim: Path) -> None:
        self.victim = victim

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.victim,)


@pytest.mark.slow
def test_a_further_checkpoint_that_a_model_names_runs_nothing(
    commands: Any, stock: dict[str, Path], data: dict[str, Path], text: Path
) -> None:
    """fairseq starts such a model from another checkpoint whenever it is built."""
    victim, further = text.with_name("PWNED"), text.with_name("further.pt")
    torch.save({"model": {}, "args": Attack(victim)}, further)
    path = text.with_name("attack.pt")
    values = {"_name": "fconv_self_att", "pretrained": "True", "pretrained_checkpoint": str(further)}
    with_value(stock["fconv"], path, "arch", "fconv_self_att")
    for field, value in values.items():
        with_value(path, path, field, value)
    for words in uses(commands, path, "fconv", data, text):
        assert str(further) in commands.refused(*words)
        assert not victim.exists()
    with pytest.raises(lmfusion.InputError, match=r"further\.pt"):
        lmfusion.load_model(path, data=str(data["fconv"]))
    assert not victim.exists()


@pytest.mark.parametrize("size", [10_000_000, 20_000])
def test_a_width_that_the_weights_do_not_have_is_refused_before_memory_is_taken(
    commands: Any, stock: dict[str, Path], data: dict[str, Path], text: Path, size: int
) -> None:
    """Also where as many numbers are in the file."""
    path = with_value(stock["transformer"], text.with_name("attack.pt"), "encoder_embed_dim", size)
    generate, *_ = uses(commands, path, "transformer", data, text)
    assert re.search(r"attack\.pt.*(encoder_embed_dim|asks for)", commands.refused(*generate))


@pytest.mark.parametrize("flag", ["--restore-file", "--finetune-from-model"])
@pytest.mark.parametrize("model", ["transformer", pytest.param("fconv", marks=pytest.mark.slow)])
def test_training_that_starts_from_a_file_runs_nothing_of_it(
    commands: Any, stock: dict[str, Path], data: dict[str, Path], tmp_path: Path, model: str, flag: str
) -> None:
    """The model's configuration is then the command line's."""
    victim = tmp_path / "PWNED"
    path = with_value(stock[model], tmp_path / "attack.pt", FIELDS[model], CODE.format(victim=victim))
    commands.run(*training(commands, model, tmp_path / "run", data[model], 2), flag, path)
    assert not victim.exists()
