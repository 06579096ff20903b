"""A language model's own BPE as a tokenizer of the package tokenizers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sentencepiece

from lmfusion.lm.vocabulary import EOS, UNK, Vocabulary

_SPACE = "\u2581"
_NORMALIZER, _RULES = 3, 2
"""Numbers of fields: the normalization in the file of a sentencepiece model, and its rules, none where it has none."""
_SYMBOLS = "{why}: the tokenizer takes symbols with spaces between them, as the training text was encoded."
_NO_BPE, _OTHER_BPE = "The model holds no BPE", "The package tokenizers has no BPE that splits text as the model's does"
_MOSES = (
    "Text has to be tokenized by Moses first, as in training: "
    "`sacremoses.MosesTokenizer({lang!r}).tokenize(text, aggressive_dash_splits={dashes}, escape={escape}, "
    "return_str=True)`."
)


def piece_tokenizer(vocabulary: Vocabulary) -> tuple[Any, str]:
    """Return a tokenizer that makes a language model's ids of text, with </s> in front, and what to do before it.

    sentencepiece and the package tokenizers agree on BPE; where they do not on a piece of the vocabulary (symbols that
    the user defined, pieces that the dictionary lacks or that stand for bytes), or where sentencepiece normalizes text
    (as it does unless it is told not to), the tokenizer takes symbols between spaces.

    Args:
        vocabulary: of the language model.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    kit = vocabulary.codec.kit if vocabulary.codec is not None else None
    tokenizer = None
    if kit is not None and kit.bpe.get("_name") == "sentencepiece":
        processor = sentencepiece.SentencePieceProcessor(model_proto=kit.bpe_file)
        made = None if _normalizes(kit.bpe_file) else _from_sentencepiece(processor, vocabulary)
        tokenizer = made if made is not None and _agrees(made, processor) else None
    if kit is not None and tokenizer is not None:
        about = _about(kit.tokenizer)
    else:
        about = _SYMBOLS.format(why=_OTHER_BPE if kit is not None and kit.bpe else _NO_BPE)
        tokenizer = Tokenizer(models.WordLevel(vocabulary.index, UNK))
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{EOS} $A", special_tokens=[(EOS, vocabulary.index[EOS])]
    )
    return tokenizer, about


def _about(tokenizer: dict[str, Any]) -> str:
    kind = tokenizer.get("_name", "space")
    if kind == "space":
        return "It takes plain text."
    if kind == "nltk":
        return "Text has to be tokenized by NLTK first, as in training: `' '.join(nltk.tokenize.word_tokenize(text))`."
    dashes, escape = not tokenizer.get("moses_no_dash_splits"), not tokenizer.get("moses_no_escape")
    lang = tokenizer.get("moses_lang" if kind == "moses_monolingual" else "source_lang") or "en"
    return _MOSES.format(lang=lang, dashes=dashes, escape=escape)


def _from_sentencepiece(processor: sentencepiece.SentencePieceProcessor, vocabulary: Vocabulary) -> Any:
    """Return the tokenizer with the merges that a BPE of sentencepiece stands for, pieces of lower number first.

    None: a piece has no symbol, as where a dictionary holds those of its text alone; two pieces cannot have one id. Or
    it stands for a byte: of a character that is no piece such a model makes its bytes.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    order = {processor.id_to_piece(number): number for number in range(processor.get_piece_size())}
    merges = [
        (number, piece[:place], piece[place:])
        for piece, number in order.items()
        for place in range(1, len(piece))
        if piece[:place] in order and piece[place:] in order
    ]
    pairs = [(left, right) for _, left, right in sorted(merges, key=lambda merge: merge[0])]
    if any(piece not in vocabulary.index for pair in pairs for piece in (*pair, "".join(pair))):
        return None
    if any(map(processor.is_byte, order.values())):
        return None
    tokenizer = Tokenizer(models.BPE(vocabulary.index, pairs, unk_token=UNK, fuse_unk=True))
    spaces = [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Replace(Regex("^ | $"), "")]
    tokenizer.normalizer = normalizers.Sequence(spaces)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Metaspace(_SPACE, prepend_scheme="always"),
        pre_tokenizers.Split(Regex(r"\s"), "removed"),  # of another kind; fairseq divides pieces at them
    ])  # fmt: skip
    tokenizer.decoder = decoders.Metaspace(_SPACE, prepend_scheme="always")
    return tokenizer


def _agrees(tokenizer: Any, processor: sentencepiece.SentencePieceProcessor) -> bool:
    """Return True if both split the text of every piece, and of every two neighbours, in the same way."""
    plain = [processor.id_to_piece(number).replace(_SPACE, " ") for number in range(processor.get_piece_size())]
    known = tokenizer.get_vocab()
    texts = [*plain, *(first + second for first, second in zip(plain, plain[1:]))]
    return all(
        [symbol for symbol in tokenizer.encode(text, add_special_tokens=False).tokens if symbol != UNK]
        == [symbol for symbol in " ".join(processor.encode(text, out_type=str)).split() if symbol in known]
        for text in texts
    )


def _normalizes(model: bytes) -> bool:
    """Return True if a sentencepiece model changes text before it splits it, which no piece of its shows."""
    return any(rules for spec in _fields(model, _NORMALIZER) for rules in _fields(spec, _RULES))


def _fields(message: bytes, wanted: int) -> Iterator[bytes]:
    """Yield the contents of a field in a message of protocol buffers, for which sentencepiece needs no package."""
    place = 0

    def number() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place, value, shift = place + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while place < len(message):
        field, kind = divmod(number(), 8)
        if kind == 0:
            number()
            continue
        length = {1: 8, 5: 4}.get(kind) or number()
        if (field, kind) == (wanted, 2):
            yield message[place : place + length]
        place += length
