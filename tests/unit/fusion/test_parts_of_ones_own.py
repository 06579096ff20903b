"""A family or an integration of one's own that forgets something hears of it, and its models name it where it lacks."""

from __future__ import annotations

import json
import logging
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lmfusion.described import own_parts
from lmfusion.errors import InputError
from lmfusion.fusion import interface
from lmfusion.fusion.combinations import check_side
from lmfusion.fusion.interface import FUSIONS
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.fusion.reordering import BeamWatch, reorder_states
from lmfusion.lm.interface import FAMILIES
from lmfusion.lm.loading import load_lm

ROOT = Path(__file__).parents[3]
OWN = ROOT / "docs" / "own_parts"
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")


@pytest.fixture
def mean(monkeypatch: pytest.MonkeyPatch) -> type[interface.Fusion]:
    """The integration of docs/extending.md, registered for the test."""
    monkeypatch.setattr(interface, "_closed", False)
    monkeypatch.setitem(FUSIONS, "mean", None)
    FUSIONS.pop("mean")
    runpy.run_path(str(OWN / "mean_of_layers.py"), run_name="own_integration")
    return FUSIONS["mean"]


class Forgetful(nn.Module):
    """Keeps the last word of every hypothesis."""

    key = "memory"

    def look(self, state: dict[str, Any], rows: int) -> None:
        state[self.key] = {"last": torch.arange(rows * 3.0).view(rows, 3), "length": torch.tensor(4)}


class Careful(Forgetful):
    """Reorders what it keeps as docs/extending.md says."""

    scope: dict[str, Any] = {}
    (block,) = re.findall(r"```python\n(def reorder_incremental_state.*?)```", PAGE, re.DOTALL)
    exec(block, scope)
    given = staticmethod(scope["reorder_incremental_state"])

    def look(self, state: dict[str, Any], rows: int) -> None:
        state[self.key] = {"last": torch.arange(rows * 3.0).view(rows, 3)}

    def reorder_incremental_state(self, incremental_state: dict[str, Any], new_order: Tensor) -> None:
        self.given(self, incremental_state, new_order)


def step(part: Forgetful, watch: BeamWatch, order: list[int]) -> dict[str, Any]:
    """A step of a beam search of 4 hypotheses whose rows are reordered before it; the decoding state."""
    state: dict[str, Any] = {"another.attention": {"keys": torch.zeros(4, 2)}}
    part.look(state, 4)
    watch.rows = 4
    decoder = nn.ModuleList([part])
    other = nn.Identity()
    other._incremental_state_id = "another"  # type: ignore[assignment]
    decoder.append(other)
    before = watch.before(decoder, part, state, torch.tensor(order))
    reorder_states(decoder, state, torch.tensor(order))
    watch.after(before, state)
    return state


def test_a_state_that_did_not_follow_the_beam_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    part = Forgetful()
    watch = BeamWatch(part)
    with caplog.at_level(logging.WARNING, "lmfusion.fusion.reordering"):
        step(part, watch, [0, 1, 2, 3])
        assert not caplog.messages
        step(part, watch, [1, 1, 0, 3])
        step(part, watch, [1, 1, 0, 3])
    (told,) = caplog.messages
    for named in ("memory, last", "reorder_incremental_state", "Forgetful"):
        assert named in told


def test_the_method_of_the_page_makes_it_follow(caplog: pytest.LogCaptureFixture) -> None:
    part = Careful()
    state = step(part, BeamWatch(part), [1, 1, 0, 3])
    assert state["memory"]["last"].tolist() == [[3, 4, 5], [3, 4, 5], [0, 1, 2], [9, 10, 11]]
    assert not caplog.messages


def test_parts_that_come_with_lmfusion_are_not_watched(make_causal: Any) -> None:
    watch = BeamWatch(make_causal())
    watch.rows = 2
    state: Any = {"memory": {"last": torch.zeros(2, 3)}}
    assert watch.before(nn.Identity(), nn.Identity(), state, torch.tensor([1, 0])) == {}


