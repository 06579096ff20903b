"""How the files of ``lmfusion score`` find words for BLEU where no ``--language-pair`` says it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

logger = logging.getLogger(__name__)

LEAST, MOST = 0.1, 0.5
"""Shares of letters without spaces between words: below the one an ending is no language, above the other 13a fails."""
_MORE = r"\p{Hangul}\p{Tibetan}"
"""Scripts of which 13a finds no words either, or only long ones."""


def tokenizer_of_files(
    language_pair: str | None, files: Sequence[str], texts: Sequence[Sequence[str]], said: str | None = None
) -> str | None:
    """Return sacreBLEU's name of the tokenization that references ask for; warn where it is needed and cannot be told.

    Args:
        language_pair: source and target as the user gives them, which decide.
        files: names of the reference files, whose endings may be languages (test.ja, test.zh_CN.gz).
        texts: the references, as many lines each.
        said: the target language where another flag says it.

    Returns:
        The name; None for what the language pair says, and without one for words between spaces (13a).
    """
    from lmfusion.scoring.bleu_metric import DEFAULT, how_counted, tokenizer_for
    from lmfusion.scoring.unicode_words import SPACELESS, share_of_letters
    from lmfusion.text.own_request import ending

    if language_pair:
        return None
    share = share_of_letters((line for text in texts for line in text), SPACELESS + _MORE)
    languages = [said or "", *(ending(Path(file)) for file in files)]
    found = next((language for language in languages if how_counted(language)), None)
    if found and share >= LEAST:
        return tokenizer_for(found)
    if share > MOST:
        name = files[0] if files else "the reference"
        logger.warning(
            f"{name}: most letters are of a script whose sentences tok:{DEFAULT} counts as one word or few. Say the "
            f"languages: --language-pair en-ja (zh, ko, th, …)."
        )
    return None
