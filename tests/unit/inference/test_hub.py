"""What lmfusion.load_model gives: sources longer than the model takes are cut as in training, or refused."""

from __future__ import annotations

import dataclasses
import os
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig
from fairseq.hub_utils import GeneratorHubInterface
from omegaconf import OmegaConf

import lmfusion
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.errors import InputError
from lmfusion.fusion.denoiser import CODES
from lmfusion.inference.hub import Translator
from lmfusion.inference.search_settings import check_overrides
from lmfusion.text.named_files import data_folders

EOS = 2
SHIPPED = Path(__file__).resolve().parents[3] / "pretrained" / "en-de.lmf"


@pytest.fixture
def translator(monkeypatch: pytest.MonkeyPatch) -> Translator:
    """Takes 5 tokens; a sentence's tokens are the lengths of its words."""
    monkeypatch.setattr(
        GeneratorHubInterface, "encode", lambda _, text: torch.tensor([*(len(word) for word in text.split()), EOS])
    )
    made = Translator.__new__(Translator)
    torch.nn.Module.__init__(made)
    made.max_positions = (5, 1024)
    made.task = SimpleNamespace(cfg=SimpleNamespace(truncate_source=False))
    made.src_dict = made.tgt_dict = SimpleNamespace(unk=lambda: 0, unk_word="<unk>")
    return made


@pytest.fixture(scope="module")
def shipped() -> Translator:
    """The English-German model; it reads 256 tokens."""
    return lmfusion.load_model(SHIPPED).float()


def test_a_sentence_that_fits_is_left_alone(translator: Translator) -> None:
    assert translator.encode("aaa bbbb ccccc aaa").tolist() == [3, 4, 5, 3, EOS]


