"""Find the family that can read a path, and load a pretrained language model from it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# The families; one line each. Those of a user's own folder register themselves in the same way.
import lmfusion.lm.bert
import lmfusion.lm.causal
import lmfusion.lm.cloze
import lmfusion.lm.huggingface
import lmfusion.lm.huggingface_causal
import lmfusion.lm.recurrent
import lmfusion.lm.static  # noqa: F401
from lmfusion.checkpoint.files import is_checkpoint
from lmfusion.checkpoint.finding import checkpoint_of
from lmfusion.checkpoint.reading import DAMAGE, first_line, model_config, read_file
from lmfusion.errors import InputError, check_dropout
from lmfusion.lm.description import check_description
from lmfusion.lm.interface import FAMILIES, PretrainedLM
from lmfusion.lm.old_checkpoints import modern_lm
from lmfusion.lm.precision import single_precision
from lmfusion.lm.transformer.reading import lm_architecture
from lmfusion.lm.vector_files import BEGINNING
from lmfusion.text.codec import TextCodec, sentencepiece_codec
from lmfusion.text.huggingface import how_to_download

logger = logging.getLogger(__name__)


def load_lm(
    path: str | Path, *, bpe: str | Path | None = None, lang: str | None = None, **overrides: Any
) -> PretrainedLM:
    """Load a pretrained language model: frozen, in eval mode and float32, from this file or folder alone.

    ``load_lm("lm.pt").layer_states(lm.encode("A sentence."))``: a checkpoint that was trained with the flags --bpe and
    --tokenizer holds what makes its symbols of plain text.

    Args:
        path: a checkpoint of ``bi_transformer_lm`` or ``uni_transformer_lm``, the folder of the run that trained one, a
            file of word vectors, or what another registered family reads.
        bpe: sentencepiece model by which it encodes plain text, in place of its own; as its training text was encoded.
        lang: language of the Moses tokenizer that its training text went through, with data preparation's settings;
            None: the text was not tokenized. For ``bpe`` only.
        overrides: configuration values to replace, e.g. ``dropout=0.3`` for fine-tuning; None replaces nothing.

    Raises:
        InputError: if it is missing, damaged, unsafe, not a language model, or its weights are not those of the model
            it describes (all differences are listed by name).
    """
    path = checkpoint_of(Path(path)) or Path(path)
    family = _reader(path)
    if family is None:
        if not path.exists() and (advice := how_to_download(str(path))):
            raise InputError(f"{path} does not exist. {advice}")
        raise InputError(_unread(path))
    given = _given(overrides)
    _check_overrides(family, given)
    with single_precision():
        lm = _complete(family.read(path, **given))
    tensors = sum(1 for _ in lm.parameters())
    count = sum(parameter.numel() for parameter in lm.parameters())
    if bpe is not None or lang is not None:
        lm.vocabulary.codec = _codec(lm, bpe, lang)
    logger.info(f"loaded {tensors} tensors with {count:,} parameters from {path}")
    return lm.freeze()


def is_read(path: Path) -> bool:
    """Return True if a registered family reads a path."""
    return _reader(path) is not None


def _reader(path: Path) -> type[PretrainedLM] | None:
    """Return the family that reads a path, if there is one."""
    try:
        return next((family for family in FAMILIES.values() if path.exists() and family.can_read(path)), None)
    except InputError as error:  # torch saved it, and it is no checkpoint
        if path.is_file() and path.suffix != ".pt":
            raise InputError(f"{error} {_families_asked()}") from error
        raise


def _families_asked() -> str:
    return (
        f"No registered family of language models reads it (asked: {', '.join(sorted(FAMILIES))}); load one of your "
        f"own by giving its folder as --user-dir, or by importing it before load_lm."
    )


def _codec(lm: PretrainedLM, bpe: str | Path | None, lang: str | None) -> TextCodec:
    if bpe is None:
        raise InputError(f"lang={lang!r} is for bpe=FILE: give both, or neither where the model holds its tokenizer.")
    if not lm.vocabulary.takes_codec:
        raise InputError(f"bpe={str(bpe)!r}: a {lm.title} brings its own tokenizer; leave it out.")
    return sentencepiece_codec(bpe, lang)


def _unread(path: Path) -> str:
    """Describe a path that no registered family reads."""
    try:
        config = model_config(path, read_file(path, mmap=True))
        fault = f"{path} holds {lm_architecture(path)}, where a pretrained language model belongs."
        if "heads_config" in config:
            return f"{fault} It labels texts: lmfusion predict."
        if not {"encoder_layers", "prefix_lm"}.isdisjoint(config):
            return f"{fault} It is a sequence-to-sequence model: lmfusion.load_model loads it."
    except InputError as error:  # says what is wrong with it
        fault = str(error)
        if is_checkpoint(path) or not path.exists():
            return fault
    if not {".vec", ".bin", ".txt"}.isdisjoint(path.suffixes):
        fault += f" {BEGINNING}"
    return f"{fault} {_families_asked()}"


def _complete(lm: PretrainedLM) -> PretrainedLM:
    """Refuse a language model whose constructor has not set what the interface has no default for."""
    missing = [name for name in ("embed_dim", "state_dim", "state_names", "token_embedding") if not hasattr(lm, name)]
    if missing:
        raise InputError(
            f"{type(lm).__qualname__} (the family {lm.family}) does not set {', '.join(missing)} in its constructor: "
            f"every language model has to."
        )
    return lm


def _given(overrides: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in overrides.items() if value is not None}


def _check_overrides(family: type[PretrainedLM], overrides: dict[str, Any]) -> None:
    unknown = sorted(name for name in overrides if not _has(family, name))
    if unknown:
        raise InputError(f"a {family.title} ({family.family}) has no {', '.join(unknown)} to set: leave it out.")
    for name, value in overrides.items():
        if name.endswith("dropout"):
            check_dropout(value, f"{name}={value!r}")


def _has(family: type[PretrainedLM], name: str) -> bool:
    return name in family.Config.__dataclass_fields__


def describe(lm: PretrainedLM, served: Sequence[str] | None = None) -> dict[str, Any]:
    """Describe a language model by plain values from which :func:`build` makes an untrained copy.

    Args:
        lm: the language model.
        served: symbols of the dictionary that the description will be used with; None: the model's own.
    """
    own = served is None or list(served) == lm.symbols
    return {"family": lm.family, **lm.config, **({} if own else {"symbols": lm.symbols})}


def build(description: dict[str, Any], symbols: Sequence[str], **overrides: Any) -> PretrainedLM:
    """Build an untrained language model from its description.

    Args:
        description: from :func:`describe`; values that older files lack take their defaults.
        symbols: of the dictionary that the description was made for, in index order.
        overrides: values to replace, e.g. ``dropout=0.3``.

    Raises:
        InputError: if the family is not registered, has no such values, or none that go together.
    """
    description = modern_lm(description)
    name = description.pop("family", None)
    if not isinstance(name, str) or name not in FAMILIES:
        raise InputError(
            f"unknown language model family {name!r}; registered are {', '.join(sorted(FAMILIES))}. If it comes from a "
            f"folder of your own, give that folder as --user-dir."
        )
    given = _given(overrides)
    _check_overrides(FAMILIES[name], given)
    check_description("the language model inside", description)
    try:
        return _complete(FAMILIES[name].build(description, list(description.pop("symbols", symbols)), **given))
    except InputError:
        raise
    except (*DAMAGE, ArithmeticError) as error:
        raise InputError(f"what is said of the language model inside describes none ({first_line(error)}).") from error
