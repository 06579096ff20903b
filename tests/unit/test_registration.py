"""What an author forgot in a family or an integration is named, in one line, before anything is trained."""

from __future__ import annotations

import runpy
from argparse import ArgumentParser
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, make_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, Optional

import pytest
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from omegaconf import OmegaConf
from torch import nn

from lmfusion.errors import InputError
from lmfusion.fusion import interface
from lmfusion.fusion.combinations import check_side
from lmfusion.fusion.interface import FUSIONS, Fusion, register_fusion
from lmfusion.lm.interface import FAMILIES, PretrainedLM, register_lm
from lmfusion.lm.loading import build, load_lm
from lmfusion.registration import check_class

OWN = Path(__file__).parents[2] / "docs" / "own_parts"


@dataclass
class Settings:
    """One plain value."""

    channels: int = 4


@dataclass
class Flags:
    """One flag."""

    mean_of: int | None = field(default=None, metadata={"help": "how many"})


PARTS: dict[str, Any] = {
    "Config": Settings,
    "sees_future": False,
    "incremental": True,
    "states": lambda *_, **__: None,
    "max_positions": lambda _: 9,
}


@pytest.fixture(autouse=True)
def registers_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of these tests stays registered, and integrations may still come."""
    monkeypatch.setattr(interface, "_closed", False)
    for register in (FAMILIES, FUSIONS):
        for name in [*register, "forgetful", "random_vectors"]:
            if name in register:
                monkeypatch.setitem(register, name, register[name])
            else:
                monkeypatch.setitem(register, name, None)
                register.pop(name)


@pytest.mark.parametrize("forgotten", sorted(PARTS))
def test_a_family_without_a_part_is_refused_by_its_name(forgotten: str) -> None:
    parts = {name: part for name, part in PARTS.items() if name != forgotten}
    with pytest.raises(InputError, match=rf"forgetful.* {forgotten}\b") as caught:
        register_lm("forgetful")(type("Forgetful", (PretrainedLM,), parts))
    assert not any(other in str(caught.value).split(" has no ")[1].split(" of its own")[0] for other in parts)
    assert "forgetful" not in FAMILIES


def test_a_family_with_every_part_is_registered() -> None:
    family = register_lm("forgetful")(type("Whole", (PretrainedLM,), dict(PARTS)))
    assert FAMILIES["forgetful"] is family
    assert family.family == "forgetful"


@pytest.mark.parametrize(("part", "named"), [(nn.Linear, "PretrainedLM"), (dict(PARTS), "PretrainedLM")])
def test_what_is_no_family_at_all_is_refused(part: Any, named: str) -> None:
    with pytest.raises(InputError, match=named):
        register_lm("forgetful")(part)


def test_a_config_that_is_no_dataclass_is_refused() -> None:
    with pytest.raises(InputError, match="@dataclass"):
        register_lm("forgetful")(type("Plain", (PretrainedLM,), {**PARTS, "Config": type("Config", (), {})}))


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ({"embed": lambda *_: None}, "Config"),
        ({"Config": Flags}, "embed"),
        ({"Config": Settings, "embed": lambda *_: None}, "channels"),
    ],
    ids=["no flags", "no embeddings", "a flag without help"],
)
def test_an_integration_without_a_part_is_refused_by_its_name(parts: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=rf"forgetful.*{named}"):
        register_fusion("forgetful")(type("Forgetful", (Fusion,), parts))
    assert "forgetful" not in FUSIONS


def flags(kind: Any, default: Any, name: str = "of") -> type:
    """A dataclass with one flag."""
    return make_dataclass("Flags", [(name, kind, field(default=default, metadata={"help": "how"}))])


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (flags(float, None), r"flag of is None.*float \| None"),
        (flags(Literal["a"], "a"), "flag of is of the type"),
        (flags(int | str | None, None), "flag of is of the type"),
        (flags(int | None, None, "lm"), "every side has a flag lm already"),
        (flags(float, 0.5, "lm_dropout"), "finetune have a flag lm_dropout with two meanings"),
    ],
)
def test_a_flag_that_cannot_work_is_refused_by_its_name(config: Any, named: str) -> None:
    with pytest.raises(InputError, match=rf"forgetful.*{named}"):
        register_fusion("forgetful")(type("Odd", (Fusion,), {"Config": config, "embed": lambda *_: None}))


@pytest.mark.parametrize("name", ["none", "moving average", ""])
def test_a_name_that_no_flag_can_choose_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="cannot be chosen"):
        register_fusion(name)(type("Beside", (Fusion,), {"Config": Flags, "replaces_embeddings": False}))


def test_a_flag_is_shared_by_what_it_means_however_its_type_is_written() -> None:
    shared = next(spec for spec in fields(FUSIONS["finetune"].Config) if spec.name == "lm_lr_scale")
    config = make_dataclass("Own", [("lm_lr_scale", Optional[float], field(default=None, metadata=shared.metadata))])
    register_fusion("forgetful")(type("Own", (Fusion,), {"Config": config, "replaces_embeddings": False}))
    assert "forgetful" in FUSIONS


@pytest.mark.parametrize(("given", "refused"), [(0.5, False), (0.75, True)])
def test_a_flag_with_a_value_of_its_own_is_given_where_it_differs(given: float, refused: bool) -> None:
    """A model without the integration has the flag as well, with its default."""
    parts = {"Config": flags(float, 0.5), "replaces_embeddings": False}
    register_fusion("forgetful")(type("Beside", (Fusion,), parts))
    cfg = SimpleNamespace(src_fusion="none", src_lm=None, src_lm_config=None, src_of=given, src_embed_scale=None)
    with pytest.raises(InputError, match="--src-of would be ignored") if refused else nullcontext():
        check_side(cfg, "src")


def test_an_integration_that_leaves_the_embeddings_needs_no_embed() -> None:
    parts = {"Config": Flags, "replaces_embeddings": False}
    fusion = register_fusion("forgetful")(type("Beside", (Fusion,), parts))
    assert FUSIONS["forgetful"] is fusion


@pytest.mark.parametrize("forgotten", ["embed_dim", "state_dim", "state_names", "token_embedding"])
def test_what_a_constructor_did_not_set_is_named_when_a_model_is_built(forgotten: str) -> None:
    given = {"embed_dim": 4, "state_dim": 4, "state_names": ["one"], "token_embedding": nn.Embedding(4, 4)}

    def construct(self: Any, config: Any, vocabulary: Any) -> None:
        PretrainedLM.__init__(self, config, vocabulary)
        for name, value in given.items():
            if name != forgotten:
                setattr(self, name, value)

    register_lm("forgetful")(type("Forgetful", (PretrainedLM,), {**PARTS, "__init__": construct}))
    with pytest.raises(InputError, match=forgotten):
        build({"family": "forgetful"}, ["<s>", "<pad>", "</s>", "<unk>"])


@dataclass
class Trainable(FairseqDataclass):
    """Flags of a family that fairseq-train trains, in a file whose annotations are text, as this one's are."""

    width: int = field(default=3, metadata={"help": "of each convolution"})
    factor: float | None = field(default=None, metadata={"help": "on the residual"})
    tied: bool = field(default=False, metadata={"help": "share weights"})


