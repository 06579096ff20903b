"""learn_bpe.py and encode_bpe.py: reproducible, one dictionary, the same symbols as fairseq's `--bpe sentencepiece`."""

from __future__ import annotations

from pathlib import Path

import pytest
from fairseq.data import Dictionary
from fairseq.data.encoders.sentencepiece_bpe import SentencepieceBPE, SentencepieceConfig

from lmfusion.text import encode_bpe, learn_bpe, textio

SIZE = 120


@pytest.fixture
def learned(corpus_folder: Path, tmp_path: Path) -> tuple[Path, Path]:
    model, dictionary = tmp_path / "spm.model", tmp_path / "dict.txt"
    mono = [corpus_folder / "mono.train.en", corpus_folder / "mono.train.de"]
    learn_bpe.learn_to_files(mono, SIZE, 1, model, dictionary)
    return model, dictionary


def test_learning_again_elsewhere_gives_the_same_bytes(learned: tuple[Path, Path], corpus_folder: Path) -> None:
    renamed = [(corpus_folder / f"mono.train.{lang}").rename(corpus_folder / f"other.{lang}") for lang in ("en", "de")]
    assert learn_bpe.learn(renamed, SIZE, seed=1) == learned[0].read_bytes()


def test_the_dictionary_is_the_bpe_plus_fairseqs_own_symbols(learned: tuple[Path, Path]) -> None:
    model, path = learned
    dictionary = Dictionary.load(str(path))
    assert len(dictionary) == SIZE + 4
    assert dictionary.symbols[:4] == ["<s>", "<pad>", "</s>", "<unk>"]
    processor = learn_bpe.load_processor(model)
    assert dictionary.symbols[4:] == [processor.id_to_piece(i) for i in range(3, SIZE + 3)]


def test_encoding_is_that_of_fairseq_and_decodes_to_the_same_text(
    learned: tuple[Path, Path], corpus_folder: Path, tmp_path: Path
) -> None:
    source, target = corpus_folder / "test.de", tmp_path / "encoded"
    source.write_text(source.read_text(encoding="utf-8") + "ﬁ … 漢 &amp;\n", encoding="utf-8")
    encode_bpe.encode_file(source, target, learned[0], workers=2)
    theirs = SentencepieceBPE(SentencepieceConfig(sentencepiece_model=str(learned[0])))
    raw, encoded = list(textio.read_lines(source)), list(textio.read_lines(target))
    assert encoded == [theirs.encode(line) for line in raw]
    assert [theirs.decode(line) for line in encoded] == raw


def test_a_language_with_little_text_counts_as_much_as_one_with_much(tmp_path: Path) -> None:
    much, little = tmp_path / "much", tmp_path / "little"
    much.write_text("one\n" * 9, encoding="utf-8")
    little.write_text("two\n\n" * 2, encoding="utf-8")
    assert list(learn_bpe.sentences([much, little])) == ["one"] * 9 + ["two"] * 4


def test_too_little_text_is_an_error_with_the_mend(tmp_path: Path) -> None:
    text = tmp_path / "tiny"
    text.write_text("a b\n", encoding="utf-8")
    with pytest.raises(textio.DataError, match=r"BPE of 5000 symbols cannot be learned"):
        learn_bpe.learn([text], 5000)
    text.write_text("\n", encoding="utf-8")
    with pytest.raises(textio.DataError, match="no text to learn a BPE from"):
        learn_bpe.learn([text], 50)


def test_a_failed_run_leaves_no_model(tmp_path: Path) -> None:
    text = tmp_path / "tiny"
    text.write_text("a b\n", encoding="utf-8")
    with pytest.raises(textio.DataError):
        learn_bpe.learn_to_files([text], 5000, 1, tmp_path / "m", tmp_path / "d")
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]


def test_what_is_no_sentencepiece_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"nonsense")
    with pytest.raises(textio.DataError, match="m: not a sentencepiece model"):
        encode_bpe.encode_file(tmp_path / "m", tmp_path / "out", tmp_path / "m")
    with pytest.raises(textio.DataError, match="absent: no such file"):
        learn_bpe.load_processor(tmp_path / "absent")


@pytest.mark.parametrize(("size", "fix"), [(3, "larger"), (50_000, "smaller")])
def test_a_size_that_the_text_does_not_allow_is_told_with_the_way_to_go(tmp_path: Path, size: int, fix: str) -> None:
    text = tmp_path / "text"
    text.write_text("the quick brown fox jumps over the lazy dog\n" * 20, encoding="utf-8")
    with pytest.raises(textio.DataError, match=f"{fix} --size"):
        learn_bpe.learn([text], size)


def test_a_text_that_repeats_itself_gets_the_symbols_that_it_has(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("the cat sat on the mat\n" * 300, encoding="utf-8")
    model, dictionary = tmp_path / "m", tmp_path / "d"
    size = learn_bpe.learn_to_files([text], 2000, 1, model, dictionary, fewer=True)
    assert 20 < size < 100
    assert len(list(textio.read_lines(dictionary))) == size
    with pytest.raises(textio.DataError, match=rf"\b{size}\b"):
        learn_bpe.learn([text], 2000)
    with pytest.raises(textio.DataError):
        learn_bpe.learn([text], size + 1)


def test_what_sentencepiece_cannot_learn_is_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = tmp_path / "text"
    text.write_text("abcdefgh ijklmnop\n" * 9, encoding="utf-8")
    with pytest.raises(textio.DataError) as error:
        learn_bpe.learn([text], 5)
    assert len(str(error.value).splitlines()) == 1
    assert ".cc" not in str(error.value) + caplog.text
    size = int(str(error.value).split("--size, ")[1].split()[0])
    assert learn_bpe.learn([text], size)


def test_a_line_as_long_as_an_article_is_learned_from(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("ab " * 5000 + "xyz " * 5000 + "\nab\n", encoding="utf-8")
    learn_bpe.learn_to_files([text], 9, 1, tmp_path / "m", tmp_path / "d")
    assert any("y" in line for line in textio.read_lines(tmp_path / "d"))
