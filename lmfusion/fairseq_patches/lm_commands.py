"""What fairseq's commands for language models cannot do with ours is said in one line.

A cloze LM sees the words it would have to generate; ``fairseq-eval-lm`` knows one target for each position.
"""

from __future__ import annotations

from typing import Any, Callable

from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks.language_modeling import LanguageModelingTask

from lmfusion.errors import UserError
from lmfusion.lm.interface import PretrainedLM


def install() -> None:
    """Make fairseq say so; safe to call again."""
    if getattr(SequenceScorer.generate, "knows_targets", False):
        return
    _refuse_to_generate()
    _refuse_several_targets()


def _refuse_to_generate() -> None:
    original: Callable[..., Any] = LanguageModelingTask.build_generator

    def build_generator(self: Any, models: Any, args: Any, *more: Any, **kwargs: Any) -> Any:
        """fairseq's, for models that predict the next word."""
        for model in models:
            decoder = getattr(model, "decoder", None)
            if isinstance(decoder, PretrainedLM) and decoder.sees_future and not args.score_reference:
                raise UserError(
                    "this is a cloze language model (bi_transformer_lm), which sees the words on both sides and "
                    "generates none: give a causal LM (uni_transformer_lm)."
                )
        return original(self, models, args, *more, **kwargs)

    LanguageModelingTask.build_generator = build_generator


def _refuse_several_targets() -> None:
    original: Callable[..., Any] = SequenceScorer.generate

    def generate(self: Any, models: Any, sample: Any, **kwargs: Any) -> Any:
        """fairseq's, for models with one target a position."""
        for model in models:
            targets = getattr(getattr(model, "decoder", None), "targets", ())
            if len(targets) > 1:
                given = " ".join(f"--{target}-target" for target in targets)
                raise UserError(
                    f"fairseq-eval-lm scores one target for each position, and this model has {given}: its loss is "
                    f"told by fairseq-validate --task language_modeling {given}."
                )
        return original(self, models, sample, **kwargs)

    generate.knows_targets = True  # type: ignore[attr-defined]
    SequenceScorer.generate = generate
