"""The common parts of both language models: embedding, softmax, limits, the dictionary inside."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from fairseq.models import FairseqLanguageModel
from fairseq.tasks.translation import TranslationTask
from torch import Tensor, nn

from lmfusion.checkpoint.files import is_checkpoint
from lmfusion.errors import InputError
from lmfusion.lm.interface import Head, PretrainedLM
from lmfusion.lm.precision import training_autocast
from lmfusion.lm.transformer.config import complete_config
from lmfusion.lm.transformer.layers import Block, TokenEmbedding, Tower
from lmfusion.lm.transformer.layout import RowLayout
from lmfusion.lm.transformer.reading import lm_architecture, read_lm
from lmfusion.lm.vocabulary import dictionary_of

# A layer's number in the name of a weight: of one of two towers, of the only one.
_LAYER = re.compile(r"(?:forward_|backward_)?layers\.(\d+)\.")


class TransformerLM(PretrainedLM):
    """A transformer language model: embedding and softmax around one or two towers; a mixin of fairseq's decoders.

    Args:
        config: the plain values of :mod:`lmfusion.lm.transformer.config`.
        dictionary: of the text.

    Raises:
        InputError: if sizes contradict each other, or the dictionary is not used as a whole.
    """

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
        """Return the config that a checkpoint's flags stand for.

        Args:
            model: flags of the fairseq model by name.
            task: flags of the task it was trained with, by name.
        """
        return model

    def _build_common(self, config: dict[str, Any], dictionary: Dictionary) -> None:
        _check_sizes(config, dictionary)
        self._adopt(config, self.make_vocabulary(config, dictionary.symbols))
        self.embed_dim = config["decoder_embed_dim"]
        self.num_layers = config["decoder_layers"]
        # A sample may be two longer than fairseq's filter counts: both </s> of a cloze sample.
        self.sentence_limit: int = config["max_target_positions"]
        self.embed = TokenEmbedding(
            len(dictionary),
            self.embed_dim,
            self.padding_idx,
            unk_idx=dictionary.unk(),
            max_positions=self.sentence_limit + 2,
            learned_positions=config["decoder_learned_pos"],
            no_positions=config["no_token_positional_embeddings"],
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

    def _build_tower(self, bias_kv: str) -> Tower:
        config = self.config
        return Tower(
            Block(
                self.embed_dim,
                config["decoder_ffn_embed_dim"],
                config["decoder_attention_heads"],
                dropout=config["dropout"],
                attention_dropout=config["attention_dropout"],
                activation_dropout=config["activation_dropout"],
                bias_kv=bias_kv,
            )
            for _ in range(self.num_layers)
        )

    def max_positions(self) -> int:
        """Return the length of the longest sentence that the model takes, in tokens as fairseq counts them."""
        return self.sentence_limit

    def check_length(self, length: int) -> None:
        """Refuse rows with more tokens than the model has positions.

        Raises:
            InputError: naming both lengths.
        """
        if length > self.sentence_limit + 2:
            raise InputError(
                f"a sentence of {length} tokens is longer than the {self.sentence_limit} positions "
                f"of the language model: shorten or drop it (fairseq: "
                f"--skip-invalid-size-inputs-valid-test, --max-source-positions), or pretrain with "
                f"a larger --tokens-per-sample."
            )

    def check_rows(self, layout: RowLayout) -> None:
        """Refuse sentences longer than the model has positions; a row may be longer by padding.

        Raises:
            InputError: naming both lengths.
        """
        if layout.padding.size(1) > self.sentence_limit + 2:  # lengths on a GPU would have to be waited for
            self.check_length(int(layout.lengths.max()))

    def drop_softmax(self) -> None:
        """Drop the output embeddings, unless they are tied to the input embeddings; states do not change."""
        self.output_weight = None

    def logits(self, top: Tensor) -> Tensor:
        """Turn states before the softmax into logits: ... x C -> ... x V."""
        logits: Tensor = self.output_layer(top)
        return logits

    def output_layer(self, features: Tensor, head: Head = F.linear) -> Any:
        """Turn states before the softmax into logits, or into something else.

        Args:
            features: ... x C.
            head: function of the features and the output embeddings (V x C); ``F.linear`` makes logits, ... x V.
        """
        weight = self.embed.tokens.weight if self.output_weight is None else self.output_weight
        return head(features, weight)


def _check_sizes(config: dict[str, Any], dictionary: Dictionary) -> None:
    channels, heads = config["decoder_embed_dim"], config["decoder_attention_heads"]
    if config["decoder_layers"] < 1:
        raise InputError(f"--decoder-layers {config['decoder_layers']}: give 1 or more.")
    if channels < 1:
        raise InputError(f"--decoder-embed-dim {channels}: give 1 or more.")
    if heads < 1 or channels % heads:
        raise InputError(
            f"--decoder-attention-heads {heads} do not divide the {channels} channels of --decoder-embed-dim: give a "
            f"number that does."
        )
    if len(dictionary) != len(dictionary.symbols):
        raise InputError(
            f"--output-dictionary-size {len(dictionary)} leaves out symbols of the dictionary's "
            f"{len(dictionary.symbols)}, without which no other model could use the language model: leave it out."
        )


class TrainableLM(FairseqLanguageModel):
    """A fairseq model around a :class:`TransformerLM`, for pretraining it."""

    decoder: TransformerLM
    takes_head = True  # lmfusion/training/criterions.py

    def forward(self, src_tokens: Tensor, **kwargs: Any) -> Any:
        """Compute logits, or what a ``head`` makes; arguments are those of the decoder's ``forward``."""
        with training_autocast(self, self.decoder.config["cpu_bf16"]):
            return self.decoder(src_tokens, **kwargs)

    def prepare_for_inference_(self, cfg: Any) -> None:
        """Prepare for decoding, as fairseq does.

        Args:
            cfg: fairseq's whole configuration.

        Raises:
            InputError: if --beam is below 1.
        """
        check_beam(cfg.generation.beam)
        super().prepare_for_inference_(cfg)


def check_task(task: Any) -> None:
    """Refuse a task that gives a language model sentences of a source language.

    Raises:
        InputError: naming what the model is for.
    """
    if isinstance(task, TranslationTask):
        raise InputError(
            "this is a language model, which translates nothing: give the checkpoint of a translation model, or --task "
            "language_modeling. A language model joins a translation model by --src-lm, --tgt-lm or --lm-path."
        )


def check_beam(beam: int) -> None:
    """Refuse a beam without a hypothesis.

    Raises:
        InputError: naming the value.
    """
    if beam < 1:
        raise InputError(f"--beam {beam}: give the number of hypotheses, 1 or more.")
