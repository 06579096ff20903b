"""What is made of checkpoints for passing on does not take the place of one."""

from __future__ import annotations

from pathlib import Path

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
