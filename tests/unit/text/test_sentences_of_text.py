"""Articles are cut into sentences in any script, and nothing of them is lost."""

from __future__ import annotations

import pytest

from lmfusion.text.mono import sentences


@pytest.mark.parametrize(
    "parts",
    [
        ['He said "Hi."', "Then he left at 3.14, e.g. here."],
        ["Он ушёл.", "Ещё раз!", "Šta?", "Čaj."],
        ["ሰላም ነው።", "ደህና ነህ፧", "አዎ።"],
        ["वह आया।", "वह गया॥", "फिर आया.", "ठीक है"],
        ["هل جئت؟", "نعم.", "كان هنا۔", "ثم ذهب"],
        ["ကောင်းတယ်။", "ဟုတ်တယ်။"],
        ["Բարև։", "Ինչպես ես։"],
    ],
)
def test_sentences_end_at_the_marks_of_their_script(parts: list[str]) -> None:
    assert sentences(" ".join(parts)) == parts


def test_no_space_is_needed_where_the_script_has_none() -> None:
    assert sentences("他说：“好。”然后走了。真的？！") == ["他说：“好。”", "然后走了。", "真的？！"]
    assert sentences("ሰላም፡ነው።ደህና።") == ["ሰላም፡ነው።", "ደህና።"]


def test_a_small_letter_after_a_full_stop_goes_on() -> None:
    assert len(sentences("the file of approx. two pages, vgl. unten.")) == 1
