"""fairseq's own trainer on tiny models, in this process: what happens inside an update."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any, Callable

import pytest
import torch
from fairseq import options, tasks
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.trainer import Trainer
from torch import Tensor

COMMON = ("--cpu", "--max-tokens", 400, "--lr", 0.01)
LM_TASK = ("--task", "language_modeling", "--sample-break-mode", "eos", "--tokens-per-sample", 30)
LM_SIZE = ("--decoder-embed-dim", 16, "--decoder-ffn-embed-dim", 24, "--decoder-layers", 2)
LM_SIZE += ("--decoder-attention-heads", 2, "--share-decoder-input-output-embed")
RECURRENT = ("--decoder-embed-dim", 16, "--decoder-layers", 2, "--share-decoder-input-output-embed")
KINDS: dict[str, tuple[object, ...]] = {
    "cloze LM": (*LM_TASK, "--self-target", "--arch", "bi_transformer_lm", *LM_SIZE),
    "causal LM": (*LM_TASK, "--arch", "uni_transformer_lm", *LM_SIZE),
    "recurrent LM": (*LM_TASK, "--arch", "uni_recurrent_lm", "--cell", "rnn", "--identity-start", *RECURRENT),
    "baseline": ("--arch", "lmfusion_tiny"),
    "SRC-ELMO": ("--arch", "src_elmo_tiny", "--src-elmo-affine", "--src-lm", "CLOZE"),
    "SRC-FT": ("--arch", "src_ft_tiny", "--src-lm", "CLOZE"),
    "TGT-ELMO": ("--arch", "tgt_elmo_tiny", "--tgt-lm", "CAUSAL"),
    "SRC-ATTEND": ("--arch", "lmfusion_tiny", "--src-fusion", "attend", "--src-lm", "CLOZE"),
    "TGT-COLD": ("--arch", "lmfusion_tiny", "--tgt-fusion", "cold", "--tgt-lm", "CAUSAL"),
    "TGT-FT": ("--arch", "tgt_ft_tiny", "--tgt-lm", "CAUSAL"),
    "LSTM": ("--arch", "lstm_lmfusion"),
}


def lines(count: int, width: int) -> Tensor:
    """Rows of words (4 to 23) that end in </s> (2)."""
    rows = torch.randint(4, 24, (count, width), generator=torch.Generator().manual_seed(count))
    rows[:, -1] = 2
    return rows


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What all trainers read: fairseq's dictionaries and tiny language models."""
    return tmp_path_factory.mktemp("training")


@pytest.fixture
def data(folder: Path, dictionary: Dictionary, make_cloze: Any, make_causal: Any, save_lm: Callable[..., Path]) -> Path:
    """That folder, filled."""
    if not (folder / "lm.pt").exists():
        for name in ("dict.txt", "dict.en.txt", "dict.de.txt"):
            dictionary.save(str(folder / name))
        for name, make in (("cloze.pt", make_cloze), ("lm.pt", make_causal)):
            with torch.random.fork_rng():
                torch.manual_seed(3)
                save_lm(make(), name).rename(folder / name)
    return folder


@cache
def configuration(folder: Path, kind: str, flags: tuple[object, ...]) -> Any:
    """fairseq-train's, of its real flags. Turning them into a configuration is most of what such a test costs."""
    files = {"CLOZE": folder / "cloze.pt", "CAUSAL": folder / "lm.pt"}
    line = [folder, *COMMON, *(files.get(str(word), word) for word in KINDS[kind]), *flags]
    if "--task" not in line:
        line += ["--task", "translation", "-s", "en", "-t", "de"]
    args = options.parse_args_and_arch(options.get_training_parser(), [str(word) for word in line])
    return convert_namespace_to_omegaconf(args)


@pytest.fixture
def make_trainer(data: Path, tmp_path: Path) -> Callable[..., Trainer]:
    """fairseq-train's trainer: ``make_trainer("SRC-FT", "--optimizer", "adam")``."""

    def make(kind: str, *flags: object) -> Trainer:
        cfg = copy.deepcopy(configuration(data, kind, flags))
        cfg.checkpoint.save_dir = str(tmp_path / "run")
        (tmp_path / "run").mkdir(exist_ok=True)
        task = tasks.setup_task(cfg.task)
        model = task.build_model(cfg.model)
        return Trainer(cfg, task, model, task.build_criterion(cfg.criterion))

    return make


@pytest.fixture
def make_batch() -> Callable[..., dict[str, Any]]:
    """A batch as fairseq's data sets make it: ``make_batch("SRC-FT", sentences=4, width=9)``."""

    def make(kind: str, sentences: int = 4, width: int = 9) -> dict[str, Any]:
        source = lines(sentences, width)
        inputs = {"src_tokens": source, "src_lengths": torch.full((sentences,), width)}
        target = source if kind == "cloze LM" else source.roll(-1, 1)
        if not kind.endswith("LM"):
            target = lines(sentences, width + 1)
            inputs["prev_output_tokens"] = target.roll(1, 1)
        sizes = {"id": torch.arange(sentences), "nsentences": sentences, "ntokens": target.numel()}
        return {**sizes, "net_input": inputs, "target": target}

    return make
