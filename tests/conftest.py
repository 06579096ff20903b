"""What many tests need: a tiny dictionary, tiny language models with random weights, their checkpoints."""

from __future__ import annotations

import logging
import lzma
import os
import runpy
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Callable, TextIO

import pytest
import torch
from fairseq.data import Dictionary
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from xdist.scheduler import LoadFileScheduling

import lmfusion
from lmfusion import cli
from lmfusion.lm.causal import CausalLM
from lmfusion.lm.cloze import ClozeLM
from lmfusion.lm.transformer import layout
from lmfusion.lm.transformer.config import OF_TRAINING, CausalLMConfig, ClozeLMConfig
from lmfusion.training import chunked_loss

lmfusion.install()

ROOT = Path(__file__).parents[1]
EMBEDDED = Path(os.environ.get("LMFUSION_CORPUS", ROOT / "data-prep" / "debian" / "en-de"))
# Test and valid are no multiples of 8: fairseq leaves out the rest if one lets it.
SLICE = {"train": 400, "valid": 25, "test": 25, "mono.train": 600, "mono.valid": 30}
SYNOPSES = {f"synopsis.{split}": SLICE[split] for split in ("train", "valid", "test")}

WORDS = [f"w{number}" for number in range(20)]
TINY = {
    "decoder_embed_dim": 16,
    "decoder_ffn_embed_dim": 24,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "tokens_per_sample": 30,
    "max_target_positions": 30,
}


