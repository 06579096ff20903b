"""The one interface through which a side sees an integration, and the register of integrations.

An integration turns a language model's states into something a model takes in. It never asks which family the language
model is of, nor, beyond what :class:`Side` says, which side it serves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

from torch import Tensor, nn

from lmfusion.errors import UserError
from lmfusion.lm.interface import IncrementalState, LMStates, PretrainedLM

ENCODER, DECODER = "encoder", "decoder"


@dataclass(frozen=True)
class Side:
    """What an integration may know of the side that it serves.

    Attributes:
        prefix: of its flags, ``"src"`` or ``"tgt"``.
        name: for messages, ``"source"`` or ``"target"``.
        stack: ``"encoder"`` or ``"decoder"``.
        symbols: of its dictionary, in index order.
        width: C, channels of its embeddings.
        heads: of its attention.
        fingerprint: of the language model's weights as pretrained.
    """

    prefix: str
    name: str
    stack: str
    symbols: list[str]
    width: int
    heads: int
    fingerprint: str = ""


@dataclass(frozen=True)
class Place:
    """Where in a model an attention stands: ``stack`` and ``kind`` ("self", "cross"), and the layer's number from 0."""

    stack: str
    layer: int
    kind: str


class Fusion(nn.Module):
    """One way of using a language model; a subclass in a file of its own, registered by :func:`register_fusion`.

    Of the hooks below a subclass overrides those it needs. What it makes of parameters are its own; the language model
    is its attribute ``lm``.

    Args:
        lm: the language model, frozen and in eval mode.
        side: that it serves.
        config: of its flags, an instance of ``Config``.

    Attributes:
        Config: dataclass of the flags, each None (or False) where not given. ``--src-`` or ``--tgt-`` is put in front.
        title: what it does, in a few words, for ``--help``.
        replaces_embeddings: whether :meth:`embed` takes the place of the side's word embeddings.
        carries_positions: whether what it gives knows its positions, so that the source side adds none of its own.
        needs_softmax: whether the language model must keep its output embeddings.
        trains_lm: whether training changes the language model.
    """

    name: ClassVar[str]
    Config: ClassVar[Any]
    title: ClassVar[str] = ""
    replaces_embeddings: ClassVar[bool] = True
    carries_positions: ClassVar[bool] = False
    needs_softmax: ClassVar[bool] = False
    trains_lm: ClassVar[bool] = False

    def __init__(self, lm: PretrainedLM, side: Side, config: Any) -> None:
        super().__init__()
        self.lm = lm
        if not self.needs_softmax:
            lm.drop_softmax()

    @classmethod
    def lm_overrides(cls, config: Any) -> Mapping[str, Any]:
        """Return values that replace those of the language model's own configuration; None replaces nothing."""
        return {}

    @classmethod
    def check(cls, config: Any, flag: Callable[[str], str], run: Any) -> None:
        """Refuse values that make no sense, or not together with the rest of a training run.

        Args:
            config: of the flags.
            flag: a field's name -> the flag on the command line.
            run: fairseq's whole configuration; None where a model is built outside a training run.

        Raises:
            UserError: naming the flag and the fix.
        """

    def read(self, tokens: Tensor, incremental_state: IncrementalState | None = None) -> Any:
        """Read the language model, once a forward pass.

        Args:
            tokens: B x T ids of the language model, framed, left-aligned.
            incremental_state: fairseq's decoding state; only new positions are read then.

        Returns:
            What the other hooks are given; :class:`LMStates` or anything else.
        """
        return LMStates()

    def embed(self, states: Any) -> Tensor:
        """Make embeddings of what :meth:`read` gave: B x T x C (only new T with a decoding state)."""
        raise NotImplementedError(f"{type(self).__name__} replaces embeddings and has no embed()")

    def forward(self, tokens: Tensor, incremental_state: IncrementalState | None = None) -> Tensor:
        """Read and embed: B x T framed ids -> B x T x C (only new T with a decoding state)."""
        return self.embed(self.read(tokens, incremental_state))

    def attention(self, own: nn.Module, place: Place) -> nn.Module:
        """Return the attention module that stands in a layer in place of its own; by default its own."""
        return own

    def carry(self, states: Any) -> list[Tensor]:
        """Return what layers of the source side's integration read: tensors of B x T x C; where embeddings stay."""
        return []

    def receive(self, carried: list[Tensor], padding: Tensor) -> None:
        """Take what :meth:`carry` gave, before the encoder's and before the decoder's layers are computed.

        Args:
            carried: of B x S x C each, at the source's tokens, in the order of the beam.
            padding: B x S, True at padding.
        """

    def features(self, x: Tensor, states: Any) -> Tensor:
        """Change the decoder's features (B x T x C) before the output projection; by default not at all."""
        return x

    @classmethod
    def configure(cls, lm: PretrainedLM, side: Side, model_config: Any) -> None:
        """Change fairseq's configuration of the side's stack before it is built; by default not at all."""

    def begin(self, run: Any) -> None:
        """Prepare for training from pretrained weights, e.g. tell how much disk will be needed; by default nothing.

        Args:
            run: fairseq's whole configuration; None where a model is built outside a training run.

        Raises:
            UserError: if training cannot begin so.
        """

    def load_into(self, stack: nn.Module) -> None:
        """Put weights of the language model into the side's stack, when training starts; by default none."""


Integration = TypeVar("Integration", bound=type[Fusion])
FUSIONS: dict[str, type[Fusion]] = {}
"""The registered integrations by name."""

_closed = False


def register_fusion(name: str) -> Callable[[Integration], Integration]:
    """Register a subclass of :class:`Fusion` under the value of ``--src-fusion`` and ``--tgt-fusion``.

    Raises:
        UserError: if another class has that name, another integration has one of its flags with another meaning, or the
            flags have been made already.
    """

    def register(integration: Integration) -> Integration:
        if FUSIONS.get(name) is integration:
            return integration
        if name in FUSIONS:
            raise UserError(f"the integration {name} is registered twice, again by {integration.__module__}.")
        if _closed:
            raise UserError(f"the integration {name} comes too late: register it before lmfusion.install().")
        for other in FUSIONS.values():
            _check_shared(name, integration, other)
        integration.name = name
        FUSIONS[name] = integration
        return integration

    return register


def _check_shared(name: str, integration: type[Fusion], other: type[Fusion]) -> None:
    theirs = {spec.name: spec for spec in fields(other.Config)}
    for spec in fields(integration.Config):
        same = theirs.get(spec.name, spec)
        if (spec.type, spec.default, spec.metadata.get("help")) != (same.type, same.default, same.metadata.get("help")):
            raise UserError(f"{name} and {other.name} have a flag {spec.name} with two meanings: rename one.")


def close_register() -> None:
    """Accept no further integration: the flags are made of those that are there."""
    global _closed
    _closed = True
