"""Decoding states follow the beam: what is kept of a hypothesis goes where the hypothesis goes."""

from __future__ import annotations

import logging

import torch
from torch import Tensor, nn

from lmfusion.lm.interface import IncrementalState
from lmfusion.registration import comes_with_lmfusion

logger = logging.getLogger(__name__)


def reorder_states(module: nn.Module, incremental_state: IncrementalState, new_order: Tensor) -> None:
    """Reorder the decoding states of a module and of all inside it: row b becomes former row ``new_order[b]``.

    fairseq asks every module at every step whether it can be reordered, which is expensive: a module looks through
    its parameters, buffers and children before it says no. Asking its class is quick.

    Args:
        module: a decoder, or a part of one.
        incremental_state: fairseq's decoding state.
        new_order: B row numbers.
    """
    for part in module.modules():
        if hasattr(type(part), "reorder_incremental_state"):
            part.reorder_incremental_state(incremental_state, new_order)  # type: ignore[operator]


class BeamWatch:
    """Warns once if what a part of one's own keeps of decoded positions did not follow the beam.

    Nothing fails then: hypotheses go on with the states of others, and translations are a little worse. The parts that
    come with lmfusion are tested, and not watched.

    Args:
        parts: an integration and its language model.
    """

    def __init__(self, *parts: nn.Module) -> None:
        kinds = [type(part) for part in parts if not comes_with_lmfusion(type(part))]
        self._names = " or ".join(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
        self._is_done = not kinds
        self.rows = 0
        """Number of hypotheses at the last step."""

    def before(
        self, decoder: nn.Module, reader: nn.Module, state: IncrementalState, order: Tensor
    ) -> dict[str, Tensor | None]:
        """Remember the tensors that the reader keeps, if the coming order moves rows and none has been seen to.

        Args:
            decoder: the decoder; keys of its own modules are none of the reader's.
            reader: a part of it, with integration and language model inside.
            state: fairseq's decoding state.
            order: B row numbers.
        """
        if self._is_done or torch.equal(order, torch.arange(len(order), device=order.device)):
            return {}
        self._is_done = True
        inside = set(reader.modules())
        others = {getattr(part, "_incremental_state_id", None) for part in decoder.modules() if part not in inside}
        own = {key: kept for key, kept in state.items() if key.split(".")[0] not in others and isinstance(kept, dict)}
        return {
            f"{key}, {name}": kept[name] for key, kept in own.items() for name in kept if self._has_rows(kept[name])
        }

    def after(self, before: dict[str, Tensor | None], state: IncrementalState) -> None:
        """Warn of a tensor that is still the same one.

        Args:
            before: from :meth:`before`.
            state: fairseq's decoding state, reordered.
        """
        now = {f"{key}, {name}": kept[name] for key, kept in state.items() if before for name in kept or {}}
        still = [name for name, tensor in before.items() if now.get(name) is tensor]
        if still:
            logger.warning(
                f"the decoding state ({still[0]}) did not follow the beam, so hypotheses go on with the states of "
                f"others: define reorder_incremental_state(incremental_state, new_order) in {self._names}."
            )

    def _has_rows(self, kept: object) -> bool:
        """Return whether something looks as if it had a row for each hypothesis, in its first or second dimension."""
        return isinstance(kept, Tensor) and kept.dim() > 1 and self.rows in kept.shape[:2]
