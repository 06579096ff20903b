"""A vocabulary that brings the tokenizer of a Hugging Face model with it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.lm.vocabulary import EOS, Vocabulary
from lmfusion.text.huggingface import PieceTokenizer


class TokenizerVocabulary(Vocabulary):
    """Symbols of a Hugging Face model in the order of a fairseq dictionary, and the model's ids of them.

    Table and tokenizer travel in the state dict, as the symbols do.

    Args:
        symbols: in index order, fairseq's four first; see :mod:`lmfusion.text.huggingface`.
        opening: symbols that the tokenizer puts in front of a sentence.
        tokenizer_bytes: size of the tokenizer's file; 0: there is none, and text is symbols between white space.
        separators: closing symbols between the texts of a pair.

    Attributes:
        model_ids: V int64, the model's id of each symbol; one after another until they are set or loaded.
        tokenizer_file: the tokenizer's file, uint8.
    """

    takes_codec = False
    model_ids: Tensor
    tokenizer_file: Tensor

    def __init__(
        self, symbols: Sequence[str], *, opening: Sequence[str], tokenizer_bytes: int = 0, separators: int = 1
    ) -> None:
        super().__init__(symbols, opening=opening)
        self.separators = separators
        self.register_buffer("model_ids", torch.arange(len(self.symbols)))
        self.register_buffer("tokenizer_file", torch.zeros(tokenizer_bytes, dtype=torch.uint8))
        self._tokenizer: PieceTokenizer | None = None

    def adopt(self, tokenizer: PieceTokenizer) -> None:
        """Take over a tokenizer and its ids; it must be the one whose symbols these are."""
        file = bytearray(tokenizer.to_text().encode())
        self.model_ids = torch.tensor(tokenizer.ids, device=self.codes.device)
        self.tokenizer_file = torch.frombuffer(file, dtype=torch.uint8).clone().to(self.codes.device)
        self._tokenizer = None

    @property
    def tokenizer(self) -> PieceTokenizer | None:
        """Return the tokenizer, or None if there is none."""
        if self._tokenizer is None and self.tokenizer_file.numel():
            text = self.tokenizer_file.cpu().numpy().tobytes().decode(errors="replace")
            opening = [self.symbols[number] for number in self.opening]
            self._tokenizer = PieceTokenizer.from_text(text, self.symbols, self.model_ids.tolist(), opening)
        return self._tokenizer

    @property
    def keeps_case(self) -> bool:  # type: ignore[override]
        """Return False if the tokenizer turns capitals into small letters."""
        return self.tokenizer is None or self.tokenizer.keeps_case

    def to_model(self, tokens: Tensor) -> Tensor:
        """Turn ids of the dictionary (any shape) into the model's."""
        return self.model_ids[tokens]

    def is_padding(self, ids: Tensor) -> Tensor:
        """Tell where the model's ids, B x T of left-aligned rows, are padding.

        A model without a symbol for it has its end symbol there, and that of the row then counts as padding, too.
        """
        words = ids.ne(self.model_ids[self.padding_idx])
        return words.flip(1).cumsum(1).flip(1).eq(0)

    def encode(self, text: str) -> Tensor:
        """Turn text into framed ids of the dictionary, 1 x T.

        Raises:
            InputError: naming a symbol that is not known, where there is no tokenizer.
        """
        if self.tokenizer is None:
            return super().encode(text)
        found = [self.index[symbol] for symbol in [*self.tokenizer.encode(text), EOS]]
        return self.frame(torch.tensor([found])).tokens

    def decode(self, tokens: Tensor) -> str:
        """Turn ids of the dictionary (T, or 1 x T) back into text, without frame and padding.

        Raises:
            InputError: if an id is outside the vocabulary.
        """
        symbols = super().decode(tokens)
        return symbols if self.tokenizer is None else self.tokenizer.decode(symbols.split(" "))


def check_table(model_ids: Tensor, rows: int, what: str) -> None:
    """Refuse ids beyond the model's embeddings.

    Args:
        model_ids: of the symbols.
        rows: of the embedding matrix.
        what: name of the model, for the message.

    Raises:
        InputError: naming both sizes, or that an id is no number of a row.
    """
    if model_ids.numel() and not 0 <= int(model_ids.min()) <= int(model_ids.max()) < rows:
        raise InputError(
            f"{what}: its tokenizer has the id {int(model_ids.max()):,}, and its embeddings have {rows:,} rows: they "
            f"do not belong together, or resize_token_embeddings was not called."
        )
