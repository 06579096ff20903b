"""The task ``lmfusion_sentences``: several tasks of labelled sentences and pairs, trained together or one alone."""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
import logging
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Optional

from fairseq.data import iterators
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II, MISSING

from lmfusion.consumers.head_model import HeadsModel
from lmfusion.consumers.heads import CONCAT, PAIRS, RENAMED, HeadSpec
from lmfusion.errors import InputError
from lmfusion.text.label_classes import classes_of
from lmfusion.text.labelled import KINDS, find_file, read_examples
from lmfusion.training.gradients import PCGRAD, SUM, TaskGradients
from lmfusion.training.sentence_data import Encoder, SentenceData, evaluation_batches, training_batches
from lmfusion.training.sentence_flags import by_task, places_of, warn_of_tokens
from lmfusion.training.smart_terms import MovingAverage

logger = logging.getLogger(__name__)
ROUND_ROBIN, JOINT = "round_robin", "joint"
BATCH_SIZE = 8
"""Examples of a batch where neither --batch-size nor --task-batches says."""
_LARGE_PRIME = 1_000_003  # keeps the seeds of epochs apart


def _flag(text: str, default: Any = None) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass
class SentencesConfig(FairseqDataclass):
    """Flags of ``--task lmfusion_sentences``."""

    data: str = _flag(
        "a place of data for each task, ':' between: a folder with train.tsv, dev.tsv, test.tsv, or what stands "
        "before -train.csv; NAME=PLACE names the task",
        MISSING,
    )
    task_kinds: Optional[str] = _flag(
        f"NAME=KIND,…: {', '.join(KINDS)}, where the name of the label's column does not tell"
    )
    task_pairs: Optional[str] = _flag(f"NAME=PAIR,…: how pairs are treated, {', '.join(PAIRS)} (default: concat)")
    task_batches: Optional[str] = _flag(f"NAME=N,…: examples of a batch (default: --batch-size, or {BATCH_SIZE})")
    schedule: ChoiceEnum([ROUND_ROBIN, JOINT]) = field(  # type: ignore[valid-type]
        default=ROUND_ROBIN,
        metadata={"help": "round_robin: a step a batch, tasks in turn; joint: a batch of every task in each step"},
    )
    batches_per_epoch: Optional[int] = _flag(
        "batches of each task in an epoch (default: as many as the largest task has in one pass)"
    )
    gradients: ChoiceEnum([SUM, PCGRAD]) = field(  # type: ignore[valid-type]
        default=SUM,
        metadata={"help": "how a joint step combines the tasks' gradients: their sum, or PCGrad, without conflicts"},
    )
    truncate_texts: bool = _flag("cut texts that are longer than the language model takes", False)
    batch_size: Optional[int] = II("dataset.batch_size")
    train_subset: str = II("dataset.train_subset")
    seed: int = II("common.seed")


