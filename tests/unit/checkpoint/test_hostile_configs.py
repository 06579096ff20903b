"""A configuration with values of other types than their fields, or of no model there can be, is refused before use."""

from __future__ import annotations

import json
import resource
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils

from lmfusion import cli
from lmfusion.checkpoint.budget import SPARE
from lmfusion.checkpoint.config_types import check_fields, check_types
from lmfusion.checkpoint.contents import check_contents
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.errors import InputError
from lmfusion.lm.description import check_described
from lmfusion.lm.loading import build as build_lm
from lmfusion.lm.loading import describe

HUGE = 10_000_000
HERE = Path("some.pt")
STEP = {"num_updates": 7, "criterion_name": "x", "optimizer_name": "y", "lr_scheduler_state": {}}
TRAINED = {"optimizer_history": [STEP], "extra_state": {"train_iterator": {"epoch": 1}}}


def peak() -> int:
    """Bytes of memory that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


WHOLE = {
    "transformer": {"encoder_layers": 6, "dropout": 0, "adaptive_softmax_cutoff": "50,100", "no_scale_embedding": 0},
    "src_elmo_tiny": {"decoder_layers": 1, "src_fusion": "elmo", "adaptive_softmax_cutoff": [50], "src_lm": None},
    "transformer_lm": {"tokens_per_sample": "${task.tokens_per_sample}", "decoder_embed_dim": "12", "dropout": 0.1},
    "fconv": {"encoder_layers": "[(512, 3)] * 20", "dropout": 0.1, "share_input_output_embed": 1},
    "lstm": {"encoder_layers": 1, "encoder_bidirectional": True},
    "a model of somebody's own": {"encoder_layers": "x"},
}
WRONG = [
    ("transformer", "adaptive_softmax_cutoff", "__import__('os').system('true') or [50]"),
    ("transformer", "encoder_layers", "print(1)"),
    ("transformer", "encoder_layers", [1]),
    ("transformer", "encoder_layers", float("nan")),
    ("transformer", "encoder_layers", "6"),
    ("transformer", "dropout", {"a": 1}),
    ("transformer_lm", "decoder_layers", None),
    ("transformer_lm", "decoder_layers", "2*3"),
    ("transformer_lm", "dropout", "a tenth"),
    ("src_elmo_tiny", "src_fusion", ["elmo"]),
    ("src_elmo_tiny", "encoder_learned_pos", "exit()"),
    ("src_elmo_tiny", "src_lm_config", {"lm": {}}),
    ("transformer_lm", "decoder_layers", "${oc.env:HOME}"),
    ("fconv", "encoder_embed_dim", "exit()"),
    ("fconv", "dropout", torch.zeros(1)),
    ("lstm", "encoder_hidden_size", []),
]


def as_stored(values: dict[str, Any]) -> list[dict[str, Any]]:
    """A checkpoint in every form in which fairseq writes the configuration."""
    return [{"cfg": {"model": values}}, {"cfg": {"model": Namespace(**values)}}, {"args": Namespace(**values)}]


@pytest.mark.parametrize("name", WHOLE)
def test_values_of_their_fields_types_are_taken(name: str) -> None:
    for state in as_stored({"_name": name, "arch": name, **WHOLE[name], "unknown": object}):
        check_types(HERE, state)


@pytest.mark.parametrize(("name", "field", "value"), WRONG, ids=str)
def test_a_value_of_another_type_is_refused_by_name(name: str, field: str, value: Any) -> None:
    for state in as_stored({"_name": name, "arch": name, field: value}):
        with pytest.raises(InputError, match=rf"some\.pt .*{field} of its configuration"):
            check_types(HERE, state)


def test_values_of_a_task_and_a_criterion_are_checked_too() -> None:
    for section, name, field in (
        ("task", "translation", "max_source_positions"),
        ("task", "multilingual_translation", "max_source_positions"),
        ("criterion", "label_smoothed_cross_entropy", "label_smoothing"),
        ("generation", None, "beam"),
    ):
        check_types(HERE, {"cfg": {section: {"_name": name, field: 1}}})
        with pytest.raises(InputError, match=field):
            check_types(HERE, {"cfg": {section: {"_name": name, field: "exit()"}}})


@pytest.mark.parametrize("name", ["transformer", "transformer_lm"])
def test_the_type_that_belongs_there_is_named(name: str) -> None:
    with pytest.raises(InputError, match=r"decoder_layers of its configuration is 'x' \(str\), not int\."):
        check_types(HERE, {"cfg": {"model": {"_name": name, "decoder_layers": "x"}}})


@pytest.mark.parametrize("name", ["src_lm_config", "tgt_lm_config", "prefix_lm_config"])
def test_a_number_of_more_digits_than_python_reads_is_named(name: str) -> None:
    stored = '{"lm": {"family": "causal", "decoder_layers": ' + "9" * 5000 + "}}"
    with pytest.raises(InputError, match=name):
        check_described(HERE, {"cfg": {"model": {"_name": "x", name: stored}}, "model": {}})


@pytest.mark.parametrize("field", ["encoder_layers", "encoder_layers_to_keep"])
def test_a_number_of_more_digits_than_python_writes_is_named(field: str) -> None:
    for value in (10**5000, [10**5000, "x"]):
        with pytest.raises(InputError, match=field):
            check_fields(HERE, {field: value}, {field: list[int]})


@pytest.mark.parametrize("name", [["transformer"], {"a": 1}, 5], ids=str)
@pytest.mark.parametrize("section", ["model", "task"])
def test_a_name_that_is_none(section: str, name: Any) -> None:
    with pytest.raises(InputError, match="_name of its configuration"):
        check_types(HERE, {"cfg": {section: {"_name": name}}})


def test_weights_alone_are_said_to_be_that(tmp_path: Path) -> None:
    """As ``lmfusion hf save`` writes them."""
    torch.save({"model": {}, "cfg": {"model": {"_name": "huggingface"}}}, tmp_path / "lm.pt")
    with pytest.raises(InputError, match=r"lm\.pt holds weights, and nothing of a training"):
        checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "lm.pt"))


@pytest.mark.parametrize(("name", "section"), [("task", "x"), ("task", [1]), ("generation", {"beam": 5})], ids=str)
def test_a_section_that_fairseq_cannot_read(tmp_path: Path, name: str, section: Any) -> None:
    cfg = {"model": {"_name": "transformer_lm"}, name: section}
    torch.save({**TRAINED, "model": {}, "cfg": cfg}, tmp_path / "odd.pt")
    with pytest.raises(InputError, match=r"odd\.pt is damaged") as caught:
        checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "odd.pt"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [[1, 2], 5, None, torch.ones(2), {"a": 1}, {"model": [torch.ones(2)]}], ids=str)
def test_what_holds_no_weights_by_name_is_no_checkpoint(tmp_path: Path, content: Any) -> None:
    torch.save(content, tmp_path / "other.pt")
    with pytest.raises(InputError, match=r"other\.pt is not a fairseq checkpoint: it has no model weights"):
        read_checkpoint(tmp_path / "other.pt")


@pytest.mark.parametrize("number", ["many", 1.5, [7], torch.ones(2)], ids=str)
def test_a_number_of_updates_that_is_none(number: Any) -> None:
    with pytest.raises(InputError, match=r"some\.pt .* its num_updates is a"):
        check_contents(HERE, {"model": {}, "optimizer_history": [{**STEP, "num_updates": number}]})


DESCRIBED = [
    *(("decoder_layers", value) for value in (HUGE, "x", "2", 1.5, [1], None)),
    *(("decoder_embed_dim", value) for value in (HUGE, "exit()", {}, 0)),
    *(("decoder_attention_heads", "2"), ("decoder_ffn_embed_dim", -3), ("max_target_positions", 10**12)),
    *(("dropout", "x"), ("targets", 5), ("targets", "self"), ("symbols", "abc"), ("symbols", 5)),
    *(("share_decoder_input_output_embed", []), ("single_tower", "no"), ("family", ["cloze"]), ("reading", 5)),
]


def holding(lm: Any, path: Path, side: str, **changes: Any) -> Path:
    """A checkpoint of a translation model, as far as its language model is concerned."""
    described = {"lm": {**describe(lm), **changes}, "title": "x", "frozen": True, "fingerprint": "0"}
    model = {"_name": "transformer_lmfusion", f"{side}_fusion": "elmo", f"{side}_lm_config": json.dumps(described)}
    weights = {f"encoder.embed_tokens.representation.lm.{name}": value for name, value in lm.state_dict().items()}
    torch.save({**TRAINED, "model": weights, "cfg": {"model": model}}, path)
    return path


@pytest.mark.parametrize("side", ["src", "tgt"])
@pytest.mark.parametrize(("name", "value"), DESCRIBED, ids=str)
def test_a_description_of_the_language_model_inside(
    make_cloze: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], side: str, name: str, value: Any
) -> None:
    path = holding(make_cloze(), tmp_path / "mt.pt", side, **{name: value})
    before = peak()
    with pytest.raises(InputError, match=rf"mt\.pt.*({name}|describes no language model)"):
        checkpoint_utils.load_checkpoint_to_cpu(str(path))
    assert cli.main(["inspect", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert peak() - before < SPARE


def test_a_description_that_is_whole_is_taken(make_cloze: Any, make_causal: Any, tmp_path: Path) -> None:
    for lm in (make_cloze(), make_cloze(targets=("future", "past")), make_causal()):
        path = holding(lm, tmp_path / "mt.pt", "src", symbols=lm.symbols)
        assert checkpoint_utils.load_checkpoint_to_cpu(str(path))["cfg"].model.src_fusion == "elmo"


@pytest.mark.parametrize("changes", [{"decoder_ffn_embed_dim": -3}, {"decoder_attention_heads": 0}, {"family": {}}])
def test_sizes_that_no_language_model_has_are_one_line_wherever_it_is_built(make_cloze: Any, changes: Any) -> None:
    lm = make_cloze()
    with pytest.raises(InputError):
        build_lm({**describe(lm), **changes}, lm.symbols)
