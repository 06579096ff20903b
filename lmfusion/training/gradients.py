"""Combine the gradients of several tasks in one step: their sum, or PCGrad (Yu et al. 2020).

The paper is "Gradient Surgery for Multi-Task Learning", Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
from fairseq.models import BaseFairseqModel
from fairseq.optim import AMPOptimizer
from torch import Tensor

SUM, PCGRAD = "sum", "pcgrad"
Gradients = list["Tensor | None"]


_SMALLEST = 1e-25  # sums of float32's products lack digits below it; these end at 1e-38


def dot(one: Gradients, other: Gradients) -> Tensor:
    """Return the inner product of two gradients (a tensor for each parameter), a scalar of float32 or more.

    It is float64 where float32 cannot hold the products: gradients of 1e-20 have squares of 1e-40, those of 1e20
    infinite ones. Parameters that one of them lacks add nothing.
    """
    pairs = [(a, b) for a, b in zip(one, other) if a is not None and b is not None]
    if not pairs:
        return torch.zeros(())
    found = _products(pairs, torch.float32)
    return found if _SMALLEST < found.abs() < torch.inf else _products(pairs, torch.float64)


def _products(pairs: list[tuple[Tensor, Tensor]], precision: torch.dtype) -> Tensor:
    """Return the sum of all products, in this precision or that of the tensors, if it is higher."""
    return torch.stack([(_raised(a, precision) * _raised(b, precision)).sum() for a, b in pairs]).sum()


def _raised(value: Tensor, precision: torch.dtype) -> Tensor:
    return value.to(torch.promote_types(value.dtype, precision))


def _factor(product: Tensor, square: Tensor) -> Tensor:
    """Return the quotient, in float64 where one of both is, or where float32 cannot hold it."""
    quotient = product / square
    return quotient if _SMALLEST < quotient.abs() < 1 / _SMALLEST else product.double() / square.double()


def _less(h: Tensor, factor: Tensor, g: Tensor) -> Tensor:
    """Return ``h - factor g`` as precisely as the factor is; it may be beyond what h holds, where g is far below h."""
    return (_raised(h, factor.dtype) - factor * _raised(g, factor.dtype)).to(h.dtype)


def project(gradients: list[Gradients], orders: list[list[int]]) -> list[Gradients]:
    """Take out of each task's gradient what points against another's.

    ``h_i <- h_i - (h_i·g_j / |g_j|²) g_j`` wherever ``h_i·g_j < 0``, with the original ``g_j``, for each j in turn.
    Compared are the parameters that both tasks have gradients of; a task's own head stays as it is. A gradient of zero
    changes nothing.

    Args:
        gradients: of each task, a tensor for each parameter; None: the task does not touch it.
        orders: of each task, the others' numbers in the order in which they are looked at.

    Returns:
        The projected gradients; those without conflict are the tensors that were given.
    """
    projected = []
    for number, own in enumerate(gradients):
        current = own
        for other in orders[number]:
            shared = [None if h is None else g for h, g in zip(own, gradients[other])]
            product = dot(current, shared)
            if product < 0 and (square := dot(shared, shared)) > 0:
                factor = _factor(product, square)
                current = [h if h is None or g is None else _less(h, factor, g) for h, g in zip(current, shared)]
        projected.append(current)
    return projected


def total(gradients: list[Gradients]) -> Gradients:
    """Return the sum of gradients, in order; None where no task has one."""
    result = gradients[0]
    for other in gradients[1:]:
        result = [b if a is None else a if b is None else a + b for a, b in zip(result, other)]
    return result


def seeded_orders(tasks: int, seed: int, update: int) -> list[list[int]]:
    """Draw the orders of :func:`project`, the same in every process and in every repetition of a run.

    Args:
        tasks: number of them.
        seed: of the run.
        update: number of the step.
    """
    generator = torch.Generator().manual_seed((seed * 1_000_003 + update) % 2**63)
    return [
        [other for other in torch.randperm(tasks, generator=generator).tolist() if other != own] for own in range(tasks)
    ]


def unwrapped(model: Any) -> Any:
    """Return fairseq's model itself, out of the wrappers that training by several processes puts around it."""
    while not isinstance(model, BaseFairseqModel):
        model = model.module
    return model


class TaskGradients:
    """Computes a step's gradients task by task and combines them.

    With several processes the tasks' gradients are averaged over these first, so that all project the same; with
    several batches a step (``--update-freq``) it is their sum that is projected. Scaling a loss does not change what is
    projected, so that half precision needs nothing of its own.

    Args:
        projected: PCGrad; else the sum.
        seed: of the order in which tasks are compared.
    """

    def __init__(self, *, projected: bool, seed: int) -> None:
        self.projected, self.seed = projected, seed
        self._kept: dict[str, Gradients] = {}

    def backward(
        self, losses: Mapping[str, Callable[[], Any]], model: Any, optimizer: Any, update: int, *, ignore: bool
    ) -> list[Any]:
        """Compute gradients and leave their combination in the parameters' ``grad``, on top of the step's earlier ones.

        Args:
            losses: for each task a function that runs the model and returns its mean loss, a scalar, and values to log.
            model: fairseq's, perhaps inside a wrapper for several processes.
            optimizer: fairseq's; it scales losses in half precision.
            update: number of the step.
            ignore: whether the batch is there only to keep processes in step.

        Returns:
            The values to log of every task.
        """
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        several = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
        if all(parameter.grad is None for parameter in parameters):
            self._kept = {}
        logs = []
        alone = model.no_sync() if several and hasattr(model, "no_sync") else nullcontext()
        with alone:
            for name, compute in losses.items():
                group = name if self.projected else ""
                if self.projected or several:
                    _set(parameters, self._kept.get(group, [None] * len(parameters)))
                with torch.autocast("cuda", enabled=isinstance(optimizer, AMPOptimizer)):  # as fairseq's own tasks
                    loss, log = compute()
                optimizer.backward(loss * 0 if ignore else loss)
                self._kept[group] = [parameter.grad for parameter in parameters]
                logs.append(log)
        if self.projected or several:
            _set(parameters, self._combined(several, update))
        return logs

    def _combined(self, several: bool, update: int) -> Gradients:
        gradients = [_averaged(each) if several else each for each in self._kept.values()]
        if self.projected:
            gradients = project(gradients, seeded_orders(len(gradients), self.seed, update))
        combined = total(gradients)
        return [None if value is None else value.clone() for value in combined]


def _set(parameters: list[Any], values: Gradients) -> None:
    for parameter, value in zip(parameters, values):
        parameter.grad = value


def _averaged(gradients: Gradients) -> Gradients:
    """Average gradients over all processes, in one message."""
    given = [value for value in gradients if value is not None]
    flat = torch.cat([value.flatten() for value in given])
    dist.all_reduce(flat)
    parts = iter((flat / dist.get_world_size()).split([value.numel() for value in given]))
    return [None if value is None else next(parts).view_as(value) for value in gradients]
