"""The batches of a resumed run.

fairseq forms batches once and shuffles them anew for every epoch; which sentences share a batch is drawn by the number
of the epoch in which it forms them. That is the first in an unbroken run, and in a resumed one the epoch it was killed
in: from there on it would train on other batches, seeing some sentences of that epoch twice and others not at all.
"""

from __future__ import annotations

from typing import Any, Callable

FIRST = 1


def form_batches_as_in_the_first_epoch(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make a task that is asked for a later epoch first go through the batches of the first epoch, reshuffled."""

    def get_batch_iterator(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        epoch = kwargs.get("epoch", FIRST)
        formed_anew = kwargs.get("disable_iterator_cache") or kwargs.get("update_epoch_batch_itr")
        kept = dataset in self.dataset_to_epoch_iter
        rebuilt = getattr(self.cfg, "rebuild_batches", False)
        if epoch == FIRST or formed_anew or kept or rebuilt or not self.can_reuse_epoch_itr(dataset):
            return original(self, dataset, *args, **kwargs)
        batches = original(self, dataset, *args, **{**kwargs, "epoch": FIRST})
        batches.epoch = epoch
        dataset.set_epoch(epoch)
        return batches

    return get_batch_iterator
