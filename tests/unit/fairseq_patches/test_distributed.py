"""Which of several processes this one is, where fairseq would not know."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.dataclass.configs import FairseqConfig
from fairseq.distributed.utils import _TensorPlaceholder
from fairseq.tasks.translation import TranslationTask
from omegaconf import OmegaConf

from lmfusion.checkpoint.reading import safe_types
from lmfusion.fairseq_patches.distributed import join_launched, receive_safely

TORCHRUN = {"MASTER_ADDR": "node1", "MASTER_PORT": "29500", "WORLD_SIZE": "6", "RANK": "4", "LOCAL_RANK": "1"}


def config(**settings: Any) -> Any:
    """fairseq's configuration with these of its settings for several processes."""
    cfg = OmegaConf.structured(FairseqConfig())
    cfg.common.cpu = True
    cfg.distributed_training.distributed_world_size = 1
    for name, value in settings.items():
        cfg.distributed_training[name] = value
    return cfg


def test_a_process_of_torchruns_takes_its_place_on_a_cpu() -> None:
    cfg = config()
    join_launched(cfg, TORCHRUN)
    settings = cfg.distributed_training
    assert settings.distributed_init_method == "env://"
    assert (settings.distributed_world_size, settings.distributed_rank) == (6, 4)
    assert settings.distributed_no_spawn
    assert settings.distributed_backend == "gloo"  # NCCL is for GPUs


def test_on_gpus_it_takes_the_one_of_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 4 of six on two nodes with two GPUs and four processes each would be GPU 4 of a node that has two."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    cfg = config()
    cfg.common.cpu = False
    join_launched(cfg, TORCHRUN)
    assert cfg.distributed_training.device_id == 1
    assert cfg.distributed_training.distributed_backend == "nccl"


def test_one_gpu_a_node_is_no_reason_to_train_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq takes the number of its own GPUs, one, for the number of processes."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    cfg = config()
    cfg.common.cpu = False
    join_launched(cfg, {**TORCHRUN, "LOCAL_RANK": "0"})
    assert cfg.distributed_training.distributed_world_size == 6
    assert cfg.distributed_training.device_id == 0


def test_what_the_command_line_says_stays() -> None:
    cfg = config(distributed_init_method="tcp://a:1", distributed_world_size=3, distributed_rank=2)
    join_launched(cfg, TORCHRUN)
    settings = cfg.distributed_training
    assert (settings.distributed_init_method, settings.distributed_world_size) == ("tcp://a:1", 3)
    assert settings.distributed_no_spawn  # fairseq would start no process, and end with success


@pytest.mark.parametrize("environment", [{}, {**TORCHRUN, "WORLD_SIZE": "1", "RANK": "0"}])
def test_a_single_process_is_left_alone(environment: dict[str, str]) -> None:
    cfg, before = config(), config()
    join_launched(cfg, environment)
    assert cfg == before


def test_on_a_cpu_the_gpus_there_are_ask_for_no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq's default number of processes is that of the GPUs, with --cpu too."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    cfg = config(distributed_world_size=8)
    join_launched(cfg, {})
    assert cfg == config()


def test_a_process_without_a_batch_validates_nothing_with_bleu_either() -> None:
    task = TranslationTask.__new__(TranslationTask)
    task.cfg = OmegaConf.create({"eval_bleu": True})
    assert task.valid_step({}, None, None) == (0.0, 0, {})


def test_what_rank_0_sends_is_read_and_nothing_else() -> None:
    """A checkpoint whose configuration fairseq has read, its tensors replaced by their numbers."""
    config, buffer = OmegaConf.create({"model": {"layers": [1, 2]}, "path": None}), io.BytesIO()
    torch.save({"cfg": config, "model": {"weight": _TensorPlaceholder(index=1)}, "odd": np.float32(0.5)}, buffer)

    def load() -> Any:
        buffer.seek(0)
        return torch.load(buffer, weights_only=True)

    received = receive_safely(load)()
    assert received["cfg"] == config
    assert received["model"]["weight"] == _TensorPlaceholder(index=1)
    with pytest.raises(pickle.UnpicklingError), safe_types():
        load()
