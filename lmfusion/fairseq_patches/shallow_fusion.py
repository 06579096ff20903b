"""Language models in fairseq's generators: ``--lm-path`` beside a model, and ``--task language_modeling``."""

from __future__ import annotations

from typing import Any, Callable

from lmfusion.errors import InputError
from lmfusion.lm.interface import PretrainedLM
from lmfusion.lm.symbols import check_symbols


def check_generating_lm(model: Any, path: str) -> None:
    """Refuse a language model that sees the words it would have to score.

    Args:
        model: of fairseq; others than language models of lmfusion pass.
        path: for the message.

    Raises:
        InputError: it is one.
    """
    decoder = getattr(model, "decoder", None)
    if isinstance(decoder, PretrainedLM) and decoder.sees_future:
        raise InputError(
            f"{path} is a {decoder.title}, which sees the words on both sides and generates none: give one that reads "
            f"from left to right (uni_transformer_lm, uni_recurrent_lm)."
        )


def check_generators(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``build_generator`` refuse LMs that would distort every score, and stop where the LM's positions end."""

    def build_generator(
        self: Any, models: Any, args: Any, seq_gen_cls: Any = None, extra_gen_cls_kwargs: Any = None, **kwargs: Any
    ) -> Any:
        lm = (extra_gen_cls_kwargs or {}).get("lm_model")
        if not getattr(args, "score_reference", False):
            for model in models:
                check_generating_lm(model, "--path")
        if lm is not None:
            check_generating_lm(lm, f"--lm-path {args.lm_path}")
            symbols = list(self.target_dictionary.symbols)
            check_symbols(list(lm.decoder.dictionary.symbols), symbols, what="the target dictionary")
        generator = original(self, models, args, seq_gen_cls, extra_gen_cls_kwargs, **kwargs)
        if lm is not None and hasattr(generator, "max_len"):
            generator.max_len = min(generator.max_len, lm.max_positions())
        return generator

    return build_generator
