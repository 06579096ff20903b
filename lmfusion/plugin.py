"""Make lmfusion known to fairseq: apply the patches, then import everything that registers itself."""

from __future__ import annotations

import logging

_registered = False


def install() -> None:
    """Patch fairseq and register all models, criterions and tokenizers; a second call changes nothing."""
    global _registered
    _import_fairseq()
    from lmfusion import fairseq_patches

    fairseq_patches.install()
    if _registered:
        return
    _registered = True  # first: what is imported below may call this again
    import lmfusion.consumers.lstm
    import lmfusion.consumers.prefix_lm
    import lmfusion.convert.variant
    import lmfusion.fusion.architectures
    import lmfusion.text.tokenizer
    import lmfusion.text.two_bpe
    import lmfusion.training.bert_pretraining
    import lmfusion.training.criterions
    import lmfusion.training.lm_prior
    import lmfusion.training.rmsprop
    import lmfusion.training.sentence_criterion
    import lmfusion.training.sentences
    import lmfusion.training.translation
    import lmfusion.training.translation_criterion  # noqa: F401


def uninstall() -> None:
    """Give fairseq back what the patches replaced; what was registered stays, and :func:`install` patches again."""
    from lmfusion import fairseq_patches

    fairseq_patches.uninstall()


def _import_fairseq() -> None:
    """Import fairseq without its log line about a missing speech package, which means nothing to our users."""
    logger = logging.getLogger("fairseq.tasks.text_to_speech")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        import fairseq  # noqa: F401
    finally:
        logger.setLevel(level)
