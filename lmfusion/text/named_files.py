"""What a checkpoint names that does not hold it: dictionaries, and files of BPE and tokenizer; none may be fetched."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from fairseq.data.data_utils import infer_language_pair
from fairseq.utils import split_paths
from omegaconf import DictConfig

from lmfusion.errors import InputError

_SCHEMES = ("http", "https", "s3")
"""What fairseq takes for addresses on the net, also without slashes."""
_FETCHED = {"gpt2": ("gpt2_encoder_json", "gpt2_vocab_bpe"), "bert": ("bpe_vocab_file",)}
"""Kinds of BPE that fairseq fetches by default, and the values that name their files."""


def refuse_addresses(section: str, values: Any, given: Mapping[str, Any]) -> None:
    """Refuse a checkpoint's section whose files would be fetched.

    Args:
        section: ``bpe`` or ``tokenizer``.
        values: of the section, with its kind under ``_name``; None: there is none.
        given: values that the user gave.

    Raises:
        InputError: naming the value, and how to give the file.
    """
    if values is None:
        return
    if not isinstance(values, (Mapping, DictConfig)):
        raise InputError(f"its {section} is a {type(values).__name__}, where a configuration belongs.")
    found = {name: value for name, value in values.items() if name not in given}
    fetched = {name: "no file" for name in _FETCHED.get(str(found.get("_name")), ()) if not values.get(name)}
    fetched |= {name: value[:200] for name, value in found.items() if isinstance(value, str) and _is_address(value)}
    for name, value in fetched.items():
        raise InputError(
            f"its {section} names {value} as {name}, and nothing is fetched because a file says so: download it and "
            f'give its path, load_model(…, {name}="…").'
        )


def _is_address(value: str) -> bool:
    return "://" in value or urlparse(value).scheme in _SCHEMES


def given_bpe(cfg: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a sentencepiece model that is given where the checkpoint names no BPE.

    Args:
        cfg: the whole configuration.
        given: values that the user gave.
    """
    path = given.get("sentencepiece_model")
    if path is None or (cfg.bpe is not None and cfg.bpe.get("_name")):
        return {}
    return {"_name": "sentencepiece", "sentencepiece_enable_sampling": False, "sentencepiece_model": str(path)}


def languages_of(task: Mapping[str, Any], folder: str) -> tuple[str | None, str | None]:
    """Return source and target language of a translation task: as fairseq, by the data's names where not given.

    Args:
        task: its configuration.
        folder: with the dictionaries.
    """
    source, target = task.get("source_lang"), task.get("target_lang")
    if (source and target) or "target_lang" not in task or not Path(folder).is_dir():
        return source, target
    source, target = infer_language_pair(folder)
    return source, target


def data_folders(task: Mapping[str, Any], overrides: Mapping[str, Any]) -> str:
    """Return the data folders, of which the first has the dictionaries, as fairseq wants them.

    Args:
        task: its configuration in a checkpoint.
        overrides: values that the user gave.

    Raises:
        InputError: it has them not.
    """
    folders = split_paths(str(overrides.get("data") or task["data"]))
    given = {name: overrides.get(name) or task[name] for name in ("source_lang", "target_lang")}
    for language in languages_of(given, folders[0]):
        if language is None:
            raise InputError(
                f"the model does not say which languages it translates, and {folders[0]} has no data with their names: "
                f'give the folder that fairseq-preprocess made, load_model(..., data="…").'
            )
        dictionary = Path(folders[0]) / f"dict.{language}.txt"
        if not dictionary.is_file():
            raise InputError(
                f"{dictionary} does not exist, and without its dictionaries a model cannot read or write text: give "
                f'the folder that fairseq-preprocess made, load_model(..., data="…").'
            )
    return os.pathsep.join(str(Path(folder).resolve()) for folder in folders)
