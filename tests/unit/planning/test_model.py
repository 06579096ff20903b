"""The model of a planned training: which dictionaries and language models it gets, and what is refused."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary, indexed_dataset

import lmfusion
from lmfusion import cli
from lmfusion.errors import InputError
from lmfusion.planning.model import file_symbols, read_flags
from lmfusion.planning.text import Text, made_up, prepared

lmfusion.install()
SIZES = {"en": 50, "de": 70}
TINY = "--max-tokens 40 --max-update 5 --encoder-layers 1 --decoder-layers 1 --encoder-ffn-embed-dim 8 "
TINY += "--decoder-ffn-embed-dim 8 --encoder-embed-dim 16 --decoder-embed-dim 16"


@pytest.fixture
def pairs(tmp_path: Path) -> Text:
    """Sentence pairs, en to de, whose dictionaries have different sizes."""
    for language, types in SIZES.items():
        dictionary = Dictionary()
        for number in range(types - 4):
            dictionary.add_symbol(f"w{number}")
        dictionary.save(str(tmp_path / f"dict.{language}.txt"))
        builder = indexed_dataset.make_builder(str(tmp_path / f"train.en-de.{language}.bin"), "mmap", vocab_size=70)
        builder.add_item(torch.full((10,), 5))
        builder.finalize(str(tmp_path / f"train.en-de.{language}.idx"))
    return prepared(str(tmp_path))


def shapes(flags: str, text: Text) -> dict[str, tuple[int, ...]]:
    """The shapes of a planned model's weights by name."""
    model = read_flags(flags.split(), text, 1).build(meta=True)
    return {name: tuple(weight.shape) for name, weight in model.named_parameters()}


@pytest.mark.parametrize(
    ("directions", "source", "target"),
    [("", "en", "de"), ("-s de -t en", "de", "en"), ("-s de", "en", "de"), ("-t en", "en", "de")],
)
def test_each_side_has_the_dictionary_of_its_language(pairs: Text, directions: str, source: str, target: str) -> None:
    found = shapes(f"--arch transformer {TINY} {directions}", pairs)
    assert found["encoder.embed_tokens.weight"] == (SIZES[source], 16)
    assert found["decoder.embed_tokens.weight"] == (SIZES[target], 16)


def test_a_made_up_text_is_in_whatever_languages_the_flags_name(tmp_path: Path) -> None:
    found = shapes(f"--arch transformer {TINY} -s de --target-lang en", made_up(tmp_path, 30, None, 10, {}))
    assert found["encoder.embed_tokens.weight"] == found["decoder.embed_tokens.weight"] == (30, 16)


def test_language_models_that_are_named_have_the_symbols_of_their_sides(pairs: Text) -> None:
    """The same in a text of two shards; an architecture may be said by its short flag."""
    flags = f"-a transformer_lmfusion {TINY} --src-lm bi_transformer_lm --tgt-lm uni_transformer_lm "
    flags += "--src-fusion elmo --tgt-fusion finetune"
    again = replace(pairs, folder=f"{pairs.folder}:{pairs.folder}")
    for text in (pairs, again):
        found = shapes(flags, text)
        for part, types in (("encoder", SIZES["en"]), ("decoder", SIZES["de"])):
            tables = [name for name in found if name.startswith(part) and name.endswith("lm.embed.tokens.weight")]
            assert [found[name][0] for name in tables] == [types]


@pytest.mark.parametrize(("flags", "targets"), [("", "self"), ("--future-target --past-target", "future past")])
def test_a_language_model_predicts_what_flags_say_or_else_what_its_architecture_needs(
    tmp_path: Path, flags: str, targets: str
) -> None:
    words = f"--arch bi_transformer_lm --max-tokens 40 --max-update 5 {flags}".split()
    before = logging.root.manager.disable
    request = read_flags(words, made_up(tmp_path, 30, None, 10, {}), 3)
    assert request.task.targets == targets.split()
    assert request.cfg.distributed_training.distributed_world_size == 3
    assert request.cfg.optimizer._name == "adam"
    assert logging.root.manager.disable == before, "what is logged afterwards is heard"


def test_a_language_model_of_another_dictionary_is_refused_as_in_training(
    pairs: Text, make_cloze: Any, save_lm: Any
) -> None:
    flags = f"--arch src_elmo_tiny --src-lm {save_lm(make_cloze())} --max-tokens 40 --max-update 5"
    with pytest.raises(InputError, match=r"the source dictionary .* \(24 and 50 symbols\)"):
        shapes(flags, pairs)


def test_a_file_comes_before_an_architecture_of_its_name(
    make_cloze: Any, save_lm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lm = make_cloze()
    save_lm(lm, "bi_transformer_lm")
    assert file_symbols("--src-lm bi_transformer_lm --tgt-lm uni_transformer_lm".split()) == {}
    monkeypatch.chdir(tmp_path)
    words = "--src-lm uni_transformer_lm --tgt-lm bi_transformer_lm".split()
    assert file_symbols(words) == {"tgt": lm.symbols}
    assert file_symbols(["--arch", "transformer_lm"]) == {}


@pytest.mark.parametrize("arch", ["transformer", "wav2vec2", pytest.param("fconv_lm", marks=pytest.mark.slow)])
@pytest.mark.parametrize("side", ["src", "tgt"])
def test_an_architecture_that_is_no_language_model_is_refused_by_its_flag(
    arch: str, side: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = f"plan --types 50 -- --arch transformer_lmfusion --{side}-lm {arch} --max-tokens 40 --max-update 5"
    assert cli.main(words.split()) == 2
    error = capsys.readouterr().err
    assert f"--{side}-lm {arch}" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(("arch", "languages"), [("transformer_lm", "en de"), ("transformer", "")])
def test_text_of_the_other_kind_is_refused(
    arch: str, languages: str, pairs: Text, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(pairs.folder)
    if not languages:
        for ending in ("bin", "idx"):
            (folder / f"train.en-de.en.{ending}").rename(folder / f"train.{ending}")
            (folder / f"train.en-de.de.{ending}").unlink()
    assert cli.main(["plan", "--data", str(folder), "--", "--arch", arch, *TINY.split()]) == 2
    error = capsys.readouterr().err
    assert f"{folder} holds " in error
    assert error.count("\n") == 1