@pytest.mark.parametrize("side", ["src", "tgt"])
def test_an_integration_that_is_not_registered_is_named_with_the_way_to_register_it(make_cfg: Any, side: str) -> None:
    cfg = make_cfg(**{f"{side}_fusion": "ema", f"{side}_lm_config": "{}"})
    with pytest.raises(InputError, match=r"ema is not registered.*elmo.*--user-dir.*load_model"):
        check_side(cfg, side)


@pytest.mark.parametrize("says_so", [False, True])
def test_training_the_lm_has_to_be_declared(mean: Any, make_cfg: Any, task: Any, src_lm: Path, says_so: bool) -> None:
    class Trained(mean):  # type: ignore[misc]
        trains_lm = says_so

        def __init__(self, lm: Any, side: Any, config: Any) -> None:
            super().__init__(lm, side, config)
            lm.unfreeze()

    FUSIONS["mean"] = Trained
    cfg = make_cfg(src_fusion="mean", src_lm=str(src_lm))
    if says_so:
        model = TransformerLMFusion.build_model(cfg, task)
        assert all(weight.requires_grad for weight in model.encoder.fusion.lm.parameters())
    else:
        with pytest.raises(InputError, match=r"mean.*trains_lm = True"):
            TransformerLMFusion.build_model(cfg, task)


@pytest.mark.parametrize("trained", [False, True])
def test_a_checkpoint_says_whether_the_lm_was_trained_and_not_whether_it_may_be(
    mean: Any, make_cfg: Any, task: Any, src_lm: Path, trained: bool
) -> None:
    """An integration may leave that to a flag."""

    class ByFlag(mean):  # type: ignore[misc]
        trains_lm = True

        def __init__(self, lm: Any, side: Any, config: Any) -> None:
            super().__init__(lm, side, config)
            if trained:
                lm.unfreeze()

    FUSIONS["mean"] = ByFlag
    cfg = make_cfg(src_fusion="mean", src_lm=str(src_lm))
    TransformerLMFusion.build_model(cfg, task)
    assert json.loads(cfg.src_lm_config)["frozen"] is not trained


def test_a_model_built_of_its_checkpoints_description_gets_its_lm_frozen(
    mean: Any, make_cfg: Any, task: Any, src_lm: Path
) -> None:
    """As from a file, whatever the integration does."""
    seen = []

    class Watching(mean):  # type: ignore[misc]
        def __init__(self, lm: Any, side: Any, config: Any) -> None:
            seen.append((lm.training, any(weight.requires_grad for weight in lm.parameters())))
            super().__init__(lm, side, config)

    FUSIONS["mean"] = Watching
    cfg = make_cfg(src_fusion="mean", src_lm=str(src_lm))
    TransformerLMFusion.build_model(cfg, task)
    cfg.src_lm = None
    TransformerLMFusion.build_model(cfg, task)
    assert seen == [(False, False)] * 2


def test_overrides_that_are_none_replace_nothing_in_a_family_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """finetune gives dropouts that nobody asked for as None."""
    path = tmp_path / "german.words"
    path.write_text("Haus Tür\n", encoding="utf-8")
    monkeypatch.setitem(FAMILIES, "random_vectors", None)
    FAMILIES.pop("random_vectors")
    runpy.run_path(str(OWN / "random_vectors.py"), run_name="own_family")
    assert load_lm(path, seed=None, dropout=None).config == {"channels": 16, "seed": 1}
    assert load_lm(path, seed=3).config["seed"] == 3


def test_what_torch_saved_and_no_family_reads_says_how_to_register_one(tmp_path: Path) -> None:
    path = tmp_path / "de.conv"
    torch.save({"weights": torch.zeros(2)}, path)
    with pytest.raises(InputError, match=r"de\.conv.*causal, cloze.*--user-dir"):
        load_lm(path)


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"src_fusion": "elmo", "tgt_fusion": "none", "src_lm_config": '{"lm": {"family": "cloze"}}'}, []),
        ({"src_fusion": "ema", "tgt_fusion": "elmo", "tgt_lm_config": '{"lm": {"family": "conv"}}'}, ["ema", "conv"]),
        ({"encoder_layers": 3}, []),
    ],
)
def test_parts_that_a_model_needs_beside_lmfusion_are_known_without_their_code(config: Any, named: list[str]) -> None:
    assert own_parts(config) == named
