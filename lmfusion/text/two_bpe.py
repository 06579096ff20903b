"""``--bpe lmfusion``: one subword segmentation for the source, another one for the target.

fairseq takes one BPE, by which it encodes sources and decodes targets. A side whose language model comes from Hugging
Face has that model's pieces, the other one keeps its own. A checkpoint holds both as one file.
"""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
import base64
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional, Union

from fairseq.data.encoders import register_bpe
from fairseq.data.encoders.sentencepiece_bpe import SentencepieceBPE
from fairseq.dataclass import FairseqDataclass

from lmfusion.errors import InputError
from lmfusion.text.huggingface import PieceTokenizer
from lmfusion.text.model_pieces import read_pieces
from lmfusion.text.tokenize_text import tokenizer_flags
from lmfusion.text.tokenizer import MonolingualMosesConfig, MonolingualMosesTokenizer

FORMS = "hf:FOLDER (the tokenizer of a Hugging Face model), pieces:FILE (the same, as lmfusion data keeps it) or "
FORMS += "sentencepiece:FILE"
MOSES = "language of the Moses tokenizer before the {}'s segmentation, with the settings of data preparation"

Segmentation = Union[PieceTokenizer, SentencepieceBPE, None]


@dataclass
class TwoBPEConfig(FairseqDataclass):
    """Flags of ``--bpe lmfusion``; a side without one has words, or is split already."""

    src_bpe: Optional[str] = field(default=None, metadata={"help": f"segmentation of the source: {FORMS}"})
    tgt_bpe: Optional[str] = field(default=None, metadata={"help": f"segmentation of the target: {FORMS}"})
    src_moses: Optional[str] = field(default=None, metadata={"help": MOSES.format("source")})
    tgt_moses: Optional[str] = field(default=None, metadata={"help": MOSES.format("target")})
    bpe_pair: Optional[str] = field(default=None, metadata={"help": "file of both, as checkpoints hold it; do not set"})


@register_bpe("lmfusion", dataclass=TwoBPEConfig)
class TwoBPE:
    """A pair of segmentations: the source's for encoding, the target's for decoding.

    Args:
        cfg: the flags.

    Raises:
        InputError: if one names no segmentation, or the target's cannot give capitals back.
    """

    def __init__(self, cfg: TwoBPEConfig) -> None:
        kept = json.loads(Path(cfg.bpe_pair).read_text(encoding="utf-8")) if cfg.bpe_pair else {}
        self.source = _named(cfg.src_bpe, "--src-bpe") or _unpacked(kept.get("src"))
        self.target = _named(cfg.tgt_bpe, "--tgt-bpe") or _unpacked(kept.get("tgt"))
        self.source_words = _moses(cfg.src_moses, "--src-moses", self.source)
        self.target_words = _moses(cfg.tgt_moses, "--tgt-moses", self.target)
        if isinstance(self.target, PieceTokenizer) and not self.target.keeps_case:
            raise InputError(
                f"--tgt-bpe {cfg.tgt_bpe}: this tokenizer turns capitals into small letters, which a target cannot get "
                f"back: give a model that keeps case (cased)."
            )

    def encode(self, text: str) -> str:
        """Turn a source sentence into symbols with spaces between."""
        text = text if self.source_words is None else self.source_words.encode(text)
        if self.source is None:
            return text
        found = self.source.encode(text)
        return " ".join(found) if isinstance(self.source, PieceTokenizer) else str(found)

    def decode(self, symbols: str) -> str:
        """Turn a target's symbols into text."""
        text = symbols
        if self.target is not None:
            text = str(self.target.decode(symbols.split() if isinstance(self.target, PieceTokenizer) else symbols))
        return text if self.target_words is None else str(self.target_words.decode(text))


def pack_pair(src_bpe: Optional[str], tgt_bpe: Optional[str]) -> bytes:
    """Return the content of the file that a checkpoint holds of both segmentations.

    Raises:
        InputError: if one names no segmentation.
    """
    return json.dumps({"src": _packed(src_bpe, "--src-bpe"), "tgt": _packed(tgt_bpe, "--tgt-bpe")}).encode()


def _packed(given: Optional[str], flag: str) -> Optional[dict[str, Any]]:
    found = _named(given, flag)
    if isinstance(found, PieceTokenizer):
        return found.to_values()
    return None if found is None else {"sentencepiece": base64.b64encode(found.sp.serialized_model_proto()).decode()}


def _unpacked(kept: Optional[dict[str, Any]]) -> Segmentation:
    if kept is None:
        return None
    if "tokenizer" in kept:
        return PieceTokenizer.from_values(kept)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spm.model"
        path.write_bytes(base64.b64decode(kept["sentencepiece"]))
        return _sentencepiece(str(path))


def _named(given: Optional[str], flag: str) -> Segmentation:
    """Return what a flag names, read from its file or folder; None where it is not given."""
    if given is None:
        return None
    kind, _, path = given.partition(":")
    if kind == "hf" and path:
        return PieceTokenizer.from_folder(path)
    if kind == "pieces" and path:
        return read_pieces(path)
    if kind == "sentencepiece" and path:
        try:
            return _sentencepiece(path)
        except (OSError, RuntimeError) as error:
            raise InputError(f"{flag} {given}: no model of sentencepiece can be read there ({error}).") from error
    raise InputError(f"{flag} {given}: give {FORMS}.")


def _moses(language: Optional[str], flag: str, segmentation: Segmentation) -> Optional[MonolingualMosesTokenizer]:
    """Return the tokenizer of a side, or None where its segmentation takes raw text."""
    if not language:
        return None
    if isinstance(segmentation, PieceTokenizer):
        raise InputError(f"{flag} {language}: the tokenizer of a Hugging Face model takes raw text; leave it out.")
    words = tokenizer_flags()
    flags = {name: f"--{name.replace('_', '-')}" in words for name in ("moses_no_dash_splits", "moses_no_escape")}
    return MonolingualMosesTokenizer(MonolingualMosesConfig(moses_lang=language, **flags))


def _sentencepiece(path: str) -> SentencepieceBPE:
    flags = {"sentencepiece_enable_sampling": False, "sentencepiece_alpha": None}
    return SentencepieceBPE(SimpleNamespace(sentencepiece_model=path, **flags))
