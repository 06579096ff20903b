"""A small file that asks for much memory, by sizes that it names or of its tensors, is refused before it is taken."""

from __future__ import annotations

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
from lmfusion.checkpoint.contents import check_contents, check_sizes
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.errors import InputError
from lmfusion.lm.loading import load_lm

HUGE = 10_000_000
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
        pytest.param(lambda: [torch.zeros(1) for _ in range(1_000_000)], marks=pytest.mark.slow),
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


@pytest.mark.parametrize(
    "hold", [lambda x: [x], lambda x: (1, x), lambda x: Namespace(a=x)], ids=["list", "tuple", "names"]
)
def test_such_tensors_are_found_in_every_container(hold: Any) -> None:
    state = {"model": {}, "extra_state": {"x": [{"y": hold(TENSORS["overlapping rows"])}]}}
    with pytest.raises(InputError, match=r"extra_state\.x\.0\.y\.\w of shape \(1000, 1000\)"):
        check_contents(Path("some.pt"), state)


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


@pytest.mark.parametrize("name", ["decoder_layers", "decoder_embed_dim", "encoder_attention_heads", "max_positions"])
def test_sizes_are_looked_at_in_every_form_of_a_number(name: str) -> None:
    """Values that are none are for the types to tell."""
    weights = {"a": torch.zeros(5000)}
    for value in (HUGE + 1, str(HUGE + 1), float(HUGE + 1), -7 if name != "decoder_layers" else HUGE + 1):
        for stored in ({"cfg": {"model": {name: value}}}, {"args": Namespace(**{name: value})}):
            with pytest.raises(InputError, match=rf"some\.pt .* {name} is "):
                check_sizes(Path("some.pt"), {"model": weights, **stored})
    for value in (1, float("inf"), float("nan"), "x", None, [HUGE]):
        check_sizes(Path("some.pt"), {"model": weights, "cfg": {"model": {name: value}}})
