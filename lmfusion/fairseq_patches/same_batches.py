"""A resumed run trains on the batches of the unbroken one, after the first epoch too.

fairseq forms batches once and shuffles them anew for every epoch; which sentences share a batch is drawn by the number
of the epoch in which it forms them. That is the first in an unbroken run, and in a resumed one the epoch it was killed
in: from there on it would train on other batches, seeing some sentences of that epoch twice and others not at all.
"""

from __future__ import annotations

from typing import Any, Callable

from fairseq.tasks.fairseq_task import FairseqTask

FIRST = 1


def install() -> None:
    """Make fairseq form batches as in the first epoch; safe to call again."""
    original: Callable[..., Any] = FairseqTask.get_batch_iterator
    if getattr(original, "forms_them_as_at_first", False):
        return

    def get_batch_iterator(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        """fairseq's; in later epochs it goes through the batches of the first."""
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

    get_batch_iterator.forms_them_as_at_first = True  # type: ignore[attr-defined]
    FairseqTask.get_batch_iterator = get_batch_iterator
