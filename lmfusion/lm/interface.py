"""The one interface through which everything else sees a pretrained language model, and the register of families.

Shape legend of the whole package
---------------------------------
``B`` batch, ``T`` time (positions of a padded batch), ``S`` source time, ``C`` channels of a model, ``C'`` channels of
a layer state (2C where two towers are concatenated), ``H`` heads, ``D`` channels of a head, ``V`` vocabulary size,
``L`` number of layer states, ``N`` blocks of a tower.

Our own tensors are batch-first (``B x T x C``), those of fairseq's layers ``T x B x C``. Padding masks are ``B x T``
and True at padding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Callable, ClassVar, Optional, TypeVar

from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.lm.freezing import Freezable
from lmfusion.lm.pooling import Poolable
from lmfusion.lm.stack import Stack
from lmfusion.lm.vocabulary import Vocabulary
from lmfusion.registration import check_class

IncrementalState = dict[str, dict[str, Optional[Tensor]]]

# A function of states (... x C) and output embeddings (V x C), such as F.linear, which makes logits.
Head = Callable[[Tensor, Tensor], Any]
LAYERS, TOP = "layers", "top"  # what PretrainedLM.states can be asked for


@dataclass
class LMStates:
    """States of a batch in a language model, as far as they were asked for.

    Attributes:
        layers: L tensors of B x T x C', lowest first; empty unless asked for.
        names: of the layers, one each.
        top: the state before the softmax, B x T x C; None unless asked for.
    """

    layers: list[Tensor] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    top: Tensor | None = None


class PretrainedLM(Freezable, Poolable, ABC):
    """A pretrained language model as the fusion code sees it: a function from tokens to states.

    A family is one subclass in one file, registered by :func:`register_lm`. It sets the attributes below, builds itself
    from ``config`` and a vocabulary, and implements :meth:`states`, :meth:`max_positions`, :meth:`can_read` and
    :meth:`read`. The integration ``finetune`` trains all weights, buffers excepted, of any family: what must not be
    trained is a buffer.

    Attributes without a default, all but ``family`` to be set by the subclass (those marked * by its constructor):
        family: the name it is registered under.
        Config: dataclass of plain values from which an untrained copy is built.
        sees_future: True if a state depends on later tokens; a target side refuses such a model.
        incremental: True if it can continue from a decoding state; a target side needs that.
        embed_dim *: C, channels of the top state.
        state_dim *: C', channels of every layer state.
        state_names *: names of the L layer states, lowest first.
        token_embedding *: ids -> vectors, before scale, positions and norms.

    Attributes with a default:
        title: its name for people, in tables and messages.
        pooling: how :meth:`pool` makes one vector of a sentence's states.
        by_symbol: True if a side may have another dictionary, whose symbols are looked up one by one.
        ordered: True if states tell where in the sentence their tokens stand.
        config: everything needed to build the same model again, as plain values.
        num_layers: N, number of layers that can be frozen one by one.
    """

    family: ClassVar[str]
    Config: ClassVar[Any]
    title: ClassVar[str] = "language model"
    sees_future: ClassVar[bool]
    incremental: ClassVar[bool]
    by_symbol: ClassVar[bool] = False
    ordered: ClassVar[bool] = True
    config: dict[str, Any]
    embed_dim: int
    state_dim: int
    state_names: list[str]
    num_layers: int = 0

    def __init__(self, config: Any, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._adopt(config, vocabulary)

    def _adopt(self, config: Any, vocabulary: Vocabulary) -> None:
        """Set config and vocabulary; for families whose other base class initializes the module."""
        self.config = dict(config) if isinstance(config, dict) else asdict(config)
        self.symbol_table = vocabulary  # under this name in checkpoints written so far

    @property
    def vocabulary(self) -> Vocabulary:
        """Return the model's symbols and the frame it expects around a sentence."""
        return self.symbol_table

    @classmethod
    def can_read(cls, path: Path) -> bool:
        """Return True if :meth:`read` can read ``path``, a file or folder; look at no more of it than that takes."""
        return False

    @classmethod
    def read(cls, path: Path, **overrides: Any) -> PretrainedLM:
        """Read a model with its weights from a path that :meth:`can_read` accepts.

        Args:
            path: of a file or folder.
            overrides: config values to replace, e.g. ``dropout=0.3`` for fine-tuning.

        Raises:
            InputError: if it is damaged, unsafe or incomplete.
        """
        raise InputError(f"{path}: a model of the family {cls.family} is not read from files.")

    @classmethod
    def build(cls, config: dict[str, Any], symbols: list[str], **overrides: Any) -> PretrainedLM:
        """Build an untrained model; a checkpoint's weights come later.

        Args:
            config: the :attr:`config` of another model; values that older files lack take their defaults.
            symbols: of the model, in index order.
            overrides: config values to replace.
        """
        known = cls.Config.__dataclass_fields__
        values = {name: value for name, value in {**config, **overrides}.items() if name in known}
        return cls(cls.Config(**values), cls.make_vocabulary(config, symbols))

    @classmethod
    def make_vocabulary(cls, config: dict[str, Any], symbols: list[str]) -> Vocabulary:
        """Return the vocabulary of ``symbols`` (in index order) with the frame of a model with this :attr:`config`."""
        return Vocabulary(symbols)

    @classmethod
    def layer_of(cls, name: str) -> int | None:
        """Return the index in :meth:`modules_from_below` of a weight by its name in the state dict; None: in none."""
        return None

    @abstractmethod
    def states(
        self, tokens: Tensor, incremental_state: IncrementalState | None = None, *, want: AbstractSet[str]
    ) -> LMStates:
        """Compute the wanted states of a batch in one forward pass.

        Args:
            tokens: B x T token indices of the model's vocabulary; padding may be on either side.
            incremental_state: fairseq's decoding state; ``tokens`` is then the whole prefix, without padding, and only
                states of positions not seen before are computed and returned.
            want: a subset of :data:`LAYERS` and :data:`TOP`.

        Returns:
            States of B x T x C' and B x T x C (T_new with ``incremental_state``); unspecified at padding.

        Raises:
            InputError: if a row is longer than the model takes, or there is no single top state.
        """

    @abstractmethod
    def max_positions(self) -> int:
        """Return the longest sentence the model takes, in tokens as fairseq counts them (one ``</s>``)."""

    def layer_states(self, tokens: Tensor, incremental_state: IncrementalState | None = None) -> list[Tensor]:
        """Return the states of every layer, embeddings first, as L tensors of B x T x C', of valid indices (B x T)."""
        return self.states(self.vocabulary.check(tokens), incremental_state, want={LAYERS}).layers

    def top_state(self, tokens: Tensor, incremental_state: IncrementalState | None = None) -> Tensor:
        """Return the state before the softmax, B x T x C, of valid indices (B x T); see :meth:`states`."""
        top = self.states(self.vocabulary.check(tokens), incremental_state, want={TOP}).top
        assert top is not None
        return top

    def logits(self, top: Tensor) -> Tensor:
        """Turn top states into logits, ... x C -> ... x V; an :class:`InputError` if the family predicts nothing."""
        raise InputError(f"a {self.title} predicts no words.")

    def stack(self) -> Stack:
        """Return the layers as those of a fairseq encoder or decoder; an :class:`InputError` if they are not such."""
        raise InputError(f"a {self.title} has no layers as fairseq's transformer has them.")

    def serve(self, symbols: list[str], *, what: str) -> float:
        """Accept the ids of a side's dictionary from now on; see :meth:`Vocabulary.serve`."""
        return self.vocabulary.serve(symbols, what=what, by_symbol=self.by_symbol)

    def encode(self, text: str) -> Tensor:
        """Turn a sentence into ids with the frame of the model's training: 1 x T; see :meth:`Vocabulary.encode`."""
        return self.vocabulary.encode(text)

    def decode(self, tokens: Tensor) -> str:
        """Turn ids (T, or 1 x T) back into text, without frame and padding."""
        return self.vocabulary.decode(tokens)

    @property
    def padding_idx(self) -> int:
        """Return the index of the padding symbol."""
        return self.vocabulary.padding_idx

    @property
    def symbols(self) -> list[str]:
        """Return the symbols in index order."""
        return self.vocabulary.symbols

    @property
    def num_states(self) -> int:
        """Return L, the number of layer states."""
        return len(self.state_names)

    @property
    def dictionary_hash(self) -> str:
        """Return the SHA-256 (hex) of the symbols."""
        return self.vocabulary.hash

    def check_top_state(self) -> None:
        """Refuse a model that has no single top state, by an :class:`InputError` that names what to use instead."""

    def drop_softmax(self) -> None:
        """Drop the weights that only predictions need; states do not change."""

    def drop_pooler(self) -> None:
        """Drop the weights that only :meth:`pool` needs; states do not change."""


NEEDED = ("sees_future", "incremental", "states", "max_positions")
Family = TypeVar("Family", bound=type[PretrainedLM])
FAMILIES: dict[str, type[PretrainedLM]] = {}
"""The registered families by name."""


def register_lm(name: str) -> Callable[[Family], Family]:
    """Register a subclass of :class:`PretrainedLM` under its name in checkpoints, flags and tables.

    A name that another class has, or a class that lacks what has no default, is an :class:`InputError`.
    """

    def register(family: Family) -> Family:
        check_class(f"the family {name}", family, PretrainedLM, needs=NEEDED)
        known = FAMILIES.setdefault(name, family)
        if known is not family:
            raise InputError(f"the family {name} is registered twice, by {known.__module__} and {family.__module__}.")
        family.family = name
        return family

    return register
