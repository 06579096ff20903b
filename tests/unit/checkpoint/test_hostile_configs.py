"""A small file that asks for much memory, or has values of other types than their fields, is refused before use."""

from __future__ import annotations

import json
import resource
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.models import build_model

from lmfusion import cli
from lmfusion.checkpoint.budget import SPARE, building_from
from lmfusion.checkpoint.config_types import check_types
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.errors import InputError
from lmfusion.lm.loading import build as build_lm
from lmfusion.lm.loading import describe, load_lm

HUGE = 10_000_000
HERE = Path("some.pt")


STEP = {"num_updates": 7, "criterion_name": "x", "optimizer_name": "y", "lr_scheduler_state": {}}
TRAINED = {"optimizer_history": [STEP], "extra_state": {"train_iterator": {"epoch": 1}}}


@pytest.fixture
def lm_path(make_cloze: Any, save_lm: Any) -> Path:
    """A cloze LM's checkpoint."""
    path: Path = save_lm(make_cloze())
    return path


def change(path: Path, **values: Any) -> None:
    state = torch.load(path, weights_only=True)
    state["cfg"]["model"].update(values)
    torch.save(state, path)


def peak() -> int:
    """Bytes of memory that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("size", [HUGE, 90_000, 20_000])
@pytest.mark.parametrize("name", ["decoder_embed_dim", "decoder_ffn_embed_dim"])
def test_a_width_that_the_weights_do_not_have(lm_path: Path, name: str, size: int) -> None:
    """Also one below the numbers there are: a square of it would not fit either."""
    change(lm_path, **{name: size})
    before = peak()
    with pytest.raises(InputError, match=r"lm\.pt"):
        load_lm(lm_path)
    assert peak() - before < SPARE


def build(dictionary: Any, width: int) -> Any:
    """fairseq's transformer of one layer."""
    values = {f"{part}_{name}": width for part in ("encoder", "decoder") for name in ("embed_dim", "ffn_embed_dim")}
    values |= {f"{part}_{name}": 1 for part in ("encoder", "decoder") for name in ("layers", "attention_heads")}
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    return build_model(Namespace(_name="transformer", arch="transformer", **values), task)


def test_memory_of_fairseqs_own_model_is_bounded_before_it_is_taken(dictionary: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(bytes(1_000_000))
    before = peak()
    with pytest.raises(InputError, match=r"model\.pt: .* asks for .* more than 2\.2 GB"), building_from([path]):
        build(dictionary, 100_000)
    assert peak() - before < SPARE


def test_within_the_bound_a_model_is_the_same_bit_for_bit(dictionary: Any, tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(b"small")
    models = []
    for paths in ([], [tmp_path / "model.pt"]):
        torch.manual_seed(5)
        with building_from(paths):
            models.append(build(dictionary, 16).state_dict())
    torch.manual_seed(5)
    models.append(build(dictionary, 16).state_dict())
    for name, weight in models[2].items():
        assert torch.equal(models[0][name], weight)
        assert torch.equal(models[1][name], weight)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.arange(30_000.0)[:, None] * torch.arange(30_000.0)[None],
        lambda: torch.ones(30_000).repeat(30_000, 1),
        lambda: torch.zeros(30_000, 30_000),
        lambda: torch.nn.Parameter(torch.Tensor(30_000, 30_000)),
        lambda: [torch.randn(100_000_000) for _ in range(9)],
        lambda: torch.ones(1).new_zeros(10**15),
        lambda: [torch.zeros(1) for _ in range(1_000_000)],
        lambda: torch.rand(30_000, 30_000, generator=torch.Generator()),
    ],
    ids=["product", "repeat", "zeros", "parameter", "many", "new_zeros", "many small ones", "of a generator"],
)
def test_every_way_to_make_a_large_tensor_is_counted(make: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="asks for"), building_from([tmp_path / "none.pt"]):
        make()


@pytest.mark.parametrize("make", [torch.rand, torch.randn, torch.randperm, lambda n, **g: torch.randint(9, (n,), **g)])
def test_within_the_bound_a_generator_draws_what_it_draws(make: Any, tmp_path: Path) -> None:
    with building_from([tmp_path / "none.pt"]):
        found = make(5, generator=torch.Generator().manual_seed(3))
    assert torch.equal(found, make(5, generator=torch.Generator().manual_seed(3)))


TENSORS = {
    "repeated by a stride of 0": torch.zeros(1).expand(1_000_000, 1_000_000),
    "overlapping rows": torch.zeros(2000).as_strided((1000, 1000), (1, 1)),
    "without storage": torch.zeros(10, device="meta"),
    "sparse": torch.zeros(3, 3).to_sparse(),
}


@pytest.mark.parametrize("tensor", TENSORS.values(), ids=TENSORS)
@pytest.mark.parametrize("place", ["weight", "optimizer"])
def test_tensors_larger_than_what_is_stored(
    lm_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], tensor: torch.Tensor, place: str
) -> None:
    state = torch.load(lm_path, weights_only=True)
    (state["model"] if place == "weight" else state.setdefault("last_optimizer_state", {}))["big"] = tensor
    torch.save(state, lm_path)
    for read in (read_checkpoint, load_lm, checkpoint_utils.load_checkpoint_to_cpu):
        with pytest.raises(
            InputError, match=r"lm\.pt.*([.]big|_rebuild_)"
        ):  # of the last two not even the name is read
            read(str(lm_path))
    out = str(tmp_path / "out.pt")
    for words in (["inspect"], ["average", str(lm_path), "--out", out], ["export", "--half", "--out", out]):
        assert cli.main([words[0], str(lm_path), *words[1:]]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "lm.pt" in error
    assert not Path(out).exists()


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


@pytest.mark.parametrize("name", [["transformer"], {"a": 1}, 5], ids=str)
@pytest.mark.parametrize("section", ["model", "task"])
def test_a_name_that_is_none(section: str, name: Any) -> None:
    with pytest.raises(InputError, match="_name of its configuration"):
        check_types(HERE, {"cfg": {section: {"_name": name}}})


@pytest.mark.parametrize("number", [HUGE, str(HUGE), float(HUGE), f" {HUGE} "], ids=repr)
@pytest.mark.parametrize("style", ["dictionary", "namespace", "args"])
def test_layers_that_the_weights_do_not_have(tmp_path: Path, number: Any, style: str) -> None:
    """OmegaConf makes a number of each of these."""
    values = {
        "_name": "transformer_lm",
        "arch": "transformer_lm",
        "task": "language_modeling",
        "decoder_layers": number,
    }
    stored: dict[str, Any] = {"dictionary": {"cfg": {"model": values}}, "args": {"args": Namespace(**values)}}.get(
        style, {"cfg": {"model": Namespace(**values)}}
    )
    torch.save({**TRAINED, "model": {"a": torch.zeros(5000)}, **stored}, tmp_path / "layers.pt")
    with pytest.raises(InputError, match=r"layers\.pt .*decoder_layers is 10,000,000"):
        checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "layers.pt"))


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
