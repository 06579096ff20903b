"""Moses tokenization of one language, for sides that are not named by languages (description -> synopsis).

fairseq's own ``--tokenizer moses`` takes ``--source-lang`` and ``--target-lang`` for languages. Told "description", it
splits "don't" as no English text is split, and an English language model meets tokens it never saw.
"""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
from dataclasses import dataclass, field
from types import SimpleNamespace

from fairseq.data.encoders import register_bpe, register_tokenizer
from fairseq.data.encoders.moses_tokenizer import MosesTokenizer
from fairseq.dataclass import FairseqDataclass


@dataclass
class MonolingualMosesConfig(FairseqDataclass):
    """Flags of ``--tokenizer moses_monolingual``: a language, and the two flags of fairseq's ``moses``."""

    moses_lang: str = field(default="en", metadata={"help": "language of both sides"})
    moses_no_dash_splits: bool = field(default=False, metadata={"help": "do not split at dashes within words"})
    moses_no_escape: bool = field(default=False, metadata={"help": "leave quotes, & and the like as they are"})


@register_tokenizer("moses_monolingual", dataclass=MonolingualMosesConfig)
class MonolingualMosesTokenizer(MosesTokenizer):
    """A Moses tokenizer, fairseq's, that takes the same language for both sides."""

    def __init__(self, cfg: MonolingualMosesConfig) -> None:
        flags = {"moses_no_dash_splits": cfg.moses_no_dash_splits, "moses_no_escape": cfg.moses_no_escape}
        super().__init__(SimpleNamespace(source_lang=cfg.moses_lang, target_lang=cfg.moses_lang, **flags))


@dataclass
class NoBPEConfig(FairseqDataclass):
    """Flags of ``--bpe none``: it has none."""


@register_bpe("none", dataclass=NoBPEConfig)
class NoBPE:
    """Text that is encoded already: ``--bpe none`` keeps a checkpoint's own BPE from being used."""

    def __init__(self, cfg: object) -> None:
        pass

    def encode(self, x: str) -> str:
        """Return ``x`` as it is."""
        return x

    def decode(self, x: str) -> str:
        """Return ``x`` as it is."""
        return x
