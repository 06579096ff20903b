"""What is made of checkpoints for passing on does not take the place of one."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch

from lmfusion.checkpoint import rewriting as checkpoints
from lmfusion.errors import InputError


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A checkpoint that a run could go on from."""
    torch.save({"model": {"w": torch.ones(3)}, "last_optimizer_state": {"step": 7}}, tmp_path / "checkpoint_last.pt")
    return tmp_path / "checkpoint_last.pt"


def test_a_checkpoint_is_not_exported_onto_itself(saved: Path) -> None:
    before = saved.read_bytes()
    with pytest.raises(InputError, match=r"--out .* itself, .* give another name"):
        checkpoints.export(saved, saved.parent / ".." / saved.parent.name / saved.name)
    assert saved.read_bytes() == before


def test_an_average_does_not_take_the_place_of_what_it_is_made_of(saved: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pt"
    other.write_bytes(saved.read_bytes())
    with pytest.raises(InputError, match=r"--out .*other\.pt itself"):
        checkpoints.average([saved, other], other)
    assert other.read_bytes() == saved.read_bytes()


def test_an_average_of_two_models_names_some_of_what_differs_and_how_much_more(saved: Path, tmp_path: Path) -> None:
    torch.save({"model": {f"w{number}": torch.ones(3) for number in range(100)}}, tmp_path / "other.pt")
    with pytest.raises(InputError, match=r"they differ in w, w0, w1 and 98 more weights") as told:
        checkpoints.average([saved, tmp_path / "other.pt"], tmp_path / "out.pt")
    assert len(str(told.value)) < 400


def test_what_differs_in_four_weights_names_three_and_counts_one(saved: Path, tmp_path: Path) -> None:
    torch.save({"model": {f"w{number}": torch.ones(3) for number in range(3)}}, tmp_path / "other.pt")
    with pytest.raises(InputError, match=r"they differ in w, w0, w1 and 1 more weights\."):
        checkpoints.average([saved, tmp_path / "other.pt"], tmp_path / "out.pt")


def test_a_weight_that_half_precision_does_not_hold_is_named(tmp_path: Path) -> None:
    path, out = tmp_path / "c.pt", tmp_path / "h.pt"
    for value, fits in ((6e4, True), (1e6, False)):
        torch.save({"model": {"encoder.w": torch.tensor([1.0, value]), "version": torch.tensor([3])}, "cfg": {}}, path)
        if fits:
            checkpoints.export(path, out, half=True)
        else:
            with pytest.raises(InputError, match=r"encoder\.w .*1e\+06"):
                checkpoints.export(path, out, half=True)
    found = torch.load(out, weights_only=True)["model"]
    assert found["encoder.w"].dtype == torch.float16
    assert found["version"].tolist() == [3]


def several(folder: Path, *weights: dict[str, torch.Tensor], **more: Any) -> list[Path]:
    """Checkpoints with these weights; each knows its number."""
    paths = [folder / f"checkpoint{number}.pt" for number in range(1, len(weights) + 1)]
    for number, (path, model) in enumerate(zip(paths, weights), start=1):
        state = {"model": model, "last_optimizer_state": {"step": 7}, "extra_state": {"epoch": number}}
        torch.save({**state, **more}, path)
    return paths


def averaged(paths: list[Path]) -> dict[str, Any]:
    """The content of their average."""
    checkpoints.average(paths, paths[0].with_name("average.pt"))
    found: dict[str, Any] = torch.load(paths[0].with_name("average.pt"), weights_only=True)
    return found


def test_one_checkpoint_has_no_average(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="two checkpoints or more"):
        checkpoints.average([saved], tmp_path / "out.pt")


@pytest.mark.parametrize(
    ("kind", "values", "mean"),
    [
        (torch.float16, (2048.0, 1.0, 0.0), 683.0),  # of 2049, which would be 2048
        (torch.float32, (2.0**24, 1.0, 1.0), 5592406.0),  # of 2^24 + 2, which would be 2^24
    ],
)
def test_weights_are_added_in_more_digits_than_they_have(
    tmp_path: Path, kind: torch.dtype, values: tuple[float, ...], mean: float
) -> None:
    weights = [{"w": torch.tensor([number], dtype=kind)} for number in values]
    found = averaged(several(tmp_path, *weights))["model"]["w"]
    assert found.dtype == kind
    assert found.tolist() == [mean]


def test_all_but_the_weights_is_the_last_ones_without_its_optimizer(tmp_path: Path) -> None:
    weights = [{"w": torch.tensor([number]), "version": torch.tensor([3])} for number in (1.0, 4.0)]
    found = averaged(several(tmp_path, *weights))
    assert found["extra_state"] == {"epoch": 2}
    assert found["last_optimizer_state"] is None
    assert found["model"]["w"].tolist() == [2.5]
    assert found["model"]["version"].tolist() == [3]


@pytest.mark.parametrize("half", [False, True])
def test_the_average_of_a_training_is_not_passed_on(half: bool) -> None:
    """--store-ema keeps it for the training alone, as large as the model, in full precision."""
    averages = {"ema": {"w": torch.ones(2)}, "ema_fp32_params": {"w": torch.ones(2)}}
    state = {"model": {"w": torch.zeros(2)}, "cfg": {}, "extra_state": {"epoch": 2, **averages}}
    assert checkpoints.exported(state, half=half)["extra_state"] == {"epoch": 2}


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_a_matrix_with_two_names_is_averaged_once(tmp_path: Path, kind: torch.dtype) -> None:
    tied = [torch.full((2,), number, dtype=kind) for number in (1.0, 3.0)]
    found = averaged(several(tmp_path, *({"embedding": one, "output": one} for one in tied)))["model"]
    assert found["embedding"].tolist() == found["output"].tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (torch.ones(3), torch.ones(1)),  # which could be added
        (torch.ones(3), torch.ones(3, dtype=torch.long)),
        (torch.ones(3, dtype=torch.long), torch.ones(3)),
        (torch.tensor([3]), torch.tensor([4])),
    ],
    ids=["of another shape", "without fractions", "with fractions", "another version"],
)
def test_tensors_that_have_no_average_are_named(tmp_path: Path, first: torch.Tensor, second: torch.Tensor) -> None:
    paths = several(tmp_path, {"some.name": first}, {"some.name": second})
    with pytest.raises(InputError, match=r"checkpoint2\.pt and .*checkpoint1\.pt .*some\.name"):
        averaged(paths)
    assert not (tmp_path / "average.pt").exists()


