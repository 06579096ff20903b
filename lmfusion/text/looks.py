"""Which language a text looks like, by its commonest words or its script, against the one that it is said to be in."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import partial

from lmfusion.text.codes import SLIPS, base

LETTERS = 100  # below which nothing is guessed
HARDLY, MOSTLY, NEARLY_ALL = 0.2, 0.5, 0.8  # of the letters
COMMON = 0.05  # of the words: those of WORDS are 0.15 or more of a language's text
WORDS = {
    "cs": "a je se na že v to s z o",
    "da": "og er det en at på til af som ikke",
    "de": "der die das und ist nicht ein eine mit für zu den",
    "en": "the of and to is a in that for it with you",
    "es": "el la de que y los las una por con es en",
    "fi": "ja on ei että se oli hän ovat kun tai",
    "fr": "le la les des et est une du que pas dans pour",
    "hu": "a az és nem hogy egy is van meg",
    "it": "il di che la un è per non una del sono gli",
    "nl": "de het een van en is niet dat op te voor",
    "pl": "i w nie na się z że jest do to",
    "pt": "o que de não uma os para com é do da em",
    "ro": "și de în la nu care cu pe este din",
    "sv": "och är det en att på som av inte till",
    "tr": "ve bir bu için ile da de çok olarak",
}
SCRIPTS = {
    **dict.fromkeys("ru uk bg sr mk be kk".split(), ("CYRILLIC",)),
    **dict.fromkeys("ar fa ur".split(), ("ARABIC",)),
    **dict.fromkeys("hi mr ne".split(), ("DEVANAGARI",)),
    "el": ("GREEK",),
    "he": ("HEBREW",),
    "th": ("THAI",),
    "ka": ("GEORGIAN",),
    "hy": ("ARMENIAN",),
    "ko": ("HANGUL",),
    "ja": ("HIRAGANA", "KATAKANA", "CJK"),
    "zh": ("CJK",),
}
LATIN_AS_WELL = frozenset(("kk", "sr"))
"""Languages of SCRIPTS that are written in Latin letters, too."""
ONE_LANGUAGE = dict(
    pair.split(":")
    for pair in "HANGUL:ko CJK:zh THAI:th HEBREW:he GREEK:el GEORGIAN:ka ARMENIAN:hy KHMER:km LAO:lo MYANMAR:my "
    "TIBETAN:bo TAMIL:ta TELUGU:te KANNADA:kn MALAYALAM:ml GUJARATI:gu SINHALA:si ETHIOPIC:am".split()
)
"""Scripts that stand for one language."""
BORROW = frozenset("dz iw pi sa ti yi".split())
"""Languages of two letters that are written in another one's script."""
NAMES = {"ja": "Japanese", "zh": "Chinese", "ko": "Korean"}
SAY_SO = "Then name it so, by -s or -t or the file's ending"


def fit(language: str, text: list[str]) -> float:
    """Return the share of words that are a language's commonest, or of letters that are of its script.

    Args:
        language: one of WORDS or SCRIPTS, see `is_known`.
        text: lines.
    """
    code = base(language)
    if code in WORDS:
        common = set(WORDS[code].split())
        words = [word for line in text for word in re.findall(r"\w+", line.casefold())]
        return sum(word in common for word in words) / max(1, len(words))
    return _share(_letters(text), SCRIPTS[code])


def is_known(language: str) -> bool:
    """Return whether words or script of a language are known here."""
    return base(language) in WORDS or base(language) in SCRIPTS


def doubts(language: str, text: list[str], name: str) -> list[str]:
    """Return a warning if a text is hardly in the language that it is said to be in.

    Args:
        language: its code.
        text: lines.
        name: what to call the text.
    """
    letters, code = _letters(text), base(language)
    if letters.total() < LETTERS:
        return []
    if code in SCRIPTS:
        latin = code in LATIN_AS_WELL or "latn" in language.casefold() or "latin" in language.casefold()
        if latin or _share(letters, SCRIPTS[code]) >= HARDLY:
            return []
        what = NAMES.get(code, SCRIPTS[code][0].title())
        return [f"{name} has hardly a {what} letter: is it in another encoding, or another language?"]
    meant = SLIPS.get(code)
    if meant and fit(meant, text) >= (COMMON if meant in WORDS else MOSTLY):
        return [f"{name} looks like {meant}, and {code} is not its code: is it {meant}? {SAY_SO}"]
    return _by_script(code, letters, name) if len(code) == 2 and code not in BORROW else []


def _by_script(code: str, letters: Counter[str], name: str) -> list[str]:
    """Return a warning if nearly all letters are of a script that a language without an entry in SCRIPTS has not."""
    share = partial(_share, letters)
    if share(("HIRAGANA", "KATAKANA")) >= HARDLY and share(SCRIPTS["ja"]) >= NEARLY_ALL:
        return [f"{name} is written in kana: is it ja? {SAY_SO}"]
    for script, language in ONE_LANGUAGE.items():
        if language != code and share((script,)) >= NEARLY_ALL:
            what = "Han characters" if script == "CJK" else f"{script.title()} letters"
            return [f"{name} is written in {what}: is it {language}? {SAY_SO}"]
    for script in ("CYRILLIC", "ARABIC", "DEVANAGARI"):
        if code in WORDS and share((script,)) >= NEARLY_ALL:
            return [f"{name} is written in {script.title()} letters, which {code} is not: which language is it?"]
    return []


def _letters(text: list[str]) -> Counter[str]:
    """Return how often each letter occurs."""
    return Counter(letter for line in text for letter in line if letter.isalpha())


def _share(letters: Counter[str], scripts: tuple[str, ...]) -> float:
    """Return the share of letters whose names in Unicode begin with one of the scripts'."""
    of_script = sum(times for letter, times in letters.items() if unicodedata.name(letter, "").startswith(scripts))
    return of_script / max(1, letters.total())
