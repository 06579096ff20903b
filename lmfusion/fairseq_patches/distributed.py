"""Several processes: fairseq's launching, mended for CPUs and for launchers that fairseq overlooks.

Left alone, fairseq trains as many independent models as processes were started (each writing the others' checkpoints)
where it sees one GPU or none, divides by the number of GPUs there are not, and hands GPUs to DistributedDataParallel
on a CPU.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any, Callable

import fairseq.distributed.utils as distributed_utils
import fairseq.models.distributed_fairseq_model as wrappers
import torch
import torch.distributed as dist
from fairseq import options
from fairseq.tasks.fairseq_task import FairseqTask
from fairseq.tasks.translation import TranslationTask
from fairseq.trainer import Trainer
from omegaconf import open_dict
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from lmfusion.errors import UserError

logger = logging.getLogger(__name__)

TORCHRUN = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
"""Environment variables that torchrun, and what works like it, sets for every process."""


def launched_processes(environment: Mapping[str, str]) -> int:
    """How many processes torchrun or a SLURM step started, this one among them; 1 without either."""
    if all(name in environment for name in TORCHRUN):
        return int(environment["WORLD_SIZE"])
    return int(environment.get("SLURM_STEP_NUM_TASKS", 1)) if "SLURM_PROCID" in environment else 1


def join_launched(cfg: Any, environment: Mapping[str, str]) -> None:
    """Write into fairseq's configuration which of the launched processes this one is.

    Args:
        cfg: fairseq's whole configuration.
        environment: of this process.

    Raises:
        UserError: if more processes are asked for than anything has started or will start.
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
        if cfg.common.cpu and _is_default_number(settings, environment):
            settings.distributed_world_size = 1
        _check_enough_processes(settings, devices, environment)
        if settings.distributed_world_size > 1 and not devices:
            # fairseq would start as many processes as there are GPUs, none, and call that a success
            settings.distributed_no_spawn = True
            if settings.distributed_backend == "nccl":
                logger.info("NCCL is for GPUs: the processes talk through gloo")
                settings.distributed_backend = "gloo"


def _is_default_number(settings: Any, environment: Mapping[str, str]) -> bool:
    """Whether nobody said how many processes: fairseq takes the number of GPUs, which --cpu leaves alone."""
    said = settings.distributed_init_method is not None or "SLURM_JOB_NODELIST" in environment
    return not said and settings.distributed_world_size == torch.cuda.device_count()


def _check_enough_processes(settings: Any, devices: int, environment: Mapping[str, str]) -> None:
    world_size = settings.distributed_world_size
    known = settings.distributed_init_method is not None or "SLURM_JOB_NODELIST" in environment
    if known or world_size <= max(devices, 1):
        return
    if settings.distributed_port <= 0 or not devices:
        raise UserError(
            f"--distributed-world-size {world_size} needs {world_size} processes, and there are {devices} GPUs here to "
            f"start them for: start them by torchrun --nproc_per_node=N, which also tells fairseq how many there are."
        )


def check_joined(cfg: Any, environment: Mapping[str, str]) -> None:
    """Refuse one of several independent trainings that all write the same files.

    Raises:
        UserError: naming how many processes were started, and what to add.
    """
    started = launched_processes(environment)
    if cfg.distributed_training.distributed_world_size > 1 or started == 1:
        return
    raise UserError(
        f"{started} processes were started, and each would train a model of its own into {cfg.checkpoint.save_dir}. "
        f"Under torchrun use fairseq-train with --user-dir (or lmfusion's config files with fairseq-hydra-train); in a "
        f"SLURM step add --distributed-world-size {started} --distributed-port PORT, or start torchrun on each node."
    )


def _refuse_to_generate(args: Any, environment: Mapping[str, str]) -> None:
    """Commands that fairseq does not gather the results of.

    Raises:
        UserError: naming what to do instead.
    """
    started = launched_processes(environment)
    evaluates, decodes = hasattr(args, "softmax_batch"), hasattr(args, "nbest")  # flags of no other command
    if started == 1 or not (evaluates or decodes) or args.distributed_world_size > 1:
        return
    if evaluates:
        raise UserError(
            "fairseq-eval-lm does not add up what several processes find: start it once, or use fairseq-validate."
        )
    raise UserError(
        f"{started} processes were started, and each would translate everything. Start one by one, each for its share: "
        f"--distributed-world-size {started} --distributed-rank 0 (to {started - 1})."
    )


