"""The one interface through which everything else sees a pretrained language model, and the register of families.

Shape legend of the whole package
---------------------------------
``B`` batch, ``T`` time (positions of a padded batch), ``S`` source time, ``C`` channels of a model,
``C'`` channels of a layer state (2C where two towers are concatenated), ``H`` heads, ``D`` channels
of a head, ``V`` vocabulary, ``L`` number of layer states, ``N`` blocks of a tower.

Our own tensors are batch-first (``B x T x C``). What goes into fairseq's layers is
``T x B x C``; each reshape says so. Padding masks are ``B x T`` and True at padding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Callable, ClassVar, Optional, TypeVar

from torch import Tensor

from lmfusion.errors import UserError
from lmfusion.lm.freezing import Freezable
from lmfusion.lm.vocabulary import Vocabulary

IncrementalState = dict[str, dict[str, Optional[Tensor]]]

# What is done with states (... x C) and output embeddings (V x C): F.linear makes logits of them.
Head = Callable[[Tensor, Tensor], Any]

LAYERS, TOP = "layers", "top"
"""What can be asked of :meth:`PretrainedLM.states`."""


@dataclass
class LMStates:
    """What a language model says of a batch, as far as it was asked for.

    Attributes:
        layers: L tensors of B x T x C', lowest first; empty unless asked for.
        names: of these, one each.
        top: the state before the softmax, B x T x C; None unless asked for.
    """

    layers: list[Tensor] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    top: Tensor | None = None


class PretrainedLM(Freezable, ABC):
    """A language model as the fusion code sees it: states for tokens, never asking what they are for.

    A family is one subclass in one file, registered by :func:`register_lm`. It sets the attributes below, builds itself
    from ``config`` and a vocabulary, and implements :meth:`states`, :meth:`can_read` and :meth:`read`.

    Attributes:
        family: the name it is registered under.
        Config: dataclass of plain values from which an untrained copy is built.
        title: what people call it, for tables and messages.
        sees_future: whether a state depends on later tokens; a target side refuses such a model.
        incremental: whether it can continue from a decoding state; a target side needs that.
        by_symbol: whether a side's dictionary may be another one, looked up symbol by symbol.
        config: everything needed to build the same model again, as plain values.
        embed_dim: C, channels of the top state.
        state_dim: C', channels of every layer state.
        state_names: names of the L layer states, lowest first.
        num_layers: N, number of layers that can be frozen one by one.
        token_embedding: ids -> vectors, before scale, positions and norms.
    """

    family: ClassVar[str]
    Config: ClassVar[Any]
    title: ClassVar[str] = "language model"
    sees_future: ClassVar[bool]
    incremental: ClassVar[bool]
    by_symbol: ClassVar[bool] = False
    config: dict[str, Any]
    embed_dim: int
    state_dim: int
    state_names: list[str]
    num_layers: int = 0

    def __init__(self, config: Any, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._adopt(config, vocabulary)

    def _adopt(self, config: Any, vocabulary: Vocabulary) -> None:
        """Take over config and vocabulary; for families whose other base class makes the module."""
        self.config = dict(config) if isinstance(config, dict) else asdict(config)
        self.symbol_table = vocabulary  # under this name in checkpoints written so far

    @property
    def vocabulary(self) -> Vocabulary:
        """The model's symbols and what it expects around a sentence."""
        return self.symbol_table

    @classmethod
    def can_read(cls, path: Path) -> bool:
        """Return whether :meth:`read` is for what lies at ``path``; look at no more of it than that takes."""
        return False

    @classmethod
    def read(cls, path: Path, **overrides: Any) -> PretrainedLM:
        """Read a model with its weights from what :meth:`can_read` said yes to.

        Args:
            path: of a file or folder.
            overrides: config values to replace, e.g. ``dropout=0.3`` for fine-tuning.

        Raises:
            UserError: if it is damaged, unsafe or incomplete.
        """
        raise UserError(f"{path}: a model of the family {cls.family} is not read from files.")

    @classmethod
    def build(cls, config: dict[str, Any], symbols: list[str], **overrides: Any) -> PretrainedLM:
        """Build an untrained model; a checkpoint's weights come later.

        Args:
            config: as :attr:`config` of another one; what older files lack takes its default.
            symbols: the model's, in index order.
            overrides: config values to replace.
        """
        known = cls.Config.__dataclass_fields__
        values = {name: value for name, value in {**config, **overrides}.items() if name in known}
        return cls(cls.Config(**values), cls.make_vocabulary(config, symbols))

    @classmethod
    def make_vocabulary(cls, config: dict[str, Any], symbols: list[str]) -> Vocabulary:
        """Return the vocabulary of these symbols with the frame the family was trained with."""
        return Vocabulary(symbols)

    @classmethod
    def layer_of(cls, name: str) -> int | None:
        """Return the place of a weight (by its name in the state dict) in :meth:`modules_from_below`; None: in none."""
        return None

    @abstractmethod
    def states(
        self, tokens: Tensor, incremental_state: IncrementalState | None = None, *, want: AbstractSet[str]
    ) -> LMStates:
        """Compute what is wanted of a batch, in one pass.

        Args:
            tokens: B x T token indices of the model's vocabulary; padding may be on either side.
            incremental_state: fairseq's decoding state; ``tokens`` is then the whole prefix, without padding, and only
                states of positions not seen before are computed and returned.
            want: of :data:`LAYERS` and :data:`TOP`.

        Returns:
            States of B x T x C' and B x T x C (T_new with ``incremental_state``); unspecified at padding.

        Raises:
            UserError: if a row is longer than the model takes, or there is no single top state.
        """

    @abstractmethod
    def max_positions(self) -> int:
        """Return the longest sentence the model takes, in tokens as fairseq counts them (one ``</s>``)."""

    def layer_states(self, tokens: Tensor, incremental_state: IncrementalState | None = None) -> list[Tensor]:
        """Return the states of every layer, embeddings first: L x B x T x C'; arguments as of :meth:`states`."""
        return self.states(tokens, incremental_state, want={LAYERS}).layers

    def top_state(self, tokens: Tensor, incremental_state: IncrementalState | None = None) -> Tensor:
        """Return the state before the softmax, B x T x C; arguments as of :meth:`states`."""
        top = self.states(tokens, incremental_state, want={TOP}).top
        assert top is not None
        return top

    def logits(self, top: Tensor) -> Tensor:
        """Turn top states into logits: ... x C -> ... x V.

        Raises:
            UserError: if the family predicts nothing.
        """
        raise UserError(f"a {self.title} predicts no words.")

    def pool(self, states: Tensor, padding: Tensor) -> Tensor:
        """Make one vector of each row's states: the mean over its words.

        Args:
            states: B x T x C.
            padding: B x T, True at padding.

        Returns:
            B x C.
        """
        words = (~padding).unsqueeze(-1)
        return (states * words).sum(1) / words.sum(1).clamp(min=1)

    def encode(self, text: str) -> Tensor:
        """Turn a sentence into ids with the frame of the model's training: 1 x T; see :meth:`Vocabulary.encode`."""
        return self.vocabulary.encode(text)

    def decode(self, tokens: Tensor) -> str:
        """Turn ids (T, or 1 x T) back into text, without frame and padding."""
        return self.vocabulary.decode(tokens)

    @property
    def padding_idx(self) -> int:
        """Index of the padding symbol."""
        return self.vocabulary.padding_idx

    @property
    def symbols(self) -> list[str]:
        """The symbols in index order."""
        return self.vocabulary.symbols

    @property
    def num_states(self) -> int:
        """L, number of layer states."""
        return len(self.state_names)

    @property
    def dictionary_hash(self) -> str:
        """SHA-256 of the symbols."""
        return self.vocabulary.hash

    def check_top_state(self) -> None:
        """Refuse a model that has no single top state.

        Raises:
            UserError: naming what to use instead.
        """

    def drop_softmax(self) -> None:
        """Forget weights that only predictions need; representations do not change."""


Family = TypeVar("Family", bound=type[PretrainedLM])
FAMILIES: dict[str, type[PretrainedLM]] = {}
"""The registered families by name."""


def register_lm(name: str) -> Callable[[Family], Family]:
    """Register a subclass of :class:`PretrainedLM` under its name in checkpoints, flags and tables.

    Raises:
        UserError: if another class has that name already.
    """

    def register(family: Family) -> Family:
        known = FAMILIES.setdefault(name, family)
        if known is not family:
            raise UserError(f"the family {name} is registered twice, by {known.__module__} and {family.__module__}.")
        family.family = name
        return family

    return register
