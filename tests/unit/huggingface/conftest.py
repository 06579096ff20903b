"""Folders of Hugging Face models, made by tests/hf_models.py."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MODELS = runpy.run_path(str(Path(__file__).resolve().parents[2] / "hf_models.py"))


@pytest.fixture(scope="session")
def corpus() -> Callable[[str, int], list[str]]:
    """The first lines of the embedded corpus: ``corpus("de", 300)``."""
    return lambda language, count: list(MODELS["corpus_lines"](language, count))


@pytest.fixture(scope="session")
def saved_models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder by model type; each is made once: do not change what is in it."""
    made: dict[str, Path] = {}

    def saved(model_type: str) -> Path:
        if model_type not in made:
            made[model_type] = tmp_path_factory.mktemp(model_type)
            MODELS["save_model"](model_type, made[model_type])
        return made[model_type]

    return saved


@pytest.fixture
def make_folder(tmp_path: Path) -> Callable[..., Path]:
    """A folder of one's own: ``make_folder("bert", head="AutoModelForMaskedLM")``."""

    def make(model_type: str, **options: Any) -> Path:
        MODELS["save_model"](model_type, tmp_path / model_type, **options)
        return tmp_path / model_type

    return make
