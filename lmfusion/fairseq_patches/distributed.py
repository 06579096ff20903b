"""Several processes, on CPUs too, and by launchers that fairseq overlooks."""

from __future__ import annotations

import collections
import logging
import os
import typing
from collections.abc import Mapping
from typing import Any, Callable

import fairseq.distributed.utils as distributed_utils
import torch
import torch.distributed as dist
from omegaconf import DictConfig, ListConfig, base, nodes, open_dict
from torch import nn

from lmfusion.checkpoint.reading import safe_types
from lmfusion.fairseq_patches.text_kit import reads_text

logger = logging.getLogger(__name__)

TORCHRUN = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
"""Environment variables that torchrun, and what works like it, sets for every process."""


def join_launched(cfg: Any, environment: Mapping[str, str]) -> None:
    """Write into fairseq's configuration which of the launched processes this one is.

    Args:
        cfg: fairseq's whole configuration.
        environment: of this process.
    """
    if cfg.common.tpu or cfg.distributed_training.pipeline_model_parallel:
        return
    settings = cfg.distributed_training
    devices = 0 if cfg.common.cpu else torch.cuda.device_count()
    by_torchrun = all(name in environment for name in TORCHRUN) and int(environment["WORLD_SIZE"]) > 1
    with open_dict(settings):
        if settings.distributed_init_method is None and by_torchrun:
            settings.distributed_init_method = "env://"
            settings.distributed_world_size = int(environment["WORLD_SIZE"])
            settings.distributed_rank = int(environment["RANK"])
            settings.distributed_no_spawn = True
            if devices:
                settings.device_id = int(environment.get("LOCAL_RANK", environment["RANK"])) % devices
        said = settings.distributed_init_method is not None or "SLURM_JOB_NODELIST" in environment
        if cfg.common.cpu and not said and settings.distributed_world_size == torch.cuda.device_count():
            settings.distributed_world_size = 1  # the default is the number of GPUs, which --cpu leaves alone
        if settings.distributed_world_size > 1 and not devices:
            # fairseq would start as many processes as there are GPUs, none, and call that a success
            settings.distributed_no_spawn = True
            if settings.distributed_backend == "nccl":
                logger.info("NCCL is for GPUs: the processes talk through gloo")
                settings.distributed_backend = "gloo"


def start_command(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``call_main`` find the place of this process among those that torchrun started (:func:`join_launched`)."""

    def call_main(cfg: Any, main: Callable[..., Any], **kwargs: Any) -> Any:
        join_launched(cfg, os.environ)
        with reads_text(cfg, main):
            return original(cfg, main, **kwargs)

    return call_main


def gather_on_cpus(original: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """Make ``all_gather_list``, which gathers through memory of a GPU, use PyTorch's gathering under gloo."""

    def all_gather_list(data: Any, group: Any = None, **kwargs: Any) -> list[Any]:
        group = distributed_utils.get_global_group() if group is None else group
        if dist.get_backend(group) != "gloo":
            return original(data, group=group, **kwargs)
        gathered: list[Any] = [None] * dist.get_world_size(group)
        dist.all_gather_object(gathered, data, group=group)
        return gathered

    return all_gather_list


def receive_safely(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make the receivers of a broadcast read the types that a checkpoint consists of once fairseq has read it."""
    sent = [DictConfig, ListConfig, base.ContainerMetadata, base.Metadata, nodes.AnyNode, typing.Any]
    sent += [collections.defaultdict, dict, list, int, distributed_utils._TensorPlaceholder]

    def _broadcast_object_slow(*args: Any, **kwargs: Any) -> Any:
        with safe_types(*sent):
            return original(*args, **kwargs)

    return _broadcast_object_slow


def take_cpus(original: type[nn.Module]) -> type[nn.Module]:
    """Make DistributedDataParallel, which takes a list of devices for GPUs only, ignore the list on a CPU."""

    class AnyDevice(original):  # type: ignore[misc, valid-type]
        """PyTorch's, on any device."""

        def __init__(self, module: nn.Module, device_ids: Any = None, output_device: Any = None, **kwargs: Any) -> None:
            if next(module.parameters()).device.type == "cpu":
                device_ids = output_device = None
            super().__init__(module, device_ids=device_ids, output_device=output_device, **kwargs)

    return AnyDevice


def accept_empty_batches(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``valid_step`` accept the empty batch that a process gets where the processes do not divide the batches."""

    def valid_step(self: Any, sample: Any, *args: Any, **kwargs: Any) -> Any:
        return original(self, sample, *args, **kwargs) if sample else (0.0, 0, {})

    return valid_step