@pytest.mark.parametrize("form", [dict, Namespace], ids=["with a dataclass", "without"])
def test_what_is_passed_on_knows_no_folders_and_only_what_loading_needs(tmp_path: Path, form: Any) -> None:
    model = form(_name="x", src_lm="/home/me/models/lm.pt", spm="models/spm.model", layers=3)
    task = form(data="/home/me/a:/home/me/b", files=["/home/me/c", "d/e", ("/home/me/f", 1)], by={"x": "/home/me/g"})
    cfg = {"model": model, "task": task, "common": {"user_dir": "/home/me/parts"}}
    (path,) = several(tmp_path, {"w": torch.ones(1)}, cfg=cfg)
    checkpoints.export(path, tmp_path / "out.pt")
    found = torch.load(tmp_path / "out.pt", weights_only=True)
    assert found["cfg"]["model"] == {"_name": "x", "src_lm": "lm.pt", "spm": "models/spm.model", "layers": 3}
    assert found["cfg"]["task"] == {"data": "b", "files": ["c", "d/e", ("f", 1)], "by": {"x": "g"}}
    assert found["cfg"].keys() == {"model", "task"}
    assert b"/home/me" not in (tmp_path / "out.pt").read_bytes()
    assert found["last_optimizer_state"] is None


def test_a_section_that_is_there_and_empty_is_left_out(tmp_path: Path) -> None:
    (path,) = several(tmp_path, {"w": torch.ones(1)}, cfg={"model": {"_name": "x"}, "task": None})
    checkpoints.export(path, tmp_path / "out.pt")
    assert torch.load(tmp_path / "out.pt", weights_only=True)["cfg"] == {"model": {"_name": "x"}}


def test_a_mask_of_minus_infinity_has_a_half_precision(tmp_path: Path) -> None:
    (path,) = several(tmp_path, {"mask": torch.tensor([0.0, -torch.inf])})
    checkpoints.export(path, tmp_path / "out.pt", half=True)
    assert torch.load(tmp_path / "out.pt", weights_only=True)["model"]["mask"].tolist() == [0.0, -torch.inf]
