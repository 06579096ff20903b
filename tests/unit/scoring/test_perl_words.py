"""The stemmer against the examples of Porter's paper and against the stems of ROUGE-1.5.5.pl."""

from __future__ import annotations

import pytest

from lmfusion.scoring.perl_words import PerlStemmer

# Porter 1980: the examples under each step, taken through all steps.
PUBLISHED = """
caresses caress  ponies poni  ties ti  caress caress  cats cat  feed feed  agreed agre  plastered plaster  bled bled
motoring motor  sing sing  conflated conflat  troubled troubl  sized size  hopping hop  tanned tan  falling fall
hissing hiss  fizzed fizz  failing fail  filing file  happy happi  sky sky  relational relat  conditional condit
rational ration  valenci valenc  hesitanci hesit  digitizer digit  radicalli radic  differentli differ  vileli vile
analogousli analog  vietnamization vietnam  predication predic  operator oper  feudalism feudal  decisiveness decis
hopefulness hope  callousness callous  formaliti formal  sensitiviti sensit  sensibiliti sensibl  triplicate triplic
formative form  formalize formal  electriciti electr  electrical electr  hopeful hope  goodness good  revival reviv
allowance allow  inference infer  airliner airlin  gyroscopic gyroscop  adjustable adjust  defensible defens
irritant irrit  replacement replac  adjustment adjust  dependent depend  adoption adopt  homologou homolog
communism commun  activate activ  angulariti angular  homologous homolog  effective effect  bowdlerize bowdler
probate probat  rate rate  cease ceas  controll control  roll roll  generalizations gener  oscillators oscil
""".split()

# What the script's own stemmer says where it departs from the published one, or where others differ.
SCRIPT = """
fundamental fundam  departmental depart  agreement agreem  sentimental sentim  environmental environ
experimental experi  tournament tournam  testament testam  incremental increm  dying dy  lying ly  skies ski
news new  innings in  proceed proce  possibly possibl  geology geologi  analogy analog  yes ye  yellow yellow
yed yed  ying ying  toyed toi
playing plai  boxed box  snowed snow  delivered deliv  sayyid sayyid
1980s 1980  2nd 2nd  mp3s mp3  ipv6ness ipv6  90ies 90i  is is  be be  a a
""".split()


def pairs(words: list[str]) -> list[tuple[str, str]]:
    return list(zip(words[::2], words[1::2]))


@pytest.mark.parametrize(("word", "expected"), pairs(PUBLISHED))
def test_published_examples(word: str, expected: str) -> None:
    assert PerlStemmer().stem(word) == expected


@pytest.mark.parametrize(("word", "expected"), pairs(SCRIPT))
def test_words_on_which_stemmers_differ(word: str, expected: str) -> None:
    assert PerlStemmer().stem(word) == expected
