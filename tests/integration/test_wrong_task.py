"""An architecture of lmfusion under a task that it is not for is refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY, BaseFairseqModel, FairseqEncoderDecoderModel

import lmfusion

lmfusion.install()
OURS = [arch for arch, model in ARCH_MODEL_REGISTRY.items() if model.__module__.startswith("lmfusion.")]
MODELS = sorted({ARCH_MODEL_NAME_REGISTRY[arch] for arch in OURS})


def translates(model: str) -> bool:
    kind: type[BaseFairseqModel] = ARCH_MODEL_REGISTRY[model]
    return issubclass(kind, FairseqEncoderDecoderModel)


@pytest.mark.parametrize("model", MODELS)
def test_the_task_is_named(commands: Any, tmp_path: Path, model: str) -> None:
    if translates(model):
        words = commands.pretraining("de", tmp_path / "run", 1, "--arch", model)
        start, end = words.index("--decoder-embed-dim"), words.index("--share-decoder-input-output-embed")
        words = [*words[:start], *words[end + 1 :]]
    else:
        words = commands.training(tmp_path / "run", 1, "--arch", model)
    assert "--task" in commands.refused(*words)
    assert [path for path in (tmp_path / "run").rglob("*") if path.name != ".lock"] == []
