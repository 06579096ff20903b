"""sacreBLEU's BLEU with the tokenization of the language: words where there are spaces between them.

13a, for languages with spaces, takes a sentence of Thai for one word, and BLEU is 0 for all but perfect translations.
"""

from __future__ import annotations

import logging
import re
from importlib.util import find_spec

from lmfusion.errors import InputError
from lmfusion.scoring.streaming import StreamingBleu

DEFAULT, CHARACTERS = "13a", "char"
_CHINESE = ("zh", "zho", "chi", "cmn")
_JAPANESE, _KOREAN = ("MeCab", "ja"), ("mecab_ko", "ko")
_MECAB = {"ja": _JAPANESE, "jpn": _JAPANESE, "ko": _KOREAN, "kor": _KOREAN}
"""Languages -> the module that sacreBLEU needs for their words, and its extra that installs it."""
_SPACELESS = "th tha lo lao km khm my mya bur bo bod tib dz dzo yue wuu lzh".split()
"""Codes of languages without spaces between words that sacreBLEU has no tokenization of their own for."""
_COUNTED = {"zh": "Chinese characters and words of other scripts", CHARACTERS: "characters"}
_TOKENIZER = re.compile(r"\|tok:(13a|zh|char|ja-mecab|ko-mecab)[-|]")
logger = logging.getLogger(__name__)


def make_metric(language_pair: str | None, tokenizer: str | None = None) -> StreamingBleu:
    """Return sacreBLEU's metric for a language pair.

    Args:
        language_pair: source and target (``en-zh``); None: with spaces between words.
        tokenizer: sacreBLEU's name of a tokenization, instead of the one that goes with the target language.

    Raises:
        InputError: the pair has no target.
    """
    target = language_pair.partition("-")[2] if language_pair else ""
    if language_pair and not target:  # sacreBLEU would take the tokenization of English
        raise InputError(f"--language-pair {language_pair}: give source and target with a hyphen between them, en-zh.")
    name = tokenizer or tokenizer_for(target)
    try:
        return StreamingBleu(tokenize=name)
    except RuntimeError as error:
        raise InputError(f"BLEU with tok:{name} needs an extra: pip install 'sacrebleu[{name[:2]}]'.") from error
    except KeyError as error:
        raise InputError(
            f"sacreBLEU has no tokenizer {name!r}: give one of {', '.join(sorted(StreamingBleu.TOKENIZERS))}."
        ) from error


def tokenizer_for(language: str) -> str:
    """Return sacreBLEU's name of the tokenization for a target language; warn where that of its words is missing.

    Args:
        language: its code (zh, zh_TW, tha, …); any other name stands for a language with spaces between words.
    """
    name, missing = _choose(language)
    if missing:
        logger.warning(how_counted(language))
    return name


def how_counted(language: str) -> str:
    """Say in a line what BLEU of a language counts, and what to install where the tokenizer of its words is missing.

    Args:
        language: as :func:`tokenizer_for` takes it.

    Returns:
        The line; empty for a language with spaces between words.
    """
    name, missing = _choose(language)
    if name == DEFAULT:
        return ""
    needs = f": its words need pip install 'sacrebleu[{missing}]'" if missing else ""
    return f"BLEU of {language} counts {_COUNTED.get(name, 'words')} (tok:{name}){needs}."


def _choose(language: str) -> tuple[str, str]:
    """Return the tokenization for a language, and sacreBLEU's extra that is missing for one of words, or nothing."""
    code = re.split("[-_]", language.lower())[0]
    if code in _CHINESE:
        return "zh", ""
    if code not in _MECAB:
        return CHARACTERS if code in _SPACELESS else DEFAULT, ""
    module, extra = _MECAB[code]
    return (f"{extra}-mecab", "") if find_spec(module) else (CHARACTERS, extra)


def tokenizer_of(signature: str) -> str | None:
    """Return sacreBLEU's name of the tokenization that a score with this signature was computed with.

    None stands for another one than this module chooses: sacreBLEU downloads the models of some.
    """
    match = _TOKENIZER.search(signature)
    return match[1] if match else None
