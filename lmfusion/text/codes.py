"""Codes of languages: those of ISO 639-1, what people write in their place, and the encodings of text before UTF-8."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

ISO_639_1 = frozenset(
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee "
    "el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is "
    "it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms "
    "mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si "
    "sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh "
    "yi yo za zh zu".split()
)
SLIPS = dict(pair.split(":") for pair in "by:be ch:zh cn:zh cz:cs dk:da gr:el jp:ja kr:ko se:sv ua:uk".split())
"""Codes of countries, and of other languages (ch, kr, se), that are written for a language's."""
_WESTERN = ("ISO-8859-1", "WINDOWS-1252")
_ENCODINGS = {
    "ja": ("SHIFT_JIS", "EUC-JP"),
    "zh": ("GB18030", "BIG5"),
    "ko": ("EUC-KR",),
    **dict.fromkeys("be bg mk ru sr uk".split(), ("WINDOWS-1251", "KOI8-R")),
    "el": ("ISO-8859-7", "WINDOWS-1253"),
    "he": ("WINDOWS-1255", "ISO-8859-8"),
    **dict.fromkeys("ar fa ur".split(), ("WINDOWS-1256",)),
    "th": ("TIS-620",),
    **dict.fromkeys("bs cs hr hu pl ro sk sl".split(), ("ISO-8859-2", "WINDOWS-1250")),
    "tr": ("ISO-8859-9", "WINDOWS-1254"),
    **dict.fromkeys("et lt lv".split(), ("WINDOWS-1257", "ISO-8859-13")),
    "vi": ("WINDOWS-1258",),
    **dict.fromkeys("af br ca da de en es eu fi fo fr ga gd gl is it lb nb nl nn no oc pt sv".split(), _WESTERN),
}
"""Languages -> what their text was usually in before UTF-8, the commonest first."""


def base(language: str) -> str:
    """Return a code without country and script: ``pt`` of ``pt_BR``, ``zh`` of ``zh-Hant``."""
    return re.split("[-_@]", language.casefold())[0]


def conversion(path: Path, languages: Iterable[str] = ()) -> str:
    """Return how to make UTF-8 of a file: with the usual encodings of its language, where that is known.

    Args:
        path: the file; its ending may say the language (``plain.ja``, ``pairs.en-ja.tsv``).
        languages: codes of those that its text is in; none where only the ending says it.
    """
    code = _language(path, languages)
    usual = _ENCODINGS[code] if code else ()
    hint = f", which is often {' or '.join(usual)} in {code}" if usual else ""
    command = f"iconv -f {usual[0] if usual else 'ENCODING'} -t UTF-8 {path.name} > FILE"
    return f"convert the file from its own encoding{hint}: `{command}`"


def _language(path: Path, languages: Iterable[str]) -> str | None:
    """Return the language that decides a file's encoding: of two, the one that no Western encoding can write."""
    endings = [re.split("[-_@]", ending.casefold()) for ending in reversed(path.name.split(".")[1:])]
    for names in ([base(language) for language in languages], *endings):
        codes = [code for code in (SLIPS.get(name, name) for name in names) if code in _ENCODINGS]
        if codes:
            return next((code for code in codes if _ENCODINGS[code] != _WESTERN), codes[0])
    return None
