"""The one small interface through which everything else sees a pretrained language model.

Shape legend of the whole package
---------------------------------
``B`` batch, ``T`` time (positions of a padded batch), ``S`` source time, ``C`` channels of a model,
``C'`` channels of a layer state (2C where two towers are concatenated), ``H`` heads, ``D`` channels
of a head, ``V`` vocabulary, ``L`` number of layer states, ``N`` blocks of a tower.

Our own tensors are batch-first (``B x T x C``). What goes into fairseq's layers is
``T x B x C``; each reshape says so. Padding masks are ``B x T`` and True at padding.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Callable, Optional

import torch
from torch import Tensor, nn

from lmfusion.errors import UserError

IncrementalState = dict[str, dict[str, Optional[Tensor]]]

# What is done with states (... x C) and output embeddings (V x C): F.linear makes logits of them.
Head = Callable[[Tensor, Tensor], Any]

# What the top state of a cloze LM can be: the joining block's output with the token itself visible, as in pretraining
# with the token hidden, or (of a pair of LMs, which has no joining block) the forward tower's.
TOPS = (WIDE, NARROW, FORWARD) = ("wide", "narrow", "forward")


def dictionary_hash(symbols: Iterable[str]) -> str:
    """SHA-256 (hex) of a dictionary: its symbols in index order, special symbols included.

    Counts do not matter: two dictionaries with this hash give every token the same index.
    """
    return hashlib.sha256("\n".join(symbols).encode("utf-8")).hexdigest()


def first_difference(ours: list[str], theirs: list[str]) -> int | None:
    """Index of the first symbol in which two dictionaries differ, or None if they are equal."""
    for index, (our_symbol, their_symbol) in enumerate(zip(ours, theirs)):
        if our_symbol != their_symbol:
            return index
    return None if len(ours) == len(theirs) else min(len(ours), len(theirs))


class PretrainedLM(nn.Module, ABC):
    """A language model as the fusion code sees it.

    Subclasses set the attributes below and implement :meth:`layer_states` and :meth:`top_state`.
    A new family of representations is one such subclass.

    Attributes:
        embed_dim: C, channels of :meth:`top_state`.
        state_dim: C', channels of every tensor in :meth:`layer_states`.
        num_layers: N, transformer blocks of one tower.
        num_states: L, number of tensors :meth:`layer_states` returns.
        padding_idx: index of the padding symbol.
        eos_idx: index of ``</s>``, with which a sentence begins and ends.
        is_causal: True if no state depends on a later token.
        symbols: the dictionary's symbols in index order.
        config: everything needed to build the same model again, as plain values.
        top: one of :data:`TOPS`; models converted from the released code may have another than the first.
    """

    embed_dim: int
    state_dim: int
    num_layers: int
    num_states: int
    padding_idx: int
    eos_idx: int
    is_causal: bool
    symbols: list[str]
    config: dict[str, Any]
    frozen: bool = False
    top: str = WIDE

    @abstractmethod
    def layer_states(
        self, tokens: Tensor, incremental_state: IncrementalState | None = None
    ) -> list[Tensor]:
        """States of every layer, embeddings first (``SPEC`` section 2 lists them).

        Args:
            tokens: B x T token indices; padding may be on either side.
            incremental_state: fairseq's decoding state; ``tokens`` is then the whole prefix and
                only states of positions not seen before are computed and returned.

        Returns:
            L tensors of B x T x C' (B x T_new x C' with ``incremental_state``). States at padding
            are unspecified.
        """

    @abstractmethod
    def top_state(
        self, tokens: Tensor, incremental_state: IncrementalState | None = None
    ) -> Tensor:
        """The state before the softmax, B x T x C; arguments as in :meth:`layer_states`."""

    @abstractmethod
    def max_positions(self) -> int:
        """Longest sentence the model takes, in tokens as fairseq counts them (one ``</s>``)."""

    @abstractmethod
    def modules_from_below(self) -> list[list[nn.Module]]:
        """The embeddings, then every layer's blocks (of all towers): N + 1 lists. What is above them is in none."""

    def check_top_state(self) -> None:
        """Refuse a model that has no single top state.

        Raises:
            UserError: naming what to use instead.
        """

    def drop_softmax(self) -> None:
        """Forget weights that only predictions need; representations do not change."""

    @property
    def dictionary_hash(self) -> str:
        """SHA-256 of the dictionary the model was trained with."""
        return dictionary_hash(self.symbols)

    def freeze(self) -> PretrainedLM:
        """Fix all weights and switch dropout off for good: :meth:`train` no longer does anything."""
        self.frozen = True
        self.requires_grad_(False)
        return self.eval()

    def unfreeze(self) -> PretrainedLM:
        """Make all weights trainable again; call :meth:`train` to switch dropout on."""
        self.frozen = False
        return self.requires_grad_(True)

    def freeze_layers(self, count: int) -> None:
        """Fix the embeddings and the lowest ``count`` layers; with 0 nothing, not even the embeddings.

        Raises:
            UserError: if there are not as many layers, or nothing would be left to train.
        """
        below = self.modules_from_below()
        if not 0 <= count < len(below):
            raise UserError(f"the language model has {len(below) - 1} layers, and {count} of them cannot be frozen.")
        for module in [module for layer in below[: count + 1] for module in layer] if count else []:
            module.requires_grad_(False)
        if not any(parameter.requires_grad for parameter in self.parameters()):
            raise UserError(
                f"with {count} frozen layers nothing of the language model would be trained: freeze fewer, or use the "
                f"frozen model by elmo."
            )

    def train(self, mode: bool = True) -> PretrainedLM:
        """As :meth:`torch.nn.Module.train`, except that a frozen model stays in eval mode."""
        return super().train(mode and not self.frozen)


def state_fingerprint(module: nn.Module) -> str:
    """SHA-256 (hex) over names, shapes and float32 values of a module's parameters.

    The same weights give the same fingerprint whether they are kept in half or single precision
    only if they are representable in both; lmfusion takes it after loading, in float32.
    """
    digest = hashlib.sha256()
    for name, parameter in sorted(module.named_parameters()):
        values = parameter.detach().to("cpu", torch.float32).contiguous()
        digest.update(f"{name}{tuple(values.shape)}".encode())
        digest.update(values.numpy().tobytes())
    return digest.hexdigest()
