"""The Porter stemmer as ROUGE-1.5.5 has it.

Porter's algorithm (Porter 1980, "An algorithm for suffix stripping", Program 14(3)) with the departures of his own
Perl release (-bli and -logi in step 2; words of one or two letters stay) and one more of ROUGE's author in step 4:
-ment and -ent are tried after the other suffixes and one after the other, where the published step takes at most one
suffix away: fundamental -> fundam, where others say fundament. NLTK's stemmer has its own extensions instead.

Letters and digits count as consonants unless they are a, e, i, o, u, or a y behind a consonant.
"""

from __future__ import annotations

VOWELS = "aeiou"

STEP_2 = {
    "ational": "ate",
    "tional": "tion",
    "enci": "ence",
    "anci": "ance",
    "izer": "ize",
    "bli": "ble",
    "alli": "al",
    "entli": "ent",
    "eli": "e",
    "ousli": "ous",
    "ization": "ize",
    "ation": "ate",
    "ator": "ate",
    "alism": "al",
    "iveness": "ive",
    "fulness": "ful",
    "ousness": "ous",
    "aliti": "al",
    "iviti": "ive",
    "biliti": "ble",
    "logi": "log",
}
STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
STEP_4 = tuple("al ance ence er ic able ible ant ement ou ism ate iti ous ive ize".split())
LONGEST = 7
"""Letters of the longest suffix in steps 2 and 3."""


def stem(word: str) -> str:
    """The stem of a word of ASCII lower-case letters and digits."""
    if len(word) < 3:
        return word
    for step in (_plural, _past, _final_y, _step_2, _step_3, _step_4, _tidy):
        word = step(word)
    return word


def measure(stem: str) -> int:
    """Porter's m: how often consonants follow vowels in the stem."""
    return _shape(stem).count("vc")


def _shape(text: str) -> str:
    """One letter per letter: v for a vowel, c for a consonant."""
    shape = ""
    for letter in text:
        vowel = letter in VOWELS or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _is_short(text: str) -> bool:
    """Consonants, one vowel and one consonant that is none of w, x and y: such a word keeps or regains its e."""
    shape = _shape(text)
    return shape.endswith("cvc") and shape.count("v") == 1 and text[-1] not in "wxy"


def _plural(word: str) -> str:
    """Step 1a."""
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    """Step 1b."""
    if word.endswith("eed"):
        return word[:-1] if measure(word[:-3]) > 0 else word
    suffix = next((suffix for suffix in ("ed", "ing") if word.endswith(suffix)), None)
    if suffix is None or "v" not in _shape(word.removesuffix(suffix)):
        return word
    word = word.removesuffix(suffix)
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if len(word) > 1 and word[-1] == word[-2] and word[-1] not in "aeiouylsz":
        return word[:-1]
    return word + "e" if _is_short(word) else word


def _final_y(word: str) -> str:
    """Step 1c."""
    return word[:-1] + "i" if word.endswith("y") and "v" in _shape(word[:-1]) else word


def _step_2(word: str) -> str:
    return _replace(word, STEP_2)


def _step_3(word: str) -> str:
    return _replace(word, STEP_3)


def _replace(word: str, suffixes: dict[str, str]) -> str:
    """Replaces the longest of the suffixes, if the rest has m > 0."""
    for length in range(min(LONGEST, len(word)), 2, -1):
        replacement = suffixes.get(word[-length:])
        if replacement is not None:
            rest = word[:-length]
            return rest + replacement if measure(rest) > 0 else word
    return word


def _step_4(word: str) -> str:
    for suffix in STEP_4:
        if word.endswith(suffix):
            word = _drop(word, len(suffix))
            break
    if word.endswith("ment"):
        word = _drop(word, 4)
    if word.endswith("ent"):
        return _drop(word, 3)
    return _drop(word, 3) if word.endswith(("sion", "tion")) else word


def _drop(word: str, length: int) -> str:
    rest = word[:-length]
    return rest if measure(rest) > 1 else word


def _tidy(word: str) -> str:
    """Steps 5a and 5b."""
    if word.endswith("e"):
        rest = word[:-1]
        if measure(rest) > 1 or (measure(rest) == 1 and not _is_short(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and measure(word) > 1 else word