@register_task("lmfusion_sentences", dataclass=SentencesConfig)
class SentencesTask(FairseqTask):
    """Classes, yes or no, scores and tags of sentences and pairs, from tab-separated files.

    Args:
        cfg: the flags.
        stored: they are a checkpoint's, whose model may know more tasks than are asked for now.

    Raises:
        InputError: if flags contradict each other.
    """

    def __init__(self, cfg: SentencesConfig, *, stored: bool = False) -> None:
        super().__init__(cfg)
        self.stored = stored
        self.places = places_of(cfg.data)
        self.kinds = by_task("--task-kinds", cfg.task_kinds, self.places, KINDS, stored=stored)
        self.pairs = by_task("--task-pairs", cfg.task_pairs, self.places, PAIRS, stored=stored)
        sizes = by_task("--task-batches", cfg.task_batches, self.places, stored=stored)
        self.sizes = {name: int(size) for name, size in sizes.items()}
        self.model: Optional[HeadsModel] = None
        self.average = MovingAverage(None)  # none until there is a criterion that needs one
        if not stored and cfg.gradients == PCGRAD and (cfg.schedule != JOINT or len(self.places) < 2):
            raise InputError("--gradients pcgrad compares tasks of one step: give --schedule joint and several tasks.")
        if cfg.batches_per_epoch is not None and cfg.batches_per_epoch < 1:
            raise InputError(f"--batches-per-epoch {cfg.batches_per_epoch}: give 1 or more.")
        self.task_gradients = TaskGradients(projected=cfg.gradients == PCGRAD, seed=cfg.seed)

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Add the task's flags, and give --batch-size its default; fairseq asks for it, or --max-tokens, else."""
        super().add_args(parser)
        parser.set_defaults(batch_size=BATCH_SIZE)

    @classmethod
    def setup_task(cls, cfg: SentencesConfig, from_checkpoint: bool = False, **_: Any) -> "SentencesTask":
        """Make the task; its files are read later.

        Raises:
            InputError: if flags contradict each other.
        """
        if (run := getattr(cfg, "_get_parent", lambda: None)()) is not None:
            run["dataset"]["ignore_unused_valid_subsets"] = True  # fairseq would look for folders of binarized text
            if not from_checkpoint:
                warn_of_tokens(run["dataset"], cfg.batch_size or BATCH_SIZE)
        return cls(cfg, stored=from_checkpoint)

    def head_specs(self) -> list[HeadSpec]:
        """Return what the heads are for, read off the training data.

        Raises:
            InputError: naming the file, if a task has no training data, or they are none of the documented kinds.
        """
        specs = []
        for name, place in self.places.items():
            path = find_file(place, self.cfg.train_subset)
            columns, examples = read_examples(path, kind=self.kinds.get(name))
            assert columns.kind is not None
            if len(columns.texts) < 2 and name in self.pairs:
                raise InputError(f"--task-pairs {name}={self.pairs[name]}: {path} has single sentences, no pairs.")
            pair = self.pairs.get(name, CONCAT) if len(columns.texts) == 2 else None
            specs.append(HeadSpec(name, columns.kind, pair, tuple(classes_of(examples, columns.kind))))
        return specs

    @property
    def uses_ema(self) -> bool:
        """Tell fairseq whether steps are given the averaged weights."""
        return self.average.needed

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model, by whose language model texts are encoded."""
        model = super().build_model(cfg, from_checkpoint)
        if not isinstance(model, HeadsModel):
            raise InputError("--task lmfusion_sentences trains --arch lmfusion_heads: give that.")
        self.model = model
        return model

    def build_criterion(self, cfg: Any, *args: Any, **kwargs: Any) -> Any:
        """Build the criterion, and switch on the moving average of weights that its Bregman term needs."""
        self.average = MovingAverage(cfg, stored=self.stored)
        criterion = super().build_criterion(cfg, *args, **kwargs)
        if not hasattr(criterion, "task_loss"):
            raise InputError("--task lmfusion_sentences is trained by --criterion sentence_tasks: give that.")
        if self.model is not None:
            criterion.check(self.model)
        return criterion

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **_: Any) -> None:
        """Read and encode a split of every task.

        Raises:
            InputError: naming file and line of what is wrong.
        """
        assert self.model is not None
        specs = {spec.name: spec for spec in self.model.specs}
        if unknown := sorted(set(self.places) - set(specs)):
            raise InputError(f"the model has no head for {', '.join(unknown)}: it has {', '.join(specs)}. {RENAMED}")
        chosen = [specs[name] for name in self.places]
        examples = []
        for number, spec in enumerate(chosen):
            path = find_file(self.places[spec.name], split)
            columns, rows = read_examples(path, kind=spec.kind)
            encode = Encoder(self.model.lm, spec, number, path, truncate=self.cfg.truncate_texts)
            examples.append([encode(row) for row in rows])
            cut = f", {encode.cut:,} of them cut" if encode.cut else ""
            logger.info(f"{spec.name} ({spec.kind}, {spec.pair or 'single'}): {len(rows):,} of {path}: {columns}{cut}")
        training = not self.stored and split == self.cfg.train_subset
        self.datasets[split] = SentenceData(chosen, examples, self.model.lm.padding_idx, training=training)

    def get_batch_iterator(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        """Return fairseq's iterator over batches in the order of ``--schedule``, drawn anew for every epoch."""
        if dataset.training and "grouped_shuffling" not in kwargs:  # only Trainer.get_train_iterator gives it
            dataset = copy(dataset)  # --valid-subset names the training data
            dataset.training = False
        workers, sizes = kwargs.get("num_shards", 1), self._sizes(dataset, kwargs.get("max_sentences"))

        def batches(data: SentenceData, epoch: int) -> list[list[int]]:
            if not data.training:
                return evaluation_batches(data, sizes)
            return training_batches(
                data,
                sizes,
                joint=self.cfg.schedule == JOINT,
                count=self.cfg.batches_per_epoch,
                workers=workers,
                seed=self.cfg.seed * _LARGE_PRIME + epoch,
            )

        return iterators.EpochBatchIterator(
            dataset=dataset,
            collate_fn=dataset.collater,
            batch_sampler=batches,
            seed=kwargs.get("seed", 1),
            num_shards=workers,
            shard_id=kwargs.get("shard_id", 0),
            num_workers=kwargs.get("num_workers", 0),
            epoch=kwargs.get("epoch", 1),
            buffer_size=kwargs.get("data_buffer_size", 0),
            disable_shuffling=True,
        )

    def _sizes(self, dataset: SentenceData, given: Optional[int]) -> list[int]:
        """Return the size of each task's batches; ``given`` is --batch-size-valid, else --batch-size."""
        size = self.cfg.batch_size or BATCH_SIZE
        if given is not None and given != size and not (dataset.training or self.stored):
            return [given] * len(dataset.specs)
        return [self.sizes.get(spec.name, size) for spec in dataset.specs]

    def train_step(
        self,
        sample: Any,
        model: Any,
        criterion: Any,
        optimizer: Any,
        update_num: int,
        ignore_grad: bool = False,
        ema_model: Any = None,
    ) -> Any:
        """Compute the gradients of a batch, task by task; see :class:`TaskGradients`."""
        model.train()
        model.set_num_updates(update_num)
        self.average.before(update_num)
        losses = {
            name: partial(criterion.task_loss, model, name, part, update_num, ema_model)
            for name, part in sample["tasks"].items()
        }
        logs = self.task_gradients.backward(losses, model, optimizer, update_num, ignore=ignore_grad)
        return criterion.joined(logs, sample)

    def valid_step(self, sample: Any, model: Any, criterion: Any, ema_model: Any = None) -> Any:
        """Evaluate a batch; averaged weights are for training alone."""
        return super().valid_step(sample, model, criterion)

    def has_sharded_data(self, split: str) -> bool:
        """Return False: the places of --data are tasks, not parts to be read in turn."""
        return False

    def max_positions(self) -> None:
        """Return None: lengths are checked when texts are read."""

    source_dictionary = target_dictionary = None  # the symbols are the language model's, labels are numbers