class LoadFolderScheduling(LoadFileScheduling):
    """Gives a process whole files, and the files that share trained models together."""

    def _split_scope(self, nodeid: str) -> str:
        path = Path(super()._split_scope(nodeid))
        return str(path.parent if path.parent.name in ("decoding", "packing") else path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Trained once in each process, the models of those folders would be trained twice."""
    return LoadFolderScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    """Every test starts from the same random numbers."""
    torch.manual_seed(3)


@pytest.fixture(autouse=True)
def own_log_levels() -> Iterator[None]:
    """No test hears less because a command that ran in another one (translate, export, predict) was to say little."""
    loggers = [logging.getLogger(name) for name in ("fairseq", "lmfusion")]
    levels = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, levels):
        logger.setLevel(level)


@pytest.fixture
def failing(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command that refuses, and return the one line that it prints."""

    def run(*arguments: object) -> str:
        assert cli.main([str(argument) for argument in arguments]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("lmfusion: error: ")
        assert printed.err.count("\n") == 1
        return printed.err

    return run


def dictionary_with(words: list[str]) -> Dictionary:
    """fairseq's special symbols, then these words."""
    dictionary = Dictionary()
    for word in words:
        dictionary.add_symbol(word)
    return dictionary


def shaken(model: nn.Module) -> Any:
    """Random numbers on top of every parameter, so that no bias is zero and no scale is one."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
        for module in model.modules():
            if isinstance(module, nn.Embedding) and module.padding_idx is not None:
                module.weight[module.padding_idx].zero_()
    return model


@pytest.fixture
def shake() -> Callable[[nn.Module], Any]:
    """Random numbers on top of every parameter of a module."""
    return shaken


def plain_values(kind: Any, **flags: Any) -> dict[str, Any]:
    """A language model's flags as plain values: the defaults, tiny sizes, these flags."""
    fields = kind.__dataclass_fields__.items()
    defaults = {name: spec.default for name, spec in fields if not name.startswith("_") and name not in OF_TRAINING}
    return {**defaults, **TINY, **flags}


@pytest.fixture
def dictionary() -> Dictionary:
    """24 symbols: fairseq's four (<s> 0, <pad> 1, </s> 2, <unk> 3) and w0 ... w19."""
    return dictionary_with(WORDS)


@pytest.fixture
def other_dictionary() -> Dictionary:
    """As ``dictionary`` up to index 6; then "x" stands where w3 would (index 7)."""
    return dictionary_with([*WORDS[:3], "x", *WORDS[4:]])


@pytest.fixture
def make_cloze(dictionary: Dictionary) -> Callable[..., ClozeLM]:
    """Build a tiny cloze LM in eval mode: ``make_cloze(single_tower=True, targets=["self"])``."""

    def make(targets: tuple[str, ...] = ("self",), **flags: Any) -> ClozeLM:
        config = plain_values(ClozeLMConfig, targets=list(targets), **flags)
        lm: ClozeLM = shaken(ClozeLM(config, dictionary)).eval()
        return lm

    return make


@pytest.fixture
def make_causal(dictionary: Dictionary) -> Callable[..., CausalLM]:
    """Build a tiny causal LM in eval mode."""

    def make(**flags: Any) -> CausalLM:
        lm: CausalLM = shaken(CausalLM(plain_values(CausalLMConfig, **flags), dictionary)).eval()
        return lm

    return make


def fairseq_state(lm: ClozeLM | CausalLM) -> dict[str, Any]:
    """What fairseq's trainer saves of a pretrained LM, as far as loading is concerned."""
    name = lm.architecture
    task = {f"{target}_target": True for target in lm.config.get("targets", [])}
    weights: dict[str, Tensor] = {f"decoder.{key}": value for key, value in lm.state_dict().items()}
    model = {"_name": name, **{key: value for key, value in lm.config.items() if key != "targets"}}
    return {"args": None, "cfg": {"model": model, "task": task}, "model": weights}


@pytest.fixture
def save_lm(tmp_path: Path) -> Callable[..., Path]:
    """Save a language model as fairseq does; ``change`` may edit the checkpoint's dictionary first."""

    def save(lm: Any, name: str = "lm.pt", change: Callable[[dict[str, Any]], Any] | None = None) -> Path:
        state = fairseq_state(lm)
        if change is not None:
            change(state)
        torch.save(state, tmp_path / name)
        return tmp_path / name

    return save


def padded(rows: list[list[int]], left: bool = False, width: int = 0) -> Tensor:
    """A batch of token rows, padded (index 1) on the right or on the left."""
    width = max(width, *(len(row) for row in rows))
    fill = [[1] * (width - len(row)) for row in rows]
    return torch.tensor([pad + row if left else row + pad for row, pad in zip(rows, fill)])


@pytest.fixture
def batch() -> Callable[..., Tensor]:
    """Pad token rows: ``batch(rows, left=True)``."""
    return padded


@pytest.fixture(scope="session")
def standin_sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stand-ins for the corpora of the paper, made by tests/standins.py: their table for ``--sources``."""
    made: Path = runpy.run_path(str(Path(__file__).with_name("standins.py")), run_name="standins")["make"](
        tmp_path_factory.mktemp("standins")
    )
    return made


def open_text(name: str) -> TextIO:
    """A file of the embedded corpus, which is compressed."""
    path = EMBEDDED / f"{name}.xz"
    return lzma.open(path, "rt", encoding="utf-8") if path.exists() else (EMBEDDED / name).open(encoding="utf-8")


@pytest.fixture(scope="session")
def small_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first lines of every file of the embedded en-de corpus (or of the one that LMFUSION_CORPUS names)."""
    folder = tmp_path_factory.mktemp("corpus")
    for sizes, sides in ((SLICE, ("en", "de")), (SYNOPSES, ("description", "synopsis"))):
        for split, size in sizes.items():
            for side in sides:
                with open_text(f"{split}.{side}") as stream:
                    lines = list(islice(stream, size))
                (folder / f"{split}.{side}").write_text("".join(lines), encoding="utf-8")
    return folder


class Waits(TorchDispatchMode):
    """Notes the operations for whose result a program on a GPU has to wait, by their names in :attr:`found`."""

    NAMES = ("_local_scalar_dense", "equal", "is_nonzero", "nonzero", "masked_select", "_unique2", "unique_dim")

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function.overloadpacket.__name__
        indices = args[1] if name.startswith("index") and len(args) > 1 and isinstance(args[1], (list, tuple)) else ()
        chooses = any(isinstance(index, Tensor) and index.dtype == torch.bool for index in indices)
        if chooses or name in self.NAMES:
            self.found.append(name)
        return function(*args, **(kwargs or {}))


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> type[Waits]:
    """Everything takes the way that it takes on a GPU, on a CPU; ``with as_on_a_gpu() as waits`` notes waits."""
    for module in (layout, chunked_loss):
        monkeypatch.setattr(module, "reads_freely", lambda tensor: False)
    return Waits
