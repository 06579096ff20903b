"""A trained model as a Python object that translates."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, hub_utils
from fairseq.utils import split_paths
from omegaconf.errors import OmegaConfBaseException
from torch import Tensor

from lmfusion.checkpoint.reading import model_config, read_checkpoint
from lmfusion.errors import InputError
from lmfusion.lm.transformer.base import check_beam

CHECKPOINTS = ("checkpoint_best.pt", "checkpoint_last.pt")
_ODD_CONTENT = (
    *(TypeError, ValueError, LookupError, AttributeError, AssertionError, ArithmeticError, RuntimeError, OSError),
    ImportError,
    OmegaConfBaseException,
)
"""Exceptions that fairseq raises at a configuration with values of the wrong types."""


class Translator(hub_utils.GeneratorHubInterface):
    """A loaded model that translates: fairseq's hub interface, with sources cut as in training (--truncate-source)."""

    def encode(self, sentence: str) -> Tensor:
        """Encode text as token ids that end in </s>.

        Args:
            sentence: raw text; it is tokenized and segmented as in training.

        Returns:
            T ids.

        Raises:
            InputError: if the sentence is longer than the model takes and was not to be cut.
        """
        tokens: Tensor = super().encode(sentence)
        limit = self.max_positions[0]
        if len(tokens) <= limit:
            return tokens
        if self.task.cfg.truncate_source:
            return torch.cat([tokens[: limit - 1], tokens[-1:]])
        raise InputError(
            f"a sentence of {len(tokens)} tokens is longer than the {limit} the model takes: cut or split it "
            f"({sentence[:60]}…)."
        )

    def generate(self, tokenized_sentences: Any, beam: int = 5, *args: Any, **kwargs: Any) -> Any:
        """Return the hypotheses of each sentence, best first; an empty list without sentences.

        Args:
            tokenized_sentences: token ids of each sentence (T), or of one.
            beam: number of hypotheses, 1 or more.
            *args: further arguments of fairseq's method.
            **kwargs: settings of the search (``lenpen=0.6``).

        Raises:
            InputError: if ``beam`` is below 1.
        """
        check_beam(beam)
        if not len(tokenized_sentences):
            return []
        return super().generate(tokenized_sentences, beam, *args, **kwargs)


def load_model(path: str | Path, **overrides: Any) -> Translator:
    """Load a sequence-to-sequence model: ``load_model(path).translate(["A sentence."], beam=5)``.

    Tokenizer and BPE are those the model was trained with (``--tokenizer``, ``--bpe`` of fairseq-train). The
    language models inside come from the checkpoint; their own files are not needed.

    Args:
        path: a checkpoint, or a folder with ``checkpoint_best.pt`` or ``checkpoint_last.pt`` in it.
        overrides: configuration values to replace, e.g. ``data="folder/with/dictionaries"`` or
            ``sentencepiece_model="spm.model"`` where these have moved.

    Returns:
        The model in evaluation mode, with fairseq's methods (``translate``, ``score``, ``sample``).

    Raises:
        InputError: if there is no checkpoint there, it cannot be read or is no such model, or its dictionaries are
            not where they were.
    """
    checkpoint = _checkpoint(Path(path))
    state = read_checkpoint(checkpoint)
    config = model_config(checkpoint, state)
    if "encoder_layers" not in config:
        raise InputError(f"{checkpoint} is no sequence-to-sequence model: load a language model with lmfusion.load_lm.")
    with _as_input_error(checkpoint):
        return _build(checkpoint, state["cfg"]["task"], overrides)


@contextmanager
def _as_input_error(checkpoint: Path) -> Iterator[None]:
    """Turn fairseq's exceptions at a checkpoint's configuration or weights into one error that names the checkpoint."""
    try:
        yield
    except InputError:
        raise
    except _ODD_CONTENT as error:
        text = " ".join(str(error).split())[:500].rstrip(".")
        raise InputError(f"{checkpoint} cannot be loaded as a model: {type(error).__name__}: {text}.") from error


def _build(checkpoint: Path, task: dict[str, Any], overrides: dict[str, Any]) -> Translator:
    folders = split_paths(str(overrides.pop("data", None) or task["data"]))
    for side in ("source", "target"):
        language = overrides.get(f"{side}_lang") or task[f"{side}_lang"]
        dictionary = Path(folders[0]) / f"dict.{language}.txt"
        if not dictionary.is_file():
            raise InputError(
                f"{dictionary} does not exist, and without its dictionaries a model cannot read or write text: give "
                f'the folder that fairseq-preprocess made, load_model(..., data="…").'
            )
    data = os.pathsep.join(str(Path(folder).resolve()) for folder in folders)
    models, cfg, task_object = checkpoint_utils.load_model_ensemble_and_task(
        [str(checkpoint)], arg_overrides={"data": data, **overrides}
    )
    return Translator(cfg, task_object, models)


def _checkpoint(path: Path) -> Path:
    if not path.is_dir():
        return path
    for name in CHECKPOINTS:
        if (path / name).is_file():
            return path / name
    raise InputError(f"{path} holds neither {' nor '.join(CHECKPOINTS)}: give the path of a checkpoint.")