def test_a_trainable_family_may_have_its_flags_in_its_own_file_with_annotations_as_text() -> None:
    assert Trainable.__dataclass_fields__["width"].type == "int"
    register_lm("forgetful")(type("Forgetful", (PretrainedLM,), {**PARTS, "Config": Trainable}))
    parser = ArgumentParser()
    gen_parser_from_dataclass(parser, Trainable())
    found = parser.parse_args(["--width", "5", "--factor", "0.5", "--tied"])
    assert (found.width, found.factor, found.tied) == (5, 0.5, True)
    assert parser.parse_args([]).factor is None
    stored = OmegaConf.structured(Trainable)  # as under fairseq-hydra-train
    stored.factor = "0.25"
    assert (stored.factor, stored.width) == (0.25, 3)


def test_every_registered_class_is_whole() -> None:
    for name, family in FAMILIES.items():
        check_class(name, family, PretrainedLM)
    for name, fusion in FUSIONS.items():
        check_class(name, fusion, Fusion, flags=True)


@pytest.fixture
def own_family() -> None:
    """The family of docs/extending.md."""
    FAMILIES.pop("random_vectors", None)
    runpy.run_path(str(OWN / "random_vectors.py"), run_name="own_family")


def test_words_that_are_not_utf_8_are_refused_in_a_line(own_family: None, tmp_path: Path) -> None:
    path = tmp_path / "latin.words"
    path.write_bytes("Haus\nTür\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.words.*UTF-8"):
        load_lm(path)


@pytest.mark.parametrize("name", ["folder.words", "folder"])
def test_a_folder_is_refused_and_the_families_that_were_asked_are_named(
    own_family: None, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=r"folder.*causal, cloze.*random_vectors.*--user-dir"):
        load_lm(tmp_path / name)


def test_a_file_of_a_family_that_is_not_registered_says_how_to_register_one(tmp_path: Path) -> None:
    path = tmp_path / "german.lexicon"
    path.write_text("Haus house\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"german\.lexicon.*causal, cloze.*--user-dir"):
        load_lm(path)
