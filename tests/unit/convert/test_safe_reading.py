"""Files that are cut, and pickles that ask for more than weights, plain values and one namespace."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from lmfusion.checkpoint.reading import read_file
from lmfusion.convert import Inputs, convert
from lmfusion.errors import InputError


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("is_zip", [True, False])
def test_truncated_file(make: ModuleType, cloze: Any, save: Any, refused: Any, part: float, is_zip: bool) -> None:
    path = Path(save(cloze, make.CLOZE))
    torch.save(read_file(Path(path)), path, _use_new_zipfile_serialization=is_zip)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(part * len(whole))])
    assert "released.pt" in refused(str(path))


@pytest.mark.parametrize("is_zip", [True, False], ids=["as saved today", "as saved in 2019"])
def test_whole_file_is_read_whichever_way_it_was_saved(
    make: ModuleType, cloze: Any, save: Any, dicts: dict[str, str], is_zip: bool
) -> None:
    path = save(cloze, make.CLOZE)
    torch.save(read_file(Path(path)), path, _use_new_zipfile_serialization=is_zip)
    assert convert(path, Inputs(dictionary=dicts["src"])).model is not None


class CreatesFolder:
    """Unpickled without care, it creates the folder it names."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("where", ["extra_state", "args"])
def test_anything_but_weights_and_a_namespace_is_refused_by_name(
    make: ModuleType, cloze: Any, save: Any, tmp_path: Path, refused: Any, where: str
) -> None:
    victim = tmp_path / "executed"
    args = {**make.CLOZE, "data": CreatesFolder(victim)} if where == "args" else make.CLOZE
    extra = {"extra_state": {"meter": CreatesFolder(victim)}} if where == "extra_state" else {}
    path = save(cloze, args, **extra)
    message = refused(path)
    assert "was not loaded: it asks to run posix.mkdir" in message
    assert not victim.exists()
    torch.load(path, weights_only=False)  # the attack is a real one
    assert victim.exists()


def test_running_averages_of_the_released_code_are_read_past_on_request(
    make: ModuleType, cloze: Any, save: Any, dicts: dict[str, str], refused: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("fairseq.meters")
    meter = type("AverageMeter", (), {"__module__": "fairseq.meters", "__qualname__": "AverageMeter"})
    module.AverageMeter = meter  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fairseq.meters", module)
    kept = meter()
    kept.avg = 3.5  # type: ignore[attr-defined]
    path = save(cloze, make.CLOZE, extra_state={"train_meters": {"loss": kept}})
    message = refused(path)
    assert "it asks to run fairseq.meters.AverageMeter" in message
    assert "--drop-meters reads past these, running nothing" in message
    converted = convert(path, Inputs(dictionary=dicts["src"], drop_meters=True))
    assert "train_meters" not in converted.checkpoint["extra_state"]
    args = {**make.SEQ2SEQ, "encoder_embed_path": "elmo:lm.pt", "elmo_affine": True}
    both = save(make.seq2seq(args, {"src": make.CLOZE}, {"src": 24, "tgt": 21}), args, "seq2seq.pt")
    for given in ({"lm": [path]}, {"lms": {"src": path}}):  # a file of the language model inside has them, too
        with pytest.raises(InputError, match="--drop-meters"):
            convert(both, Inputs(dictionaries=dicts, **given))
        assert convert(both, Inputs(dictionaries=dicts, drop_meters=True, **given)).model is not None
