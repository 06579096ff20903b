"""The task and the criterion ``bert_pretraining``: masked words, and pairs of spans (Devlin et al. 2019)."""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
import logging
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import torch.nn.functional as F
from fairseq import metrics, utils
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.data import Dictionary, data_utils
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import FairseqTask, register_task
from omegaconf import II, MISSING

from lmfusion.errors import InputError
from lmfusion.lm.bert import MASK
from lmfusion.training.documents import Documents
from lmfusion.training.span_pairs import SpanPairs

logger = logging.getLogger(__name__)


@dataclass
class BertPretrainingConfig(FairseqDataclass):
    """Flags of ``--task bert_pretraining``."""

    data: str = field(
        default=MISSING, metadata={"help": "folder of binarized text, an empty line between two documents"}
    )
    tokens_per_sample: int = field(default=512, metadata={"help": "tokens of the longest row, <s> and </s> included"})
    max_target_positions: Optional[int] = field(
        default=None, metadata={"help": "positions of the model (default: --tokens-per-sample)"}
    )
    nsp_weight: float = field(
        default=1.0,
        metadata={"help": "weight of next sentence prediction; 0: single spans, masked words alone"},
    )
    seed: int = II("common.seed")


@register_task("bert_pretraining", dataclass=BertPretrainingConfig)
class BertPretrainingTask(FairseqTask):
    """Predict masked words, and whether the second of two spans follows the first.

    Args:
        cfg: the flags.
        dictionary: of the text; its last symbol is ``<mask>``.
    """

    masks_words = True

    def __init__(self, cfg: BertPretrainingConfig, dictionary: Dictionary) -> None:
        super().__init__(cfg)
        self.dictionary = dictionary

    @classmethod
    def setup_task(cls, cfg: BertPretrainingConfig, **_: Any) -> "BertPretrainingTask":
        """Read the dictionary of the data and put ``<mask>`` at its end.

        Raises:
            InputError: if it has that elsewhere, or flags are out of range.
        """
        if not 0 <= cfg.nsp_weight < math.inf:
            raise InputError(f"--nsp-weight {cfg.nsp_weight:g}: give 0, masked words alone, or more.")
        path = Path(utils.split_paths(cfg.data)[0]) / "dict.txt"
        dictionary = Dictionary.load(str(path))
        if dictionary.add_symbol(MASK) != len(dictionary) - 1:
            raise InputError(f"{path} has {MASK} in a place that is not its last: leave it out, it is put at the end.")
        return cls(cfg, dictionary)

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **_: Any) -> None:
        """Load a split; of several folders, the one of the epoch.

        Raises:
            InputError: if it is missing, or has no documents.
        """
        folders = utils.split_paths(self.cfg.data)
        path = str(Path(folders[(epoch - 1) % len(folders)]) / split)
        lines = data_utils.load_indexed_dataset(path, self.dictionary, combine=combine)
        if lines is None:
            raise InputError(f"{path}: there is no such text; fairseq-preprocess --only-source makes it.")
        text = Documents(lines, lines.sizes, path)
        pairs = self.cfg.nsp_weight > 0
        length = self.cfg.tokens_per_sample
        made = SpanPairs(text, self.dictionary, length=length, pairs=pairs, seed=self.cfg.seed)
        self.datasets[split] = made
        between = "no empty lines, so each line is one" if text.lines_are_documents else "empty lines between"
        logger.info(f"{path}: {len(text):,} documents ({between}), {len(made):,} rows in the first epoch")

    def max_positions(self) -> int:
        """Return the longest row in tokens, as fairseq counts them."""
        return int(self.cfg.tokens_per_sample)

    @property
    def source_dictionary(self) -> Dictionary:
        """Return the dictionary."""
        return self.dictionary

    @property
    def target_dictionary(self) -> Dictionary:
        """Return the dictionary."""
        return self.dictionary


@register_criterion("bert_pretraining", dataclass=FairseqDataclass)
class BertPretrainingCriterion(FairseqCriterion):
    """The mean cross-entropy of the masked words, plus ``--nsp-weight`` times that of the pairs."""

    def __init__(self, task: BertPretrainingTask) -> None:
        super().__init__(task)
        self.weight: float = task.cfg.nsp_weight

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> Any:
        """Compute the loss of a batch.

        Args:
            model: a ``bert_lm``.
            sample: a batch of :class:`~lmfusion.training.span_pairs.SpanPairs`.
            reduce: the loss is a sum in any case.

        Returns:
            The loss (a scalar), the number of masked words, by which fairseq divides it, and the values to log.
        """
        words, others = model(**sample["net_input"])
        target = sample["target"][sample["net_input"]["masked"]]
        masked = max(1, target.numel())  # a batch of few short rows may have none
        word_loss = F.cross_entropy(words.float(), target, reduction="sum")
        logged = {
            "mlm_loss": word_loss.detach(),
            "masked": target.numel(),
            "ntokens": sample["ntokens"],
            "nsentences": sample["nsentences"],
            "sample_size": masked,
        }
        pairs = others["pair"].float()
        pair_loss = F.cross_entropy(pairs, sample["pair"], reduction="sum")
        # Also with a weight of 0: several processes stop at weights without a gradient.
        loss = word_loss + self.weight * masked / sample["nsentences"] * pair_loss
        if self.weight > 0:
            correct = pairs.argmax(-1).eq(sample["pair"]).sum()
            logged |= {"nsp_loss": pair_loss.detach(), "nsp_correct": correct, "pairs": sample["nsentences"]}
        return loss, masked, {**logged, "loss": loss.detach()}

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Log the loss, and of masked words the perplexity, of pairs the accuracy in percent; losses in bits."""

        def total(name: str) -> Any:
            return sum(log.get(name, 0) for log in logging_outputs)

        size, masked, pairs = total("sample_size"), total("masked"), total("pairs")
        metrics.log_scalar("loss", total("loss") / size / math.log(2), size, round=3)
        if masked:
            metrics.log_scalar("mlm_loss", total("mlm_loss") / masked / math.log(2), masked, round=3)
            metrics.log_derived("ppl", lambda meters: utils.get_perplexity(meters["mlm_loss"].avg))
        if pairs:
            metrics.log_scalar("nsp_loss", total("nsp_loss") / pairs / math.log(2), pairs, round=3)
            metrics.log_scalar("nsp_accuracy", 100 * total("nsp_correct") / pairs, pairs, round=2)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """Return True: all values are sums."""
        return True
