"""A text that is not in the language it is said to be in is noticed by its script or its commonest words."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion.text import looks, suspicions, textio

CORPUS = Path(__file__).resolve().parents[3] / "data-prep/debian/en-de"
ENGLISH = list(textio.read_lines(CORPUS / "test.en.xz"))[:100]
TEXTS = {
    "ja": "この小さなプログラムはフォルダーの中のすべてのファイルを読みます。",
    "zh": "这个小程序读取文件夹中的所有文件并写出它找到的内容。",
    "ko": "이 작은 프로그램은 폴더의 모든 파일을 읽고 찾은 것을 씁니다.",
    "th": "โปรแกรมขนาดเล็กนี้อ่านทุกไฟล์ในโฟลเดอร์",
    "he": "התוכנית הקטנה הזאת קוראת כל קובץ בתיקייה",
    "el": "Αυτό το μικρό πρόγραμμα διαβάζει κάθε αρχείο ενός φακέλου.",
    "uk": "Ця невелика програма читає кожен файл у теці й пише те, що знаходить.",
    "sr": "Ovaj mali program čita svaku datoteku u fascikli i piše šta pronađe.",
    "ar": "يقرأ هذا البرنامج الصغير كل ملف في المجلد",
    "da": "Det er et lille program, og det er ikke til at tage fejl af det som en fil på en disk.",
    "sv": "Det är ett litet program som läser alla filer och skriver det som inte är där till en annan fil.",
}


def doubts(language: str, line: str) -> str:
    return "\n".join(looks.doubts(language, [line] * 30, f"the {language} side"))


@pytest.mark.parametrize("language", TEXTS)
def test_a_text_in_its_language_raises_no_doubt(language: str) -> None:
    assert doubts(language, TEXTS[language]) == ""


@pytest.mark.parametrize(("language", "encoding"), [("ja", "shift_jis"), ("uk", "windows-1251"), ("el", "iso-8859-7")])
def test_text_that_was_read_in_a_wrong_encoding_has_hardly_a_letter_of_its_script(language: str, encoding: str) -> None:
    garbled = TEXTS[language].encode(encoding).decode("latin-1")
    assert f"the {language} side has hardly a" in doubts(language, garbled)
    mixed = f"{TEXTS[language]} {ENGLISH[0][:30]}"
    assert doubts(language, mixed) == "", "names and commands in Latin letters are no reason to doubt"


@pytest.mark.parametrize(
    ("said", "language"),
    [
        *(
            ("ch", "zh"),
            ("kr", "ko"),
            ("jp", "ja"),
            ("se", "sv"),
            ("dk", "da"),
            ("ua", "uk"),
            ("gr", "el"),
            ("xx", "ja"),
        ),
        *(("en", "zh"), ("vi", "th"), ("sq", "el"), ("am", "he")),
    ],
)
def test_the_code_that_is_meant_is_asked_for(said: str, language: str) -> None:
    assert f"is it {language}?" in doubts(said, TEXTS[language])


@pytest.mark.parametrize(
    ("language", "text"),
    [("yi", "he"), ("yue", "zh"), ("cmn", "zh"), ("ps", "ar"), ("mn", "uk"), ("kr", "da"), ("ch", "sr")],
)
def test_codes_that_may_have_such_a_script_are_believed(language: str, text: str) -> None:
    assert doubts(language, TEXTS[text]) == ""


def test_latin_letters_are_believed_where_a_language_has_both() -> None:
    assert doubts("sr_Latn", TEXTS["sr"]) == doubts("ru_Latn", TEXTS["sr"]) == ""
    assert "Cyrillic" in doubts("ru", TEXTS["sr"])
    assert "Cyrillic" in doubts("de", TEXTS["uk"])


def test_too_few_letters_say_nothing() -> None:
    assert looks.doubts("ja", ["12 345", "abc"] * 10, "the ja side") == []


def test_pairs_that_are_swapped_are_told_once_and_others_by_side() -> None:
    pairs = [(TEXTS["ja"], line) for line in ENGLISH]
    assert suspicions.pairs(pairs, ("ja", "en"), one_language=False) == []
    assert ["swapped" in note for note in suspicions.pairs(pairs, ("en", "ja"), one_language=False)] == [True]
    assert ["is it ja?" in note for note in suspicions.pairs(pairs, ("xx", "en"), one_language=False)] == [True]
    one_sided = suspicions.pairs(pairs, ("ko", "en"), one_language=False)
    assert ["Korean" in note for note in one_sided] == [True]