def test_white_space_of_every_kind_is_a_space(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in text that lmfusion data prepares, and in what lmfusion translate reads."""
    read: list[str] = []
    monkeypatch.setattr(GeneratorHubInterface, "encode", lambda _, text: read.append(text) or torch.tensor([EOS]))
    translator.encode(" a\u00a0b\tc\u3000d\n")
    assert read == ["a b c d"]


def test_a_longer_one_is_cut_as_in_training(translator: Translator) -> None:
    """fairseq's --truncate-source keeps the first words and the final </s>."""
    translator.task.cfg.truncate_source = True
    assert translator.encode("aaa bbbb ccccc aaa bbbb ccccc").tolist() == [3, 4, 5, 3, EOS]


def test_otherwise_it_is_refused_with_both_lengths(translator: Translator) -> None:
    with pytest.raises(InputError, match=r"7 tokens is longer than the 5 the model takes: cut or split it \(aaa bbbb"):
        translator.encode("aaa bbbb ccccc aaa bbbb ccccc")


def test_dictionaries_are_those_of_the_folders_and_languages_that_are_given(tmp_path: Path) -> None:
    """A converted model may not know its languages; fairseq takes the dictionaries of the first of several folders."""
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    for language in ("en", "de"):
        (folders[0] / f"dict.{language}.txt").touch()
    task = {"data": "gone", "source_lang": None, "target_lang": None}
    overrides = {"data": os.pathsep.join(map(str, folders)), "source_lang": "en", "target_lang": "de"}
    assert data_folders(task, overrides) == overrides["data"]
    with pytest.raises(InputError, match=r"first/dict\.tr\.txt does not exist"):
        data_folders(task, {**overrides, "target_lang": "tr"})


@pytest.mark.parametrize(("bad", "near"), [("dropuot", "dropout"), ("sentencepiece", "sentencepiece_model")])
def test_a_value_that_the_configuration_does_not_have_is_refused_with_the_nearest(bad: str, near: str) -> None:
    with pytest.raises(InputError, match=f"{bad!r}; did you mean {near}"):
        lmfusion.load_model(SHIPPED, **{bad: 0.1})


def test_a_value_of_a_section_that_an_export_leaves_out_is_known() -> None:
    """An old configuration is a Namespace, one of the same names a dictionary; both have what fairseq has."""
    check_overrides({"lenpen": 1, "sentencepiece_model": "spm.model", "src_lm": "lm.pt"}, {"model": {"src_lm": None}})
    check_overrides({"lenpen": 1, "dropout": 0.2}, {"model": Namespace(dropout=0.1)})
    with pytest.raises(InputError, match="'src_lm'"):
        check_overrides({"src_lm": "lm.pt"}, {"model": Namespace(dropout=0.1)})


def test_no_sentence_has_no_translation(translator: Translator) -> None:
    assert translator.translate([]) == []


def test_a_beam_of_none_is_refused(translator: Translator) -> None:
    with pytest.raises(InputError, match="--beam 0"):
        translator.translate(["aaa"], beam=0)
    with pytest.raises(InputError, match="--beam '5'"):  # as text it is shown to be text
        translator.generate([translator.encode("aaa")], beam="5")


@pytest.mark.parametrize("bad", [[b"aaa"], ["aaa", None], 3, [1.5], ["aaa", "\udcff"], "\ud800"])
def test_what_is_no_text_is_refused(translator: Translator, bad: Any) -> None:
    with pytest.raises(InputError, match="text"):
        translator.translate(bad)


def test_a_setting_that_the_search_does_not_have_is_refused_with_the_nearest(translator: Translator) -> None:
    with pytest.raises(InputError, match=r"lenpne.*lenpen"):
        translator.translate(["aaa"], lenpne=0.5)


def test_several_hypotheses_are_not_asked_of_translate_which_gives_the_best(translator: Translator) -> None:
    with pytest.raises(InputError, match="nbest 3"):
        translator.translate(["aaa"], beam=3, nbest=3)


@pytest.mark.parametrize("sources", ["a b", ["a b", "c"]])
def test_scoring_given_translations_is_refused_with_what_does_it(translator: Translator, sources: Any) -> None:
    """fairseq's own score would end in a traceback: it knows language models only."""
    with pytest.raises(InputError, match=r"--score-reference.*--scores"):
        translator.score(sources)


def test_settings_of_the_search_hold_where_a_packed_model_has_none() -> None:
    """It holds no section of the search, so fairseq, which replaces values by name, finds nothing to replace."""
    model = lmfusion.load_model(SHIPPED, beam=2, lenpen=0.3, max_len_b=7)
    assert (model.cfg.generation.beam, model.cfg.generation.lenpen, model.cfg.generation.max_len_b) == (2, 0.3, 7)
    assert not model.training
    with pytest.raises(InputError, match="lenpen 'long'"):
        lmfusion.load_model(SHIPPED, lenpen="long")


def test_what_a_checkpoint_says_of_the_search_holds_but_for_a_file_of_its_own_machine(tmp_path: Path) -> None:
    state = read_checkpoint(SHIPPED)
    said = {"beam": 7, "lenpen": 0.4, "replace_unk": "/gone/alignment"}
    state["cfg"]["generation"] = {**dataclasses.asdict(GenerationConfig()), **said}
    torch.save(state, tmp_path / "m.pt")
    found = lmfusion.load_model(tmp_path / "m.pt", lenpen=0.6).cfg.generation
    assert (found.beam, found.lenpen, found.replace_unk) == (7, 0.6, None)


def test_dictionaries_and_a_tokenizer_that_are_given_go_before_the_models_own(tmp_path: Path) -> None:
    source, target = (bytes(content.tolist()) for content in read_checkpoint(SHIPPED)["text"]["dictionaries"])
    first, second, *rest = target.splitlines(keepends=True)
    (tmp_path / "dict.en.txt").write_bytes(source)
    (tmp_path / "dict.de.txt").write_bytes(b"".join([second, first, *rest]))
    model = lmfusion.load_model(SHIPPED, data=str(tmp_path), moses_no_escape=False)
    assert [symbol.encode("utf-8") for symbol in model.tgt_dict.symbols[4:6]] == [second.split()[0], first.split()[0]]
    assert model.tokenize("a & b") == "a &amp; b"


def test_one_row_of_tokens_is_a_sentence_and_may_be_told_of(shipped: Translator) -> None:
    tokens = shipped.encode("A small server.")
    alone = shipped.generate(tokens, beam=2)
    among = shipped.generate([shipped.encode("Two files."), tokens], beam=2, verbose=False)
    assert [each["tokens"].tolist() for each in alone] == [each["tokens"].tolist() for each in among[1]]


def test_tokens_that_are_too_many_are_refused_or_left_out_as_asked(shipped: Translator) -> None:
    good, limit = shipped.encode("A small server."), shipped.max_positions[0]
    sentences = [good, torch.cat([torch.full((limit,), 9), good[-1:]])]
    with pytest.raises(InputError, match=rf"sentence 1 has {limit + 1} tokens, more than the {limit} "):
        shipped.generate(sentences, beam=1)
    assert len(shipped.generate(sentences, beam=1, skip_invalid_size_inputs=True)) == 1


def test_batches_of_the_training_smaller_than_a_sentence_do_not_matter(
    shipped: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["A small server.", "The program reads a file and writes it to the printer."]
    expected = shipped.translate(lines, beam=1)
    monkeypatch.setitem(shipped.cfg, "dataset", OmegaConf.create({**shipped.cfg.dataset, "max_tokens": 8}))
    assert shipped.translate(lines, beam=1) == expected


def test_a_sentence_that_is_left_out_does_not_make_batches_larger(
    shipped: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = shipped.encode("A small server.")
    limits = {**shipped.cfg.dataset, "batch_size": None, "max_tokens": 2 * len(tokens)}
    monkeypatch.setitem(shipped.cfg, "dataset", OmegaConf.create(limits))
    sizes: list[int] = []
    monkeypatch.setattr(shipped, "after_batch", sizes.append)
    overlong = torch.cat([torch.full((shipped.max_positions[0],), 9), tokens[-1:]])
    shipped.generate([tokens] * 6 + [overlong], beam=1, skip_invalid_size_inputs=True)
    assert sizes == [2, 2, 2]


def test_another_language_than_the_models_is_refused_with_its_own() -> None:
    with pytest.raises(InputError, match=r"source_lang='fr'.*en to de"):
        lmfusion.load_model(SHIPPED, source_lang="fr")


def test_a_line_without_a_word_stays_empty(translator: Translator) -> None:
    assert translator.translate(["", " ", "\t"]) == ["", "", ""]
    assert translator.translate("") == ""


def test_symbols_that_the_model_does_not_know_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    model = lmfusion.load_model(SHIPPED)
    caplog.clear()
    model.translate(["A small server.", "", "A 漢 server.", "漢"], max_len_b=5)
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [text for text in said if "漢" in text] == ["line 3: 1 of 5 symbols is unknown to the model (漢)"]
    assert "<unk> in the source of 2 lines" in said


def test_weights_that_are_no_numbers_are_named() -> None:
    """fairseq's search finds no end then, and says so in figures."""
    model = lmfusion.load_model(SHIPPED)
    with torch.no_grad():
        model.models[0].decoder.layers[1].fc1.weight[3, 4] = float("nan")
    with pytest.raises(InputError, match=r"decoder\.layers\.1\.fc1\.weight"):
        model.translate(["A small server."])


def test_of_a_folder_of_runs_those_that_translate_are_advised(tmp_path: Path) -> None:
    runs: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "baseline": ({"_name": "lmfusion_tiny", "encoder_layers": 2}, {}),
        "prefix": ({"_name": "prefix_lm", "prefix_lm": "lm.pt"}, {}),
        "lm-of-en": ({"_name": "bi_transformer_lm", "decoder_layers": 2}, {}),
        "labels": ({"_name": "lmfusion_heads", "heads_config": "[]"}, {}),
        "denoising": ({"_name": "lmfusion_tiny", "encoder_layers": 2}, {CODES: torch.zeros(3)}),
    }
    for name, (model, weights) in runs.items():
        (tmp_path / name / "checkpoints").mkdir(parents=True)
        torch.save({"cfg": {"model": model}, "model": weights}, tmp_path / name / "checkpoints" / "checkpoint_best.pt")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "checkpoint_last.pt").write_bytes(b"no checkpoint")
    with pytest.raises(InputError) as refused:
        lmfusion.load_model(tmp_path)
    named = {name for name in (*runs, "damaged") if str(tmp_path / name) in str(refused.value)}
    assert named == {"baseline", "prefix"}
