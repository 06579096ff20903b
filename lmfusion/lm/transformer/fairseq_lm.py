"""The common parts of language models that fairseq-train trains: embedding, softmax, limits, the dictionary inside."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from torch import Tensor, nn

from lmfusion.checkpoint.files import is_checkpoint
from lmfusion.errors import InputError
from lmfusion.lm.interface import Head, PretrainedLM
from lmfusion.lm.symbols import dictionary_of
from lmfusion.lm.transformer.config import complete_config
from lmfusion.lm.transformer.encoder import EncoderEmbedding
from lmfusion.lm.transformer.layers import TokenEmbedding
from lmfusion.lm.transformer.layout import RowLayout
from lmfusion.lm.transformer.reading import lm_architecture, read_lm

# A layer's number in the name of a weight: of one of two towers, of the only one.
_LAYER = re.compile(r"(?:forward_|backward_)?layers\.(\d+)\.")


class FairseqLM(PretrainedLM):
    """A language model with embedding and softmax around one or two towers; a mixin of fairseq's decoders.

    Args:
        config: plain values of the flags in ``Config``.
        dictionary: of the text.

    Raises:
        InputError: if sizes contradict each other, or the dictionary is not used as a whole.
    """

    embed: TokenEmbedding | EncoderEmbedding
    architecture: ClassVar[str]
    """The name of the fairseq model by which it is trained."""
    structure: ClassVar[tuple[str, ...]] = ()
    """Keys of ``config`` that are no flags of the fairseq model."""

    def __init__(self, config: dict[str, Any], dictionary: Dictionary) -> None:
        raise TypeError(f"{type(self).__name__} does not make the module and build the common parts by itself")

    @classmethod
    def can_read(cls, path: Path) -> bool:
        """Return True if ``path`` is a checkpoint of this family's fairseq model."""
        return is_checkpoint(path) and lm_architecture(path) == cls.architecture

    @classmethod
    def read(cls, path: Path, **overrides: Any) -> PretrainedLM:
        """Read a checkpoint of fairseq-train, of ``lmfusion export``, average or convert.

        Raises:
            InputError: if it is damaged or unsafe, or its weights are not those of the model it describes.
        """

        def build(model: dict[str, Any], task: dict[str, Any], symbols: list[str]) -> PretrainedLM:
            return cls.build(cls.described_by(model, task), symbols, **overrides)

        return read_lm(path, cls.Config, build)

    @classmethod
    def build(cls, config: dict[str, Any], symbols: list[str], **overrides: Any) -> PretrainedLM:
        """Build an untrained model; see :meth:`PretrainedLM.build`."""
        flags = complete_config(config, cls.Config, **overrides)
        return cls({**flags, **{name: config[name] for name in cls.structure}}, dictionary_of(symbols))

    @classmethod
    def layer_of(cls, name: str) -> int | None:
        """Return 0 for a weight of the embeddings, n for one of the n-th layer (of either tower), None above."""
        if name.startswith("embed."):
            return 0
        layer = _LAYER.match(name)
        return None if layer is None else 1 + int(layer[1])

    @classmethod
    def described_by(cls, model: dict[str, Any], task: dict[str, Any]) -> dict[str, Any]:
        """Return the config that a checkpoint's flags of model and task stand for."""
        return model

    def _adopt_sizes(self, config: dict[str, Any], dictionary: Dictionary) -> None:
        _check_sizes(config, dictionary)
        self._adopt(config, self.make_vocabulary(config, dictionary.symbols))
        self.embed_dim = config["decoder_embed_dim"]
        self.num_layers = config["decoder_layers"]

    def _build_ends(
        self, config: dict[str, Any], dictionary: Dictionary, *, learned_positions: bool, no_positions: bool
    ) -> None:
        self._adopt_sizes(config, dictionary)
        self.embed = TokenEmbedding(
            len(dictionary),
            self.embed_dim,
            self.padding_idx,
            unk_idx=dictionary.unk(),
            max_positions=self.row_limit,
            learned_positions=learned_positions,
            no_positions=no_positions,
            dropout=config["dropout"],
            input_dropout=config["input_dropout"],
        )
        self.output_weight: nn.Parameter | None = None
        if not config["share_decoder_input_output_embed"]:
            self.output_weight = nn.Parameter(torch.empty(len(dictionary), self.embed_dim))
            nn.init.normal_(self.output_weight, std=self.embed_dim**-0.5)

    @property
    def token_embedding(self) -> nn.Module:  # type: ignore[override]
        """Return the module with the token embeddings, V x C."""
        return self.embed.tokens

    @property
    def row_limit(self) -> int:
        """Return the length of the longest row: fairseq does not count the two ``</s>`` of a cloze sample."""
        return self.max_positions() + 2

    def max_positions(self) -> int:
        """Return the length of the longest sentence that the model takes, in tokens as fairseq counts them."""
        limit: int = self.config["max_target_positions"]
        return limit

    def check_length(self, length: int) -> None:
        """Refuse rows with more tokens than the model has positions.

        Raises:
            InputError: naming both lengths.
        """
        if length > self.row_limit:
            raise InputError(
                f"a sentence of {length} tokens is longer than the {self.max_positions()} positions "
                f"of the language model: shorten or drop it (fairseq: "
                f"--skip-invalid-size-inputs-valid-test, --max-source-positions), or pretrain with "
                f"a larger --tokens-per-sample."
            )

    def check_rows(self, layout: RowLayout) -> None:
        """Refuse sentences longer than the model has positions; a row may be longer by padding.

        Raises:
            InputError: naming both lengths.
        """
        if layout.padding.size(1) > self.row_limit:  # lengths on a GPU would have to be waited for
            self.check_length(int(layout.lengths.max()))

    def drop_softmax(self) -> None:
        """Drop the output embeddings, unless they are tied to the input embeddings; states do not change."""
        self.output_weight = None

    def logits(self, top: Tensor) -> Tensor:
        """Turn states before the softmax into logits: ... x C -> ... x V."""
        logits: Tensor = self.output_layer(top)
        return logits

    def output_layer(self, features: Tensor, head: Head = F.linear) -> Any:
        """Turn states before the softmax into logits, ... x C -> ... x V, or into what another head makes of them."""
        weight = self.embed.tokens.weight if self.output_weight is None else self.output_weight
        return head(features, weight)


def _check_sizes(config: dict[str, Any], dictionary: Dictionary) -> None:
    if config["decoder_layers"] < 1:
        raise InputError(f"--decoder-layers {config['decoder_layers']}: give 1 or more.")
    if config["decoder_embed_dim"] < 1:
        raise InputError(f"--decoder-embed-dim {config['decoder_embed_dim']}: give 1 or more.")
    if len(dictionary) != len(dictionary.symbols):
        raise InputError(
            f"--output-dictionary-size {len(dictionary)} leaves out symbols of the dictionary's "
            f"{len(dictionary.symbols)}, without which no other model could use the language model: leave it out."
        )
