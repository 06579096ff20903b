"""Models that are compared are about as large."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import pytest
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_MODEL_REGISTRY
from row_groups import CLOZE, PREFIX_LMS

from lmfusion.inspection import inspect_checkpoint
from lmfusion.rows.amounts import TABLE

ROOT = Path(__file__).parents[4]


@pytest.fixture
def count(parse: Any) -> Callable[..., int]:
    """The parameters of a training command's model, of whose names this is a part, its language model left out."""

    def counted(command: list[str], part: str = "", **task: Any) -> int:
        args = parse(command)
        cfg = convert_namespace_to_omegaconf(args).model
        if "prefix_lm" in cfg:
            cfg.prefix_lm = None
        dictionary = Dictionary.load(str(ROOT / "pretrained" / "dict.txt"))
        given = {"source_dictionary": dictionary, "target_dictionary": dictionary, "cfg": None, **task}
        model = ARCH_MODEL_REGISTRY[args.arch].build_model(cfg, SimpleNamespace(**given))
        return sum(value.numel() for name, value in model.named_parameters() if part in name)

    return counted


@pytest.mark.slow
@pytest.mark.parametrize("name", PREFIX_LMS)
def test_a_prefix_lm_has_as_many_parameters_in_its_layers_as_the_baseline(
    name: str, recipes: Any, count: Callable[..., int]
) -> None:
    for row in ("baseline", name):
        recipes.succeed(f"debian_ende/{row}.sh")
    command, baseline = recipes.command(name), recipes.command("baseline")
    own = PREFIX_LMS[name].split()
    assert command[-len(own) :] == own
    same = ["--criterion", "--max-update", "--lr", "--dropout", "--max-tokens", "--patience"]
    assert [command[command.index(flag) + 1] for flag in same] == [baseline[baseline.index(flag) + 1] for flag in same]
    assert count(command, ".layers.") == pytest.approx(count(baseline, ".layers."), rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("size", sorted({(row.channels, row.layers, row.lstm_layers) for row in TABLE}))
def test_an_lstm_has_about_as_many_parameters_as_the_baseline(
    size: tuple[int, int, int], recipes: Any, count: Callable[..., int]
) -> None:
    numbers = dict(zip(("S2S_DIM", "S2S_LAYERS", "LSTM_LAYERS"), map(str, size)), S2S_FFN=str(4 * size[0]))
    for row in ("baseline", "lstm"):
        recipes.succeed(f"debian_ende/{row}.sh", **numbers)
    assert 0.8 < count(recipes.command("lstm")) / count(recipes.command("baseline")) < 1.2


@pytest.mark.parametrize(
    ("kind", "targets"), [("elmo", ["future", "past"]), ("recurrent", ["future"]), ("causal", ["future"])]
)
def test_an_lm_to_be_compared_is_as_large_as_the_cloze_lm(
    kind: str, targets: list[str], recipes: Any, count: Callable[..., int]
) -> None:
    done = recipes.run("pretrain_earlier.sh", kind, str(recipes.out))
    assert "export" in recipes.calls()[-1], done.stderr
    cloze = inspect_checkpoint(ROOT / CLOZE).total
    assert count(recipes.command(f"{kind}.en"), targets=targets) == pytest.approx(cloze, rel=0.05)
