"""Bound what a checkpoint's configuration may ask for while fairseq builds a model from it."""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable

from lmfusion.checkpoint.budget import building_from
from lmfusion.errors import InputError
from lmfusion.fairseq_patches.patch import Patch


def bound_memory(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``load_model_ensemble_and_task`` to bound a model's memory by its file's size, and to name it in errors."""

    @wraps(original)
    def load_model_ensemble_and_task(filenames: list[str], *args: Any, **kwargs: Any) -> Any:
        files = ", ".join(map(str, filenames))
        try:
            with building_from(filenames):
                return original(filenames, *args, **kwargs)
        except InputError as error:
            if files in str(error):
                raise
            raise InputError(f"{files}: {error}") from error

    return load_model_ensemble_and_task


ROWS = (
    Patch(
        "fairseq.checkpoint_utils",
        "load_model_ensemble_and_task",
        bound_memory,
        "a file of a few KB asks for any amount of memory: fairseq-generate of encoder_embed_dim 10,000,000 for 8.3 GB",
    ),
)
