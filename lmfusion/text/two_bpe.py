"""``--bpe lmfusion``: one subword segmentation for the source, another one for the target.

fairseq takes one BPE, by which it encodes sources and decodes targets. A side whose language model comes from Hugging
Face has that model's pieces, the other one keeps its own.
"""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Callable, Optional

from fairseq.data.encoders import register_bpe
from fairseq.data.encoders.sentencepiece_bpe import SentencepieceBPE
from fairseq.dataclass import FairseqDataclass

from lmfusion.errors import InputError
from lmfusion.text.huggingface import PieceTokenizer

FORMS = "hf:FOLDER (the tokenizer of a Hugging Face model) or sentencepiece:FILE"


@dataclass
class TwoBPEConfig(FairseqDataclass):
    """Flags of ``--bpe lmfusion``; a side without one has words, or is split already."""

    src_bpe: Optional[str] = field(default=None, metadata={"help": f"segmentation of the source: {FORMS}"})
    tgt_bpe: Optional[str] = field(default=None, metadata={"help": f"segmentation of the target: {FORMS}"})


@register_bpe("lmfusion", dataclass=TwoBPEConfig)
class TwoBPE:
    """A pair of segmentations: the source's for encoding, the target's for decoding.

    Args:
        cfg: the flags.

    Raises:
        InputError: if one names no segmentation, or the target's cannot give capitals back.
    """

    def __init__(self, cfg: TwoBPEConfig) -> None:
        self._encode = _source(cfg.src_bpe)
        self._decode = _target(cfg.tgt_bpe)

    def encode(self, text: str) -> str:
        """Turn a source sentence into symbols with spaces between."""
        return self._encode(text)

    def decode(self, symbols: str) -> str:
        """Turn a target's symbols into text."""
        return self._decode(symbols)


def _source(given: Optional[str]) -> Callable[[str], str]:
    found = _segmentation(given, "--src-bpe")
    if isinstance(found, PieceTokenizer):
        return lambda text: " ".join(found.encode(text))
    return str if found is None else found.encode


def _target(given: Optional[str]) -> Callable[[str], str]:
    found = _segmentation(given, "--tgt-bpe")
    if isinstance(found, PieceTokenizer):
        if not found.keeps_case:
            raise InputError(
                f"--tgt-bpe {given}: this tokenizer turns capitals into small letters, which a target cannot get back: "
                f"give a model that keeps case (cased)."
            )
        return lambda symbols: found.decode(symbols.split())
    return str if found is None else found.decode


def _segmentation(given: Optional[str], flag: str) -> Any:
    """Return what a flag names, read from its file or folder; None where it is not given."""
    if given is None:
        return None
    kind, _, path = given.partition(":")
    if kind == "hf" and path:
        return PieceTokenizer.from_folder(path)
    if kind == "sentencepiece" and path:
        try:
            return SentencepieceBPE(SimpleNamespace(
                sentencepiece_model=path, sentencepiece_enable_sampling=False, sentencepiece_alpha=None
            ))  # fmt: skip
        except (OSError, RuntimeError) as error:
            raise InputError(f"{flag} {given}: no model of sentencepiece can be read there ({error}).") from error
    raise InputError(f"{flag} {given}: give {FORMS}.")
