"""fairseq-generate's output, as it prints it, back into sentences; and every way in which it can be unfit."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion.errors import InputError
from lmfusion.scoring import generate_output

LOG = """2026-01-01 | INFO | fairseq_cli.generate | {'_name': None}
S-2\t▁a ▁small er ▁dog
T-2\t▁ein ▁klein er er ▁Hund
H-2\t-0.31\t▁ein ▁klein er er ▁Hund
D-2\t-0.31\tein kleinerer Hund
P-2\t-0.1 -0.2 -0.3
H-2\t-0.9\t▁die ▁Hunde
D-2\t-0.9\tdie Hunde
S-0\t▁y es
T-0\t▁ja
H-0\t-0.02\t▁j a
D-0\t-0.02\tja
S-1\t▁no
T-1\t▁nein
H-1\t-inf\t
D-1\t-inf\t
Generate test with beam=5: BLEU4 = 1.0
"""
NAMES = "STHD"


def save(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "generate-test.txt"
    path.write_text(text, encoding="utf-8")
    return path


def sentence(number: int, source: str, target: str, hypothesis: str, detokenized: str) -> str:
    """The lines of one sentence."""
    return (
        f"S-{number}\t{source}\nT-{number}\t{target}\nH-{number}\t-0.5\t{hypothesis}\nD-{number}\t-0.5\t{detokenized}\n"
    )


def test_sentences_in_the_order_of_the_data_without_bpe(tmp_path: Path) -> None:
    output = generate_output.read(save(tmp_path, LOG))
    assert output.ids == [0, 1, 2]
    assert output.hypotheses == ["ja", "", "ein kleinerer Hund"]
    assert output.sources == ["yes", "no", "a smaller dog"]
    assert output.references == ["ja", "nein", "ein kleinerer Hund"]
    assert generate_output.trusted_references(save(tmp_path, LOG)) == output.references


def test_numbers_sort_as_numbers(tmp_path: Path) -> None:
    text = "".join(sentence(number, "s", "t", str(number), str(number)) for number in (10, 9, *range(9)))
    assert generate_output.read(save(tmp_path, text)).hypotheses == [str(number) for number in range(11)]


def test_bpe_that_fairseq_left_in_is_removed(tmp_path: Path) -> None:
    bpe = "▁ein ▁klein er er ▁Hund"
    assert generate_output.read(save(tmp_path, sentence(0, bpe, bpe, bpe, bpe))).hypotheses == ["ein kleinerer Hund"]


@pytest.mark.parametrize(
    ("bpe", "text"),
    [
        ("▁ein ▁klein er er ▁Hund .", "ein kleinerer Hund."),
        ("ein klein@@ er@@ er Hund .", "ein kleinerer Hund ."),
        ("am Ende@@", "am Ende"),
        ("a@b @@x unchanged", "a@b @@x unchanged"),
        ("", ""),
    ],
)
def test_pieces_join(bpe: str, text: str) -> None:
    assert generate_output.remove_bpe(bpe) == text


def test_moses_tokenization_is_undone_when_asked(tmp_path: Path) -> None:
    tokens = "das &quot; X-Server &quot; -Paket , bitte ."
    text = sentence(0, "s", tokens, tokens, tokens)
    output = generate_output.read(save(tmp_path, text), detokenize="de")
    assert output.hypotheses == output.references == ['das "X-Server" -Paket, bitte.']
    assert generate_output.read(save(tmp_path, text)).hypotheses == [tokens]


def test_detokenizing_twice_is_an_error(tmp_path: Path) -> None:
    path = save(tmp_path, sentence(0, "yes .", "ja .", "ja , ja .", "ja, ja."))
    with pytest.raises(InputError, match=r"detokenized already.*Leave out --detokenize"):
        generate_output.read(path, detokenize="de")


def test_hypotheses_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no hypotheses \(H- lines\).*--quiet"):
        generate_output.read(save(tmp_path, "just text\n"))


@pytest.mark.parametrize("last", ["S-3\t▁Ha us\n", "S-3\t▁Ha us\nT-3\t▁Ha us\nH-3\t-1.0\t▁Ha us\n"])
def test_interrupted_generation_is_an_error_naming_the_sentence(tmp_path: Path, last: str) -> None:
    with pytest.raises(InputError, match=r"stops before sentence 3 is complete \(no D-3 line\)"):
        generate_output.read(save(tmp_path, LOG + last))


def test_generation_interrupted_between_two_sentences_is_an_error(tmp_path: Path) -> None:
    """fairseq does not print in the order of the data."""
    log = "".join(sentence(number, "s", "t", "h", "h") for number in (3, 1))
    with pytest.raises(InputError, match=r"has no sentence 0 .*interrupted"):
        generate_output.read(save(tmp_path, log))


@pytest.mark.parametrize(
    "closing",
    [
        "Generate test with beam=5: BLEU4 = 1.0\n",
        "2026-01-01 | INFO | fairseq_cli.generate | Translated 1,002 sentences (9 tokens) in 1.0s\n",
    ],
)
def test_sentences_may_be_left_out(tmp_path: Path, closing: str) -> None:
    """By --num-shards or --skip-invalid-size-inputs-valid-test."""
    log = "".join(sentence(number, "s", "t", "h", "h") for number in (3, 1)) + closing
    assert generate_output.read(save(tmp_path, log)).ids == [1, 3]


def test_two_generations_in_one_file_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="more than one generation: S-2 is there twice"):
        generate_output.read(save(tmp_path, LOG + LOG))


def test_text_that_lost_its_spaces_is_an_error_with_the_flags_that_did_it(tmp_path: Path) -> None:
    text = "".join(sentence(n, "thesource", "thetarget", "ein kleiner Hund", "einkleinerHund") for n in range(3))
    with pytest.raises(InputError, match=r"no spaces.*both --bpe and --remove-bpe"):
        generate_output.read(save(tmp_path, text))


def test_words_in_source_and_target_tell_that_pieces_without_spaces_are_an_untrained_models(tmp_path: Path) -> None:
    """fairseq decodes all four kinds of lines; decoded twice, none would have spaces."""
    text = "".join(sentence(n, "the source", "das Ziel", "en en en", "enenen") for n in range(3))
    assert generate_output.read(save(tmp_path, text)).hypotheses == ["enenen"] * 3


@pytest.mark.parametrize("others", ["", sentence(1, "▁t", "▁b", "f f", "ff"), sentence(1, "▁t", "▁b", "▁g g", "gg")])
def test_pieces_of_an_untrained_model_are_no_words_that_lost_their_spaces(tmp_path: Path, others: str) -> None:
    path = save(tmp_path, sentence(0, "▁s", "▁a", "e e", "ee") + others)
    output = generate_output.read(path)
    assert output.hypotheses[0] == "ee"
    assert generate_output.trusted_references(path) == output.references
    assert generate_output.read(path, detokenize="de").hypotheses == output.hypotheses, "not detokenized by fairseq"


def test_all_lines_tell_whether_pieces_are_sentencepiece(tmp_path: Path) -> None:
    left_in = sentence(0, "▁s", "▁a ▁b", "e e", "e e") + sentence(1, "▁s", "▁a", "▁f f ▁g", "▁f f ▁g")
    assert generate_output.read(save(tmp_path, left_in)).hypotheses == ["ee", "ff g"]
    interactive = "S-0\t▁s t\nH-0\t-1\te e\nD-0\t-1\tee\n"
    assert generate_output.read(save(tmp_path, interactive)).hypotheses == ["ee"]
    assert generate_output.read(save(tmp_path, interactive), detokenize="de").hypotheses == ["ee"]


def test_source_and_target_may_have_different_pieces(tmp_path: Path) -> None:
    text = sentence(0, "▁so ur ce", "k@@ ü@@ ç@@ ük ev", "k@@ üç@@ ük bir ev", "küçük bir ev")
    output = generate_output.read(save(tmp_path, text))
    assert (output.sources, output.references, output.hypotheses) == (["source"], ["küçük ev"], ["küçük bir ev"])
    interactive = "".join(line for line in text.splitlines(keepends=True) if line[0] != "T")
    assert generate_output.read(save(tmp_path, interactive)).hypotheses == ["küçük bir ev"]
    assert generate_output.read(save(tmp_path, interactive), detokenize="tr").hypotheses == ["küçük bir ev"]


def test_single_words_have_no_spaces_to_lose(tmp_path: Path) -> None:
    assert generate_output.read(save(tmp_path, sentence(0, "a", "b", "Hund", "Hund"))).hypotheses == ["Hund"]


def test_targets_with_unknown_words_are_no_reference(tmp_path: Path) -> None:
    text = LOG + sentence(3, "x", "▁ein <<unk>>", "▁x", "x")
    with pytest.raises(InputError, match=r"1 of 4 targets \(the first is T-3\) hold <<unk>>.*--ref"):
        generate_output.trusted_references(save(tmp_path, text))


def test_tokenized_targets_of_detokenized_hypotheses_are_no_reference(tmp_path: Path) -> None:
    path = save(tmp_path, sentence(0, "yes .", "ja .", "ja .", "ja."))
    with pytest.raises(InputError, match=r"detokenized the hypotheses, but not the targets.*--ref"):
        generate_output.trusted_references(path)


def test_without_targets_there_is_no_reference(tmp_path: Path) -> None:
    text = "".join(line for line in LOG.splitlines(keepends=True) if not line.startswith("T-1"))
    with pytest.raises(InputError, match=r"no targets \(T- lines\) for some.*--ref"):
        generate_output.trusted_references(save(tmp_path, text))


def test_generate_output_is_told_from_text() -> None:
    assert generate_output.looks_like_generate_output(LOG.splitlines())
    assert not generate_output.looks_like_generate_output(["D-1 is a road", "H-1\tx", "T-0\tx"])
