"""Tab-separated files of SST, Quora, STS and GLUE: which columns are taken, and what is refused by file and line."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from lmfusion.errors import InputError
from lmfusion.text.label_classes import classes_of
from lmfusion.text.labelled import find_file, read_examples, read_texts

MNLI = "index\tsentence1_parse\tsentence1\tsentence2\tlabel1\tgold_label\n0\t(a)\tone two\tthree\tneutral\tentailment\n"
LAYOUTS = {
    "sst": ("\tid\tsentence\tsentiment\n0\tab\tA fine  film .\t4\n", "class", ("A fine film .",), "4"),
    "quora": ("\tid\tsentence1\tsentence2\tis_duplicate\n0\tab\ta b\tc\t1.0\n", "binary", ("a b", "c"), "1"),
    "sts": ("\tid\tsentence1\tsentence2\tsimilarity\n0\tab\ta b\tc\t3.8\n", "score", ("a b", "c"), "3.8"),
    "SST-2": ("sentence\tlabel\nhide new secretions \t0\n", "class", ("hide new secretions",), "0"),
    "CoLA": ("gj04\t1\t\tOur friends won't buy it.\n", "class", ("Our friends won't buy it.",), "1"),
    "MRPC": ('Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t7\t8\tone "a\tb\n', "binary", ('one "a', "b"), "1"),
    "QQP": ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\ta?\tb?\t0\n", "binary", ("a?", "b?"), "0"),
    "STS-B": ("index\tgenre\tsentence1\tsentence2\tscore\n0\tx\ta\tb\t5.000\n", "score", ("a", "b"), "5.000"),
    "MNLI": (MNLI, "class", ("one two", "three"), "entailment"),
    "QNLI": ("index\tquestion\tsentence\tlabel\n0\ta?\tb\tnot_entailment\n", "class", ("a?", "b"), "not_entailment"),
    "NER": ("tokens\ttags\nAda wrote\tPER O\n", "tags", ("Ada wrote",), "PER O"),
}


def written(folder: Path, text: str) -> Path:
    path = folder / "train.tsv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", LAYOUTS)
def test_columns_are_found_by_their_names(tmp_path: Path, name: str) -> None:
    text, kind, texts, label = LAYOUTS[name]
    columns, examples = read_examples(written(tmp_path, text))
    assert columns.kind == kind
    assert (examples[-1].texts, examples[-1].label) == (texts, label)
    assert examples[-1].line == text.count("\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sentence\tlabel\nfine\t1\n \t0\n", "line 3: the text in column 'sentence' is empty"),
        ("sentence\tlabel\nfine\t1\n\u200b\ufeff \u2060\t0\n", "line 3: the text in column 'sentence' is empty"),
        ("sentence1\tsentence2\tsimilarity\na\t\u200d\t1\n", "line 2: the text in column 'sentence2' is empty"),
        ("sentence\tlabel\nfine\n", "line 2: 1 columns, and the first line has 2"),
        ("sentence\tlabel\nfine\t\ngood\t \n", "line 2: the label is empty, as in all rows"),
        ("id\tlabel\n1\t1\n", "there are id, label"),
        ("sentence,label\nfine,1\n", "no tab separates columns"),
        ("sentence\tlabel\tsentence\na\t1\tb\n", "line 1: 2 columns are called 'sentence'"),
        ("sentence\tlabel\tlabel\na\t1\t0\n", "line 1: 2 columns are called 'label'"),
        ("id\tsentence\n1\tfine\n", "line 1: no column with labels"),
        ("sentence1\tsentence2\tsimilarity\na\tb\t5.01\n", "line 2: similarity '5.01' is no score from 0 to 5"),
        ("sentence1\tsentence2\tsimilarity\na\tb\tnan\n", "line 2: similarity 'nan' is no score"),
        ("sentence1\tsentence2\tis_duplicate\na\tb\tyes\n", "line 2: is_duplicate 'yes' is neither 0 nor 1"),
        ("tokens\ttags\nAda wrote it\tPER O\n", "line 2: tags 'PER O': 2 tags for 3 words"),
        ("sentence\tlabel\n", "no rows"),
        ("", "is empty"),
    ],
)
def test_bad_rows_are_named_by_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read_examples(written(tmp_path, text))
    assert message in str(error.value)
    assert "train.tsv" in str(error.value)


SAID = [
    'He said "no".',
    'a\ttab and "quotes"',
    "two\nlines",
    '"All of it."',
    "plain",
    '"',
    'ends in "quotes"',
    '""',
    "a,b",
]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("names", [("id", "sentence", "label"), ("id", "label", "sentence")])
def test_what_a_csv_writer_quoted_is_read_as_it_was(tmp_path: Path, names: tuple[str, ...], quoting: Any) -> None:
    path = tmp_path / "train.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, names, delimiter="\t", quoting=quoting, lineterminator="\n")
        writer.writeheader()
        writer.writerows({"id": number, "sentence": text, "label": number % 2} for number, text in enumerate(SAID))
    _, examples = read_examples(path)
    assert [each.texts[0] for each in examples] == [" ".join(text.split()) for text in SAID]
    assert [each.label for each in examples] == [str(number % 2) for number in range(len(SAID))]
    assert read_texts(path, 1)[1] == examples


def test_quotes_that_no_csv_writer_wrote_stay_as_in_glue(tmp_path: Path) -> None:
    said = ['"Well .', 'so " it', '" Fine " , he said', '"Closed ."', '"', 'done "']
    _, examples = read_examples(written(tmp_path, "label\tsentence\n" + "".join(f"1\t{text}\n" for text in said)))
    assert [each.texts[0] for each in examples] == said
    with pytest.raises(InputError, match="line 3: 1 columns"):
        read_examples(written(tmp_path, 'label\tsentence\n1\t"Well .\nno tab\n1\tfine\n'))


def test_rows_without_a_label_are_left_out_and_told_but_still_labelled_by_a_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = written(tmp_path, "sentence1\tsentence2\tis_duplicate\na\tb\t1.0\nc\td\t\n\te\t\ng\th\t0.0\n")
    _, examples = read_examples(path)
    assert [(each.line, each.label) for each in examples] == [(2, "1"), (5, "0")]
    assert "2 of 4 rows" in caplog.text
    path = written(tmp_path, "sentence1\tsentence2\tis_duplicate\na\tb\t1.0\nc\td\t\n")
    assert [each.label for each in read_texts(path, 2)[1]] == ["1", None]


def test_files_of_a_folder_and_behind_a_prefix(tmp_path: Path) -> None:
    for name in ("dev.tsv", "ids-sst-train.csv", "ids-sst-dev.csv"):
        (tmp_path / name).write_text("sentence\tlabel\n", encoding="utf-8")
    assert find_file(str(tmp_path), "valid") == tmp_path / "dev.tsv"
    assert find_file(str(tmp_path / "ids-sst"), "train") == tmp_path / "ids-sst-train.csv"
    with pytest.raises(InputError, match="no data for train"):
        find_file(str(tmp_path), "train")


def test_classes_are_ordered_as_numbers_or_words(tmp_path: Path) -> None:
    rows = "sentence\tlabel\n" + "".join(f"x\t{label}\n" for label in (10, 2, 0, 2))
    assert classes_of(read_examples(written(tmp_path, rows))[1], "class") == ["0", "2", "10"]
    assert classes_of(read_examples(written(tmp_path, "tokens\ttags\na b\tV N\n"))[1], "tags") == ["N", "V"]


def test_labels_that_look_the_same_stay_two_classes_and_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = "sentence\tlabel\na\tsch\u00f6n\nb\tscho\u0308n\nc\tgut\n"
    assert classes_of(read_examples(written(tmp_path, rows))[1], "class") == ["gut", "scho\u0308n", "sch\u00f6n"]
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert all(label in warning for label in ("sch\\xf6n", "scho\\u0308n"))


def test_plain_lines_and_named_columns_to_be_labelled(tmp_path: Path) -> None:
    columns, examples = read_texts(written(tmp_path, "one  two\tthree\nfour\tfive\n"), 2)
    assert columns is None
    assert [each.texts for each in examples] == [("one two", "three"), ("four", "five")]
    assert read_texts(written(tmp_path, "id\tsentence\n7\tfine\n"), 1)[1][0].texts == ("fine",)
    with pytest.raises(InputError, match=r"line 2\b.*empty"):
        read_texts(written(tmp_path, "one\n\n"), 1)
    with pytest.raises(InputError, match="empty"):
        read_texts(written(tmp_path, ""), 1)
    for text, texts in (("one\n\u200b\n", 1), ("one\ttwo\nthree\t\u2060 \ufeff\n", 2)):
        with pytest.raises(InputError, match="line 2"):
            read_texts(written(tmp_path, text), texts)
    (example,) = read_texts(written(tmp_path, "\u0645\u06cc\u200c\u0631\n"), 1)[1]
    assert example.texts == ("\u0645\u06cc\u200c\u0631",), "a joiner inside a word stays"
    for text, heads, there in (("one\ttwo\tthree\n", 2, 3), ("one\ttwo\n", 1, 2), ("one\n", 2, 1)):
        with pytest.raises(InputError, match=rf"line 1\b.* {heads} .* {there}\b"):
            read_texts(written(tmp_path, text), heads)