class _AnyDevice(DistributedDataParallel):
    """PyTorch's, which takes a list of devices for GPUs only."""

    def __init__(self, module: nn.Module, device_ids: Any = None, output_device: Any = None, **kwargs: Any) -> None:
        if next(module.parameters()).device.type == "cpu":
            device_ids = output_device = None
        super().__init__(module, device_ids=device_ids, output_device=output_device, **kwargs)


def install() -> None:
    """Make fairseq do so; safe to call again."""
    wrappers.DistributedDataParallel = _AnyDevice
    _wrap_call_main()
    _wrap_gathering()
    _wrap_validation()
    _wrap_trainer()
    _wrap_options()


def _wrap_call_main() -> None:
    original: Callable[..., Any] = distributed_utils.call_main
    if getattr(original, "joins_launched", False):
        return

    def call_main(cfg: Any, main: Callable[..., Any], **kwargs: Any) -> Any:
        """fairseq's, in a process that knows its place."""
        join_launched(cfg, os.environ)
        return original(cfg, main, **kwargs)

    call_main.joins_launched = True  # type: ignore[attr-defined]
    distributed_utils.call_main = call_main


def _wrap_gathering() -> None:
    original: Callable[..., list[Any]] = distributed_utils.all_gather_list
    if getattr(original, "knows_cpus", False):
        return

    def all_gather_list(data: Any, group: Any = None, **kwargs: Any) -> list[Any]:
        """fairseq's, which gathers through memory of a GPU; on a CPU PyTorch's."""
        group = distributed_utils.get_global_group() if group is None else group
        if dist.get_backend(group) != "gloo":
            return original(data, group=group, **kwargs)
        gathered: list[Any] = [None] * dist.get_world_size(group)
        dist.all_gather_object(gathered, data, group=group)
        return gathered

    all_gather_list.knows_cpus = True  # type: ignore[attr-defined]
    distributed_utils.all_gather_list = all_gather_list


def _wrap_validation() -> None:
    if getattr(FairseqTask.valid_step, "knows_empty_batches", False):
        return
    for task in (FairseqTask, TranslationTask):  # the latter goes on with the batch, for --eval-bleu
        task.valid_step = _knowing_empty_batches(task.valid_step)


def _knowing_empty_batches(original: Callable[..., Any]) -> Callable[..., Any]:
    def valid_step(self: Any, sample: Any, *args: Any, **kwargs: Any) -> Any:
        """fairseq's; fairseq-validate hands out an empty batch where the processes do not divide the batches."""
        return original(self, sample, *args, **kwargs) if sample else (0.0, 0, {})

    valid_step.knows_empty_batches = True  # type: ignore[attr-defined]
    return valid_step


def _wrap_trainer() -> None:
    original: Callable[..., Any] = Trainer.__init__
    if getattr(original, "checks_joined", False):
        return

    def init(self: Any, cfg: Any, *args: Any, **kwargs: Any) -> None:
        """fairseq's, unless it is one of several that do not know of each other."""
        check_joined(cfg, os.environ)
        original(self, cfg, *args, **kwargs)

    init.checks_joined = True  # type: ignore[attr-defined]
    Trainer.__init__ = init


def _wrap_options() -> None:
    original: Callable[..., Any] = options.parse_args_and_arch
    if getattr(original, "refuses_to_generate", False):
        return

    def parse_args_and_arch(*args: Any, **kwargs: Any) -> Any:
        """fairseq's, for commands that can share their work."""
        parsed = original(*args, **kwargs)
        _refuse_to_generate(parsed[0] if isinstance(parsed, tuple) else parsed, os.environ)
        return parsed

    parse_args_and_arch.refuses_to_generate = True  # type: ignore[attr-defined]
    options.parse_args_and_arch = parse_args_and_arch
