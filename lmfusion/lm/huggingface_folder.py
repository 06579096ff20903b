"""Read a model of Hugging Face from the folder that ``save_pretrained`` or ``hf download`` wrote."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from torch import Tensor

from lmfusion.checkpoint.reading import DAMAGE, first_line
from lmfusion.errors import InputError
from lmfusion.lm.huggingface_models import encoder_of, kind_of, settings_of, without_decoder
from lmfusion.text.import_transformers import import_transformers, quiet
from lmfusion.text.json_text import parse
from lmfusion.text.model_settings import read_settings

LAYER = re.compile(r"(?:^|\.)(?:block|layer|layers|h)\.(\d+)\.")
"""A layer's number in the name of a weight of transformers."""
_LICENCE = re.compile(r"^license:\s*[\"']?([\w.+-]+)", re.MULTILINE)


def model_type(path: Path) -> str | None:
    """Return the model type that a folder's config.json names; None if it is no folder of Hugging Face.

    Raises:
        InputError: if the config.json cannot be read.
    """
    if not (path / "config.json").is_file():
        return None
    name = read_settings(path).get("model_type")
    return name if isinstance(name, str) else ""


def licence(path: Path) -> str:
    """Return the licence that the model card in a folder names, or "unknown"."""
    card = path / "README.md"
    head = card.read_text(encoding="utf-8", errors="replace").split("\n---", 1)[0] if card.is_file() else ""
    named = _LICENCE.search(head) if head.startswith("---") else None
    return named[1] if named else "unknown"


def read_weights(path: Path, name: str, head: str = "") -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read a model's settings and weights; no code in the folder is run, and nothing is fetched.

    Args:
        path: of the folder.
        name: its model type.
        head: of the weights, as in transformers' ``AutoModelForPreTraining``; none by default, and no pooler.

    Returns:
        The settings (:func:`~.huggingface_models.settings_of`), and float32 tensors by name.

    Raises:
        InputError: if it is of another kind, or its weights are missing, damaged, or not those of its settings.
    """
    kind, transformers = kind_of(name), import_transformers()
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    if (path / "adapter_config.json").is_file():
        raise InputError(f"{path} holds an adapter: merge it into its model (merge_and_unload) and save that.")
    read_settings(path)
    _check_shards(path)
    local = {"local_files_only": True, "trust_remote_code": False}
    more = {"add_pooling_layer": False} if kind.has_pooler and not head else {}
    try:
        with quiet(transformers):
            config = transformers.AutoConfig.from_pretrained(str(path), **local)
            settings = settings_of(path, config)
            model, report = getattr(transformers, f"AutoModel{head}").from_pretrained(
                *(str(path),), config=without_decoder(config, kind), use_safetensors=True, output_loading_info=True,
                dtype="float32", attn_implementation="eager", **local, **more
            )  # fmt: skip
    except (SafetensorError, StrictDataclassError, *DAMAGE, ArithmeticError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} cannot be read ({first_line(error)}). Its weights have to be a model.safetensors: "
            f"load the model by transformers and save_pretrained it, or download it again."
        ) from error
    _check(path, report, left_out="decoder." if kind.decoder_layers else None)
    return settings, encoder_of(model, kind).state_dict()


def _check_shards(path: Path) -> None:
    """Refuse an index of weights that names files outside the folder, whose weights would be taken for the model's."""
    for index in path.glob("*.index.json"):
        try:
            shards = parse(index.read_text(encoding="utf-8"))["weight_map"].values()
            outside = [str(name) for name in shards if Path(name).name != name]
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise InputError(f"{index} is damaged ({first_line(error)}): download it again.") from error
        if outside:
            raise InputError(f"{index} names a file outside its folder, {outside[0]}: nothing of it is read.")


def _check(path: Path, report: dict[str, Any], left_out: str | None) -> None:
    """Refuse weights that transformers would fill at random or leave out, with no more than a report."""
    keys = {
        what: [key for key in found if left_out is None or not str(key).startswith(left_out)]
        for what, found in report.items()
        if what.endswith("_keys")
    }
    report = {**report, **keys}
    missing = sorted(report["missing_keys"])
    # Weights of heads are expected to be left over; those of further layers are not.
    further = sorted(key for key in report["unexpected_keys"] if LAYER.search(key))
    wrong = sorted(str(entry) for entry in report["mismatched_keys"])
    for what, names in (("lacks", missing), ("has more layers than its config.json says,", further)):
        if names:
            raise InputError(f"{path} {what} {len(names)} weights: {', '.join(names[:5])} … Download it again.")
    if wrong or report["error_msgs"]:
        raise InputError(f"{path}: weights of other shapes than its config.json says: {'; '.join(wrong)[:500]}.")
