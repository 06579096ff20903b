"""A language model's own BPE as a tokenizer of the package tokenizers."""

from __future__ import annotations

from typing import Any

import sentencepiece

from lmfusion.lm.vocabulary import EOS, UNK, Vocabulary

_SPACE = "\u2581"
_SYMBOLS = (
    "The model holds no BPE: the tokenizer takes symbols with spaces between them, as the training text was encoded."
)
_MOSES = (
    "Text has to be tokenized by Moses first, as in training: "
    "`sacremoses.MosesTokenizer({lang!r}).tokenize(text, aggressive_dash_splits={dashes}, escape={escape}, "
    "return_str=True)`."
)


def piece_tokenizer(vocabulary: Vocabulary) -> tuple[Any, str]:
    """Return a tokenizer that makes a language model's ids of text, with </s> in front, and what to do before it.

    sentencepiece and the package tokenizers agree on BPE; where they do not on a piece of the vocabulary (symbols that
    the user defined), the tokenizer takes symbols between spaces.

    Args:
        vocabulary: of the language model.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    kit = vocabulary.codec.kit if vocabulary.codec is not None else None
    tokenizer = None
    if kit is not None and kit.bpe.get("_name") == "sentencepiece":
        processor = sentencepiece.SentencePieceProcessor(model_proto=kit.bpe_file)
        made = _from_sentencepiece(processor, vocabulary)
        tokenizer = made if _agrees(made, processor) else None
    about = _about(kit.tokenizer) if kit is not None and tokenizer is not None else _SYMBOLS
    if tokenizer is None:
        tokenizer = Tokenizer(models.WordLevel(vocabulary.index, UNK))
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{EOS} $A", special_tokens=[(EOS, vocabulary.index[EOS])]
    )
    return tokenizer, about


def _about(moses: dict[str, Any]) -> str:
    if not moses:
        return "It takes plain text."
    dashes, escape = not moses.get("moses_no_dash_splits"), not moses.get("moses_no_escape")
    return _MOSES.format(lang=moses.get("moses_lang", "en"), dashes=dashes, escape=escape)


def _from_sentencepiece(processor: sentencepiece.SentencePieceProcessor, vocabulary: Vocabulary) -> Any:
    """Return the tokenizer with the merges that a BPE of sentencepiece stands for, pieces of lower number first."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    order = {processor.id_to_piece(number): number for number in range(processor.get_piece_size())}
    merges = [
        (number, piece[:place], piece[place:])
        for piece, number in order.items()
        for place in range(1, len(piece))
        if piece[:place] in order and piece[place:] in order
    ]
    pairs = [(left, right) for _, left, right in sorted(merges, key=lambda merge: merge[0])]
    known = {piece for pair in pairs for piece in (*pair, "".join(pair))}
    model = models.BPE(
        {**vocabulary.index, **dict.fromkeys(known - set(vocabulary.index), vocabulary.index[UNK])},
        pairs, unk_token=UNK, fuse_unk=True,
    )  # fmt: skip
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(_SPACE, prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(_SPACE, prepend_scheme="always")
    return tokenizer


def _agrees(tokenizer: Any, processor: sentencepiece.SentencePieceProcessor) -> bool:
    """Return True if both split the text of every piece, and of every two neighbours, in the same way."""
    pieces = [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
    plain = [piece.replace(_SPACE, " ") for number, piece in enumerate(pieces) if not processor.is_control(number)]
    known = tokenizer.get_vocab()
    texts = [*plain, *(first + second for first, second in zip(plain, plain[1:]))]
    return all(
        [symbol for symbol in tokenizer.encode(text, add_special_tokens=False).tokens if symbol != UNK]
        == [symbol for symbol in processor.encode(text, out_type=str) if symbol in known]
        for text in texts
    )
