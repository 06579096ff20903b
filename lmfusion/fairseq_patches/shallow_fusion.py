"""``--lm-path``: a language model's scores on top of a model's while decoding. What fairseq leaves unchecked of it.

Another dictionary, a model that is not causal or a weight of zero would only show in the translations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

from fairseq import utils
from fairseq.data import Dictionary
from fairseq.tasks.fairseq_task import FairseqTask
from fairseq.tasks.language_modeling import LanguageModelingTask

from lmfusion.errors import UserError
from lmfusion.lm.interface import PretrainedLM
from lmfusion.lm.vocabulary import check_symbols


def check(lm: Any, args: Any, dictionary: Dictionary) -> None:
    """Refuse what would be ignored, or would distort every score.

    Args:
        lm: fairseq's language model for ``--lm-path``; None where a command or scorer takes none.
        args: fairseq's generation settings.
        dictionary: of the target.

    Raises:
        UserError: naming the flag and the mend.
    """
    if lm is None or args.score_reference:
        who = "by this command: use fairseq-generate" if lm is None else "with --score-reference: leave one of them out"
        raise UserError(f"--lm-path {args.lm_path} would be ignored {who}.")
    if not args.lm_weight:
        raise UserError(f"--lm-path {args.lm_path} would be ignored with --lm-weight 0, the default: add --lm-weight.")
    if isinstance(lm.decoder, PretrainedLM) and lm.decoder.sees_future:
        raise UserError(
            f"--lm-path {args.lm_path} is a cloze language model (bi_transformer_lm), which scores no next words: give "
            f"a causal LM (uni_transformer_lm)."
        )
    check_symbols(list(lm.decoder.dictionary.symbols), list(dictionary.symbols), what="the target dictionary")


def install() -> None:
    """Make fairseq check it; safe to call again."""
    _check_generators()
    _explain_missing_dictionary()


def _check_generators() -> None:
    original: Callable[..., Any] = FairseqTask.build_generator
    if getattr(original, "checks_lm", False):
        return

    def build_generator(
        self: Any, models: Any, args: Any, seq_gen_cls: Any = None, extra_gen_cls_kwargs: Any = None, **kwargs: Any
    ) -> Any:
        """fairseq's, for what will not be ignored, and no longer than the language model reads.

        Raises:
            UserError: as :func:`check`.
        """
        lm = (extra_gen_cls_kwargs or {}).get("lm_model")
        if getattr(args, "lm_path", None):
            check(lm, args, self.target_dictionary)
        generator = original(self, models, args, seq_gen_cls, extra_gen_cls_kwargs, **kwargs)
        if lm is not None and hasattr(generator, "max_len"):
            generator.max_len = min(generator.max_len, lm.max_positions())
        return generator

    build_generator.checks_lm = True  # type: ignore[attr-defined]
    FairseqTask.build_generator = build_generator


def _explain_missing_dictionary() -> None:
    original: Callable[..., Any] = LanguageModelingTask.setup_dictionary.__func__
    if getattr(original, "explains", False):
        return

    def setup_dictionary(cls: Any, args: Any, **kwargs: Any) -> Any:
        """fairseq's; it looks for ``dict.txt`` also in the folder of a bitext, which has none."""
        path = Path(utils.split_paths(args.data)[0], "dict.txt") if args.data else None
        if path is not None and not path.is_file():
            raise UserError(
                f"{path} does not exist, and a language model needs its dictionary there. For --lm-path, copy the "
                f"target language's: cp {path.parent}/dict.LANG.txt {path}"
            )
        return original(cls, args, **kwargs)

    setup_dictionary.explains = True  # type: ignore[attr-defined]
    LanguageModelingTask.setup_dictionary = classmethod(setup_dictionary)
