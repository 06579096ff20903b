"""What makes fairseq know lmfusion: patches, then everything that registers itself."""

from __future__ import annotations

import logging

_installed = False


def install() -> None:
    """Patch fairseq and register all models, criterions and tokenizers; a second call changes nothing."""
    global _installed
    if _installed:
        return
    _installed = True  # first: what is imported below may call this again
    # Every fairseq command would say that a package for speech is missing, which says nothing to our users.
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
    from lmfusion import fairseq_patches

    fairseq_patches.install()
    import lmfusion.convert.variant
    import lmfusion.fusion.architectures
    import lmfusion.text.tokenizer
    import lmfusion.training.criterions  # noqa: F401
