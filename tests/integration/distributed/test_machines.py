"""Several machines, each a launcher on this one: torchrun's meeting place, and SLURM's variables for fairseq."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.dataclass.configs import CommonConfig, DistributedTrainingConfig
from fairseq.distributed.utils import infer_init_method
from omegaconf import OmegaConf

from lmfusion.fairseq_patches.distributed import join_launched

FLAGS = ("--arch", "lmfusion_tiny", "--max-tokens", 500, "--log-interval", 1)
UPDATES = 4


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def start(words: list[Any], log: Path, **environment: str) -> subprocess.Popen[bytes]:
    """A program, its output in a file."""
    with log.open("wb") as stream:
        line = [str(word) for word in words]
        given = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
        return subprocess.Popen(line, stdout=stream, stderr=subprocess.STDOUT, env=given)


def logs_of(running: list[subprocess.Popen[bytes]], logs: list[Path]) -> list[str]:
    """What every program said, all of which must end well."""
    status = [process.wait(timeout=600) for process in running]
    said = [log.read_text(encoding="utf-8", errors="replace") for log in logs]
    assert status == [0, 0], "\n".join(text[-3000:] for text in said)
    return said


def assert_one_training(said: list[str], out: Path) -> None:
    """Two processes, of which the first tells and saves."""
    assert sum("training on 2 devices" in text for text in said) == 1
    assert sum(f"num_updates: {UPDATES} >= max_update: {UPDATES}" in text for text in said) >= 1
    assert sum("Saved checkpoint" in text for text in said) == 1
    assert (out / "checkpoint_last.pt").exists()
    assert not list(out.glob("*.unfinished"))


@pytest.mark.slow
def test_two_machines_meet_by_torchrun(commands: Any, tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("fairseq-train")
    words = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc_per_node=1", "--rdzv_backend=c10d"]
    words += [f"--rdzv_endpoint=127.0.0.1:{free_port()}", "--rdzv_id=7", program]
    words += commands.training(tmp_path / "run", UPDATES, *FLAGS)[1:]
    logs = [tmp_path / f"{machine}.log" for machine in range(2)]
    assert_one_training(logs_of([start(words, log) for log in logs], logs), tmp_path / "run")


def test_every_task_of_slurm_gets_its_own_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``srun --nodes 4 --ntasks-per-node=8 fairseq-train … --distributed-world-size 32 --distributed-port 12345``.

    fairseq asks for a GPU by its number before anything else, so that only its arithmetic can be rehearsed without.
    """
    script = '#!/bin/sh\n[ "$*" = "show hostnames node[1-4]" ] && printf "node1\\nnode2\\nnode3\\nnode4\\n"\n'
    (tmp_path / "scontrol").write_text(script, encoding="ascii")
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    job = {"JOB_NODELIST": "node[1-4]", "NNODES": "4", "NTASKS": "32", "NTASKS_PER_NODE": "8"}
    for name, value in job.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    places = []
    for task in range(32):
        monkeypatch.setenv("SLURM_PROCID", str(task))
        monkeypatch.setenv("SLURM_LOCALID", str(task % 8))
        settings = DistributedTrainingConfig(distributed_world_size=32, distributed_port=12345)
        cfg = OmegaConf.create({"common": CommonConfig(), "distributed_training": settings})
        join_launched(cfg, os.environ)
        infer_init_method(cfg.distributed_training)
        joined = cfg.distributed_training
        assert joined.distributed_no_spawn
        assert joined.distributed_init_method == "tcp://node1:12345"
        places.append((joined.distributed_rank, joined.device_id))
    assert places == [(task, task % 8) for task in range(32)]
