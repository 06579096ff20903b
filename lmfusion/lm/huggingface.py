"""The family ``huggingface``: encoders of transformers, from a local folder; and what decoders share with them.

transformers is imported when one is used.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmfusion.errors import InputError
from lmfusion.lm.huggingface_adapters import AdaptableLM
from lmfusion.lm.huggingface_config import DTYPES, HuggingFaceConfig
from lmfusion.lm.huggingface_file import is_file_of, read_file
from lmfusion.lm.huggingface_folder import LAYER, licence, model_type, read_weights
from lmfusion.lm.huggingface_models import KINDS, build_model, kind_of
from lmfusion.lm.huggingface_stack import bert_stack
from lmfusion.lm.huggingface_vocabulary import TokenizerVocabulary, check_table
from lmfusion.lm.interface import LAYERS, TOP, IncrementalState, LMStates, PretrainedLM, register_lm
from lmfusion.lm.stack import Stack
from lmfusion.lm.transformer.layout import layout_of
from lmfusion.lm.vocabulary import BOS, Vocabulary
from lmfusion.text.huggingface import PieceTokenizer
from lmfusion.text.import_transformers import import_transformers

_EMBEDDINGS = (
    *("embeddings", "embeddings_project", "wte", "wpe", "embed_tokens", "embed_in", "embed_positions"),
    "layernorm_embedding",
)
_STACKS = ("encoder.layer", "transformer.layer", "layers", "h", "block")
_ANY_LENGTH = 1 << 20
"""Positions of a model that has no table of them (T5)."""


class HuggingFaceLM(AdaptableLM):
    """A model of transformers without a head, and its tokenizer.

    Ids are those of a fairseq dictionary, in which the tokenizer's pieces stand behind fairseq's four symbols; a table
    in the vocabulary turns them into the model's. Rows are left-aligned before the model sees them, so that its own
    positions (0, 1, 2 …; RoBERTa's from behind the padding symbol) are right whatever the padding was.

    Args:
        config: see :class:`HuggingFaceConfig`.
        vocabulary: of the tokenizer.

    Raises:
        InputError: if the model type is none of this family, or the settings describe no model.
    """

    Config = HuggingFaceConfig
    reads_left_to_right: ClassVar[bool]

    def __init__(self, config: HuggingFaceConfig, vocabulary: Vocabulary) -> None:
        super().__init__(config, vocabulary)
        kind = kind_of(config.model_type)
        if kind.reads_left_to_right != self.reads_left_to_right:
            raise InputError(f"a {config.model_type} is no {type(self).title}: the checkpoint is damaged.")
        changes = {"dropout": config.dropout, "attention_dropout": config.attention_dropout}
        self.model: Any = build_model(config.model_type, config.settings, changes)
        if config.dtype not in DTYPES:
            raise InputError(f"a language model of the type {config.dtype}: give {', '.join(DTYPES)}.")
        about: Any = self.model.config
        self.num_layers = about.num_hidden_layers
        self.embed_dim = self.state_dim = about.hidden_size
        self.state_names = ["embedding", *(f"layer {number}" for number in range(1, self.num_layers + 1))]
        self.positions: int = getattr(about, "max_position_embeddings", _ANY_LENGTH)
        if kind.offset_positions:
            self.positions -= about.pad_token_id + 1
        # Rows without a mask have no padding. transformers would look for it, and warn of GPT-2's first symbol.
        about.pad_token_id = None
        self.to(DTYPES[config.dtype])
        self.build_adapters()
        self.register_load_state_dict_post_hook(_check_ids)
        self.title = (  # type: ignore[misc]
            f"{type(self).title} {config.model_type} ({self.num_layers} layers, licence {config.licence})"
        )

    @classmethod
    def can_read(cls, path: Path) -> bool:
        """Return True if ``path`` is a folder or file of this kind of model; one of no known kind is an encoder's."""
        if path.is_file():
            return is_file_of(path, cls.family)
        name = model_type(path)
        if name is None:
            return False
        return cls.reads_left_to_right == (name in KINDS and KINDS[name].reads_left_to_right)

    @classmethod
    def read(cls, path: Path, **overrides: Any) -> PretrainedLM:
        """Read config.json, model.safetensors and the tokenizer of a folder, or a file of :mod:`.huggingface_file`.

        Raises:
            InputError: if one of them is missing, damaged or unsupported, or the weights are incomplete.
        """
        rank = overrides.pop("lora", None)
        if path.is_file():
            lm = read_file(path, lambda config, symbols: cls.build(config, symbols, **overrides))
            assert isinstance(lm, HuggingFaceLM)
            return lm.adapted(rank)
        name = model_type(path)
        kind_of(name)
        settings, weights = read_weights(path, str(name))
        tokenizer = PieceTokenizer.from_folder(path)
        config = {
            "model_type": name,
            "settings": settings,
            "opening": list(tokenizer.opening),
            "tokenizer_bytes": len(tokenizer.to_text().encode()),
            "separators": tokenizer.separators,
            "licence": licence(path),
            "transformers": import_transformers().__version__,
        }
        lm = cls.build(config, tokenizer.symbols, **overrides)
        assert isinstance(lm, HuggingFaceLM)
        lm.config["segments"] = tokenizer.has_segments and getattr(lm.model.config, "type_vocab_size", 0) > 1
        lm.model.load_state_dict(
            {key: weight.to(DTYPES[lm.config["dtype"]]) for key, weight in weights.items()}, assign=True
        )
        lm.vocabulary.adopt(tokenizer)
        check_table(lm.vocabulary.model_ids, lm.token_embedding.num_embeddings, str(path))
        return lm.adapted(rank)

    @classmethod
    def make_vocabulary(cls, config: dict[str, Any], symbols: list[str]) -> Vocabulary:
        """Return a vocabulary with room for the model's ids and its tokenizer."""
        given = {"tokenizer_bytes": config.get("tokenizer_bytes", 0), "separators": config.get("separators", 1)}
        return TokenizerVocabulary(symbols, opening=config.get("opening", [BOS]), **given)

    @property
    def vocabulary(self) -> TokenizerVocabulary:
        """Return the model's symbols, its ids of them and its tokenizer."""
        assert isinstance(self.symbol_table, TokenizerVocabulary)
        return self.symbol_table

    @property
    def token_embedding(self) -> nn.Embedding:  # type: ignore[override]
        """Return the module with the token embeddings; its rows are in the model's own order."""
        embedding: nn.Embedding = self.model.get_input_embeddings()
        return embedding

    def modules_from_below(self) -> list[list[nn.Module]]:
        """Return the embeddings, then each layer: N + 1 lists."""
        modules = dict(self.model.named_modules())
        layers = next(modules[name] for name in _STACKS if name in modules)
        assert isinstance(layers, nn.ModuleList)
        return [[modules[name] for name in _EMBEDDINGS if name in modules], *([layer] for layer in layers)]

    @classmethod
    def layer_of(cls, name: str) -> int | None:
        """Return 0 for a weight of the embeddings, n for one of the n-th layer, None above."""
        layer = LAYER.search(name)
        if layer is not None:
            return 1 + int(layer[1])
        return 0 if name.removeprefix("model.").split(".")[0] in _EMBEDDINGS else None

    def max_positions(self) -> int:
        """Return the length of the longest sentence in tokens as fairseq counts them, less what stands in front."""
        return self.positions - len(self.vocabulary.opening)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Move or cast the model, but keep tables of rotary positions in float32, where they are no whole numbers.

        In half precision a position would be wrong by up to one in a thousand, one in a hundred in bfloat16.
        """
        tables = [(part, name, table) for part in self.model.modules() for name, table in part._buffers.items()
                  if name.endswith("inv_freq") and table is not None and table.dtype == torch.float32]  # fmt: skip
        super()._apply(fn, recurse)
        for part, name, table in tables:
            moved = part._buffers[name]
            if moved is not None and moved.dtype != table.dtype:
                part._buffers[name] = table.to(moved.device)
        return self

    def states(
        self, tokens: Tensor, incremental_state: IncrementalState | None = None, *, want: AbstractSet[str]
    ) -> LMStates:
        """Compute transformers' ``hidden_states`` (L x B x T x C) and ``last_hidden_state`` (B x T x C)."""
        layout = layout_of(tokens, self.padding_idx)
        rows, width = layout.align(tokens), tokens.size(1)
        if width > self.positions:
            longest = int(layout.lengths.max())
            self.check_length(longest)
            rows = rows[:, :longest]
        mask = (~layout.padding[:, : rows.size(1)]).long() if layout.has_padding else None
        found = self.model(
            input_ids=self.model_rows(rows),
            attention_mask=mask,
            output_hidden_states=LAYERS in want,
            **self._options(rows),
        )

        def restore(state: Tensor) -> Tensor:
            return layout.restore(F.pad(state, (0, 0, 0, width - state.size(1))))

        return self._wanted(found, want, restore)

    def _options(self, rows: Tensor) -> dict[str, Any]:
        """Return further arguments of the model for left-aligned rows of dictionary ids: a pair's segments, 0 and 1."""
        if not self.config["segments"]:
            return {}
        ends = rows.eq(self.vocabulary.closing).long()
        return {"token_type_ids": (ends.cumsum(1) - ends).clamp(max=1)}

    def _wanted(self, found: Any, want: AbstractSet[str], restore: Any = lambda state: state) -> LMStates:
        states = LMStates(top=restore(found.last_hidden_state) if TOP in want else None)
        if LAYERS in want:
            states.layers, states.names = [restore(state) for state in found.hidden_states], self.state_names
        return states

    def model_rows(self, rows: Tensor) -> Tensor:
        """Turn left-aligned rows of dictionary ids (B x T) into the model's ids."""
        return self.vocabulary.to_model(rows)

    def check_length(self, length: int) -> None:
        """Refuse rows with more tokens than the model has positions.

        Raises:
            InputError: naming both lengths.
        """
        if length > self.positions:
            raise InputError(
                f"a sentence of {length} tokens is longer than the {self.positions} positions of the language model: "
                f"shorten or drop it (fairseq: --max-source-positions, --skip-invalid-size-inputs-valid-test)."
            )


def _check_ids(module: nn.Module, keys: Any) -> None:
    """Refuse ids of a checkpoint that the embeddings have no row for."""
    assert isinstance(module, HuggingFaceLM)
    check_table(module.vocabulary.model_ids, module.token_embedding.num_embeddings, "the language model inside")


@register_lm("huggingface")
class HuggingFaceEncoder(HuggingFaceLM):
    """An encoder of transformers: BERT, RoBERTa, XLM-R, DeBERTa, ModernBERT and others of :data:`KINDS`."""

    title = "encoder of Hugging Face"
    sees_future = True
    incremental = False
    reads_left_to_right = False

    def stack(self) -> Stack:
        """Return the layers of an encoder that is built as BERT is; an :class:`InputError` of others."""
        return bert_stack(self.config["model_type"], self.model, self.vocabulary.model_ids, self.positions)
