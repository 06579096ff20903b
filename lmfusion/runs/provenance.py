"""What a result depends on besides its flags: code, versions, machine, data."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from lmfusion.errors import InputError

PACKAGES = ("lmfusion", "torch", "ve-fairseq", "fairseq", "numpy", "sacrebleu", "sacremoses", "sentencepiece")
DATA_SUFFIXES = (".bin", ".idx", ".txt")
ENVIRONMENT = (
    *("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "CUBLAS_WORKSPACE_CONFIG"),
    *("PYTHONHASHSEED", "NVIDIA_TF32_OVERRIDE", "WORLD_SIZE", "SLURM_NTASKS", "SLURM_NNODES"),
)
"""Variables that change how a command computes, or in how many processes; none that says on which machine."""
_PROCESSES = ("--nproc_per_node", "--nproc-per-node", "--nnodes", "--distributed-world-size")
_PRECISIONS = ("fp16", "bf16", "memory-efficient-fp16", "memory-efficient-bf16", "amp", "cpu-bf16")
PROGRAM = Path(__file__).resolve().parents[2]


def git_commit(folder: Path = PROGRAM) -> str | None:
    """Return the commit of the code, with "+changes" if files differ from it; None outside a repository."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(folder), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        commit = git("rev-parse", "HEAD")
        return commit + ("+changes" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (subprocess.CalledProcessError, FileNotFoundError):
        return None


def versions() -> dict[str, str]:
    """Return versions of Python and of the packages a result depends on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, object]:
    """Return what kind of machine this is; nothing that says which one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"system": platform.system(), "processor": platform.machine(), "cores": cores, "gpu": _gpu_name()}


def launch(command: list[str], environment: Mapping[str, str] = os.environ) -> dict[str, object]:
    """Return how a command is started: the flags that give its processes, its precision, variables that steer it.

    The number of threads and processes decides the order of sums, and so the last digits of every result.

    Args:
        command: its words, with those that start it on several devices in front.
        environment: variables by name.
    """
    words = [part for word in command for part in (word.split("=", 1) if word.startswith("--") else [word])]
    processes = {word.lstrip("-"): value for word, value in zip(words, words[1:]) if word in _PROCESSES}
    precision = [name for name in _PRECISIONS if f"--{name}" in words]
    variables = {name: environment[name] for name in ENVIRONMENT if name in environment}
    return {"processes": processes, "precision": precision or ["fp32"], "environment": variables}


def _gpu_name() -> str | None:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def hash_data(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of a folder of binarized data, by name.

    Raises:
        InputError: there is no such folder, or no data in it.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder of binarized data. Make it by data-prep/prepare.py.")
    files = sorted(path for path in folder.iterdir() if path.suffix in DATA_SUFFIXES)
    if not files:
        raise InputError(f"{folder}: no binarized data in it. Make it by data-prep/prepare.py.")
    return {path.name: hash_file(path) for path in files}
