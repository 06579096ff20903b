"""What is multiplied into weights, and what does not go together."""

from __future__ import annotations

import math

import pytest
import torch

from lmfusion.convert.folding import fold_plain_shares, fold_projections, fold_scale
from lmfusion.convert.mapping import Row, WeightMapping, apply_mapping, map_names
from lmfusion.errors import InputError

PROJECTED = {
    "decoder.embed_tokens.weight": torch.randn(9, 3, generator=torch.Generator().manual_seed(1)),
    "decoder.project_in_dim.weight": torch.randn(4, 3, generator=torch.Generator().manual_seed(2)),
    "decoder.project_out_dim.weight": torch.randn(3, 4, generator=torch.Generator().manual_seed(3)),
}


def test_a_shared_embedding_between_projections_becomes_two() -> None:
    """Input: W_in e of each row e; output: logits E (W_out x) = (E W_out) x."""
    folded, shared = fold_projections(PROJECTED, "decoder.", shared=True)
    table, inner, outer = (weight.double() for weight in PROJECTED.values())
    assert not shared
    assert set(folded) == {"decoder.embed_tokens.weight", "decoder.embed_out"}
    for row, found in zip(table, folded["decoder.embed_tokens.weight"], strict=True):
        torch.testing.assert_close(found.double(), inner @ row, rtol=0, atol=1e-6)
    vector = torch.tensor([0.3, -1.0, 2.0, 0.5], dtype=torch.float64)
    expected = table @ (outer @ vector)
    torch.testing.assert_close(folded["decoder.embed_out"].double() @ vector, expected, rtol=0, atol=1e-5)


def test_one_projection_alone_and_no_softmax() -> None:
    """Inside another model the embedding is projected, and nothing stands behind the outer projection."""
    table, inner, _ = (weight.double() for weight in PROJECTED.values())
    for names in (list(PROJECTED)[:2], list(PROJECTED)):
        folded, _ = fold_projections({name: PROJECTED[name] for name in names}, "decoder.", shared=False)
        assert set(folded) == {"decoder.embed_tokens.weight"}
        torch.testing.assert_close(folded["decoder.embed_tokens.weight"], (table @ inner.T).float())


@pytest.mark.parametrize("shared", [True, False])
def test_without_projections_nothing_changes(shared: bool) -> None:
    weights = {"decoder.embed_tokens.weight": torch.ones(9, 4), "encoder.project_in_dim.weight": torch.ones(4, 3)}
    assert fold_projections(weights, "decoder.", shared=shared) == (weights, shared)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("decoder.project_in_dim.weight", torch.ones(4, 5)),
        ("decoder.project_in_dim.weight", torch.ones(3)),
        ("decoder.project_out_dim.weight", torch.ones(5, 4)),
        ("decoder.embed_tokens.weight", torch.ones(27)),
        ("decoder.embed_tokens.weight", None),
    ],
    ids=["inner", "inner of one dimension", "outer", "embedding of one dimension", "no embedding"],
)
def test_sizes_that_do_not_go_together_are_named(name: str, value: torch.Tensor | None) -> None:
    weights = {key: given for key, given in {**PROJECTED, name: value}.items() if given is not None}
    told = "missing" if value is None else str(tuple(value.shape))
    with pytest.raises(InputError) as refused:
        fold_projections(weights, "decoder.", shared=True)
    assert name in str(refused.value)
    assert told in str(refused.value)


def test_a_factor_takes_the_place_of_the_root_of_the_channels() -> None:
    table = torch.tensor([[1.0, -2.0, 3.0, 4.0]])
    torch.testing.assert_close(fold_scale(table, 5.0) * math.sqrt(4), 5.0 * table)


def test_plain_shares_are_those_of_a_softmax() -> None:
    shares, gamma = torch.tensor([0.5, 2.0, 0.25]), torch.tensor([1.5])
    folded = fold_plain_shares({"mix.weights": shares, "mix.gamma": gamma, "other": gamma}, "mix.")
    assert folded["other"] is gamma
    torch.testing.assert_close(folded["mix.gamma"] * folded["mix.weights"].softmax(0), 1.5 * shares)
    without = {"mix.weights": -shares}
    assert fold_plain_shares(without, "mix.") is without, "what is missing is listed later"


def test_a_weight_of_the_released_format_is_divided_by_its_rows() -> None:
    """Rows in front are left out, dimensions of size 1 as well; a copy may be missing, and must else be equal."""
    steps = [
        WeightMapping("table", (5, 2), {"first": 1, "second": 2}, skipped=2),
        WeightMapping("bias", (1, 1, 3), {"third": 3}),
        WeightMapping("copy", (5, 2), copy_of="table"),
    ]
    table, bias = torch.arange(10.0).view(5, 2), torch.arange(3.0).view(1, 1, 3)
    for weights in ({"table": table, "bias": bias}, {"table": table, "bias": bias, "copy": table.clone(), "v": bias}):
        found = apply_mapping(steps, weights, ignored=["v"], origin="x.pt")
        assert {name: value.tolist() for name, value in found.items()} == {
            "first": [[4.0, 5.0]],
            "second": [[6.0, 7.0], [8.0, 9.0]],
            "third": [0.0, 1.0, 2.0],
        }
    with pytest.raises(InputError, match=r"x\.pt .*copy \(of table\)"):
        apply_mapping(steps, {"table": table, "bias": bias, "copy": table + 1}, origin="x.pt")
    with pytest.raises(InputError, match=r"missing: table\."):
        apply_mapping(steps, {"bias": bias, "copy": table}, origin="x.pt")


def test_a_weight_of_ours_goes_where_the_first_row_that_fits_its_whole_name_says() -> None:
    """Weights of one name there are its rows, in the order of the table."""
    table = [Row("special", "other"), Row(r"(\w+)", r"matrix", skipped=2), Row("deep.bias", "bias", lead=2)]
    shapes = {"our.b": (3, 4), "our.a": (1, 4), "our.special": (5,), "our.deep.bias": (7,), "our.a.b": (9,), "a": (8,)}
    assert map_names(table, shapes, "our.", "their.") == [
        WeightMapping("their.other", (5,), {"our.special": 5}),
        WeightMapping("their.matrix", (2 + 3 + 1, 4), {"our.b": 3, "our.a": 1}, skipped=2),
        WeightMapping("their.bias", (1, 1, 7), {"our.deep.bias": 7}),
    ]
