"""A trained model with heads as a Python object that labels sentences and pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils

from lmfusion.checkpoint.finding import find_checkpoint
from lmfusion.checkpoint.reading import model_config, read_checkpoint
from lmfusion.consumers.head_model import HeadsModel
from lmfusion.consumers.heads import HeadSpec, probabilities
from lmfusion.described import labels
from lmfusion.errors import InputError
from lmfusion.inference.hub import as_input_error
from lmfusion.text.labelled import SCORE, TAGS, Example
from lmfusion.training.sentence_data import Encoder, batch


@dataclass(frozen=True)
class Prediction:
    """Holds what a head says of an example.

    Attributes:
        label: the most likely class, the score, or the tags with spaces between.
        values: the probability of each class in the order of the head's; of tags that of each word's tag; of a score
            the score.
    """

    label: str
    values: tuple[float, ...]


class Predictor:
    """A loaded ``lmfusion_heads`` that labels texts.

    Args:
        model: in evaluation mode.
    """

    def __init__(self, model: HeadsModel) -> None:
        self.model = model

    def head(self, name: str | None = None) -> HeadSpec:
        """Return a head by its name; None: the only one.

        Raises:
            InputError: if there is none of that name, or several and none was named.
        """
        specs = {spec.name: spec for spec in self.model.specs}
        if name is None and len(specs) == 1:
            return next(iter(specs.values()))
        if name not in specs:
            asked = "the model has several heads" if name is None else f"the model has no head {name}"
            raise InputError(f"{asked}: give --task {' or '.join(specs)}.")
        return specs[name]

    @torch.no_grad()
    def predict(
        self, spec: HeadSpec, examples: Sequence[Example], path: Path, *, size: int = 64, truncate: bool = False
    ) -> Iterator[Prediction]:
        """Yield the prediction of each example.

        Args:
            spec: of the head.
            examples: their labels are not looked at.
            path: of their file, for messages.
            size: of a batch.
            truncate: cut what is too long.

        Raises:
            InputError: naming file and line of a text that does not fit the head or the language model.
        """
        encode = Encoder(self.model.lm, spec, 0, path, truncate=truncate)
        encoded = [encode(Example(each.line, each.texts)) for each in examples]
        device = next(self.model.parameters()).device
        for start in range(0, len(encoded), size):
            made = batch(encoded[start : start + size], self.model.lm.padding_idx)
            logits = self.model(spec.name, [rows.to(device) for rows in made["rows"]])
            values = probabilities(spec, logits).cpu()
            for row, each in zip(values, encoded[start : start + size]):
                yield _prediction(spec, row if each.target is None else row[: len(each.target)][each.target.eq(0)])


def _prediction(spec: HeadSpec, values: torch.Tensor) -> Prediction:
    """Make a prediction of K probabilities, one score, or W x K probabilities of W words' tags."""
    if spec.kind == SCORE:
        return Prediction(f"{float(values[0]):.4f}", (float(values[0]),))
    best = values.max(-1)
    if spec.kind == TAGS:
        return Prediction(" ".join(spec.classes[index] for index in best.indices.tolist()), tuple(best.values.tolist()))
    return Prediction(spec.classes[int(best.indices)], tuple(values.tolist()))


def load_heads(path: str | Path, **overrides: Any) -> Predictor:
    """Load a model with heads; everything it needs is in its checkpoint.

    Args:
        path: a checkpoint, or a run's folder.
        overrides: configuration values to replace.

    Raises:
        InputError: if there is no checkpoint there, it cannot be read, or it has no heads.
    """
    checkpoint = find_checkpoint(Path(path), labels, otherwise="a model that --task lmfusion_sentences trained")
    config = model_config(checkpoint, read_checkpoint(checkpoint))
    if "heads_config" not in config:
        raise InputError(f"{checkpoint} has no heads: give a model that --task lmfusion_sentences trained.")
    with as_input_error(checkpoint):
        models, _, _ = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], arg_overrides=overrides)
    model = models[0].eval()
    assert isinstance(model, HeadsModel)
    return Predictor(model)
