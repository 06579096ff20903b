"""The task ``lmfusion_translation``: fairseq's ``translation``, where a step may have several losses."""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
from dataclasses import dataclass, field
from typing import Any

from fairseq.dataclass import ChoiceEnum
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import II

from lmfusion.errors import InputError
from lmfusion.training.gradients import PCGRAD, SUM, TaskGradients
from lmfusion.training.smart_terms import MovingAverage


@dataclass
class LMFusionTranslationConfig(TranslationConfig):
    """Flags of ``--task lmfusion_translation``: those of ``translation``, and how losses are combined."""

    gradients: ChoiceEnum([SUM, PCGRAD]) = field(  # type: ignore[valid-type]
        default=SUM,
        metadata={"help": "how the gradients of translation and language models are combined: their sum, or PCGrad"},
    )
    seed: int = II("common.seed")


@register_task("lmfusion_translation", dataclass=LMFusionTranslationConfig)
class LMFusionTranslation(TranslationTask):
    """Translation with the loss of language models (``--lm-loss-weight``) and with SMART; see ``translation_tasks``.

    A model trained so is one of fairseq's ``translation`` in every other respect.
    """

    def __init__(self, cfg: Any, src_dict: Any, tgt_dict: Any) -> None:
        super().__init__(cfg, src_dict, tgt_dict)
        self.model: Any = None
        self.average = MovingAverage(None)  # none until there is a criterion that needs one
        self.stored = False  # whether the model is a checkpoint's, whose training is over
        self.task_gradients = TaskGradients(projected=cfg.gradients == PCGRAD, seed=cfg.seed)

    @property
    def uses_ema(self) -> bool:
        """Tell fairseq whether steps are given the averaged weights."""
        return self.average.needed

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model as fairseq does, and remember it for checks of the criterion."""
        self.model, self.stored = super().build_model(cfg, from_checkpoint), from_checkpoint
        return self.model

    def build_criterion(self, cfg: Any, *args: Any, **kwargs: Any) -> Any:
        """Build the criterion, and switch on the moving average of weights that its Bregman term needs.

        Raises:
            InputError: if it is another one, or there is nothing to combine.
        """
        self.average = MovingAverage(cfg, stored=self.stored)
        criterion = super().build_criterion(cfg, *args, **kwargs)
        if not hasattr(criterion, "task_losses"):
            raise InputError("--task lmfusion_translation is trained by --criterion translation_tasks: give that.")
        if self.task_gradients.projected and not cfg.lm_loss_weight:
            raise InputError("--gradients pcgrad compares translation with language models: give --lm-loss-weight.")
        if self.model is not None:
            criterion.check(self.model)
        return criterion

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
        """Compute the gradients of a batch, loss by loss; see :class:`TaskGradients`."""
        model.train()
        model.set_num_updates(update_num)
        self.average.before(update_num)
        losses = criterion.task_losses(model, sample, update_num, ema_model)
        logs = self.task_gradients.backward(losses, model, optimizer, update_num, ignore=ignore_grad)
        return criterion.joined(logs, sample)

    def valid_step(self, sample: Any, model: Any, criterion: Any, ema_model: Any = None) -> Any:
        """Evaluate a batch; averaged weights are for training alone."""
        return super().valid_step(sample, model, criterion)
