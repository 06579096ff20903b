"""The common parts of both transformer language models, and of the fairseq models that pretrain any."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

from fairseq.data import Dictionary
from fairseq.models import FairseqLanguageModel
from fairseq.tasks.translation import TranslationTask
from torch import Tensor
from typing_extensions import Self

from lmfusion.errors import InputError
from lmfusion.lm.precision import training_autocast
from lmfusion.lm.recomputation import recompute_layers
from lmfusion.lm.transformer.fairseq_lm import FairseqLM
from lmfusion.lm.transformer.layers import Block, TokenEmbedding, Tower


class TransformerLM(FairseqLM):
    """A transformer language model: one or two towers of blocks.

    Raises:
        InputError: if sizes contradict each other, or the dictionary is not used as a whole.
    """

    embed: TokenEmbedding

    def _build_common(self, config: dict[str, Any], dictionary: Dictionary) -> None:
        channels, heads = config["decoder_embed_dim"], config["decoder_attention_heads"]
        self._build_ends(
            config,
            dictionary,
            learned_positions=config["decoder_learned_pos"],
            no_positions=config["no_token_positional_embeddings"],
        )
        if heads < 1 or channels % heads:
            raise InputError(
                f"--decoder-attention-heads {heads} do not divide the {channels} channels of --decoder-embed-dim: give "
                f"a number that does."
            )

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


class TrainableLM(FairseqLanguageModel):
    """A fairseq model around a :class:`FairseqLM`, for pretraining it."""

    decoder: FairseqLM
    target_flags: ClassVar[tuple[str, ...]] = ()  # of fairseq-train, without which it cannot be pretrained
    takes_head = True  # lmfusion/training/criterions.py

    def follow(self, cfg: Any) -> Self:
        """Take over flags that are of training alone, and no part of the language model; return the model itself."""
        if cfg.checkpoint_activations:
            recompute_layers(self.decoder)
        return self

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


def check_lm_task(task: Any) -> None:
    """Refuse a task that gives a language model sentences of a source language, or targets that fairseq cannot make.

    Raises:
        InputError: naming what the model is for, or the flag.
    """
    if getattr(getattr(task, "args", None), "add_bos_token", False) and len(task.targets) > 1:
        raise InputError("--add-bos-token puts its symbol in front of one target: leave it out, or give one target.")
    if isinstance(task, TranslationTask):
        raise InputError(
            "this is a language model, which translates nothing: give the checkpoint of a translation model, or --task "
            "language_modeling. A language model joins a translation model by --src-lm, --tgt-lm or --lm-path."
        )


def check_beam(beam: Any) -> None:
    """Refuse a beam without a hypothesis.

    Raises:
        InputError: naming the value.
    """
    if not isinstance(beam, Integral) or isinstance(beam, bool) or beam < 1:
        said = repr(beam) if isinstance(beam, str) else beam
        raise InputError(f"--beam {said}: give the number of hypotheses, 1 or more.")
