"""Learning rates of parts of a model (:mod:`lmfusion.fusion.learning_rates`) in the optimizers that fairseq builds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Callable

from lmfusion.fusion.learning_rates import apply_learning_rates


def build_with_learning_rates(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``build_optimizer`` put parameters with a learning rate of their own into groups of their own."""

    def build_optimizer(cfg: Any, params: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        params = list(params)
        built = original(cfg, params, *args, **kwargs)
        apply_learning_rates(built.optimizer, params)
        return built

    return build_optimizer
