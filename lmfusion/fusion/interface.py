"""The one interface through which a side sees an integration, and the register of integrations.

An integration turns a language model's states into input of a sequence-to-sequence model. It never asks for the
language model's family nor, beyond the attributes of :class:`Side`, for the side it serves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ClassVar, TypeVar

from torch import Tensor, nn

from lmfusion.errors import InputError
from lmfusion.fusion.description import DECODER, ENCODER, Place, Side
from lmfusion.lm.interface import IncrementalState, LMStates, PretrainedLM
from lmfusion.registration import check_class, differing_flag

__all__ = ["DECODER", "ENCODER", "FUSIONS", "Fusion", "Place", "Side", "close_register", "register_fusion"]


class Fusion(nn.Module):
    """An integration: one way of using a language model on a side of a sequence-to-sequence model.

    It is one subclass in one file, registered by :func:`register_fusion`, that overrides the hooks it needs. Its
    parameters are its own; the language model is its attribute ``lm``.

    Args:
        lm: the language model, frozen and in eval mode.
        side: the side that it serves.
        config: values of its flags, an instance of ``Config``.

    Attributes:
        Config: dataclass of the flags, each None (or False) where not given. ``--src-`` or ``--tgt-`` is put in front.
        title: description in a few words, for ``--help``.
        sides: prefixes of the sides that it can serve.
        replaces_embeddings: True if :meth:`embed` takes the place of the side's word embeddings.
        carries_positions: True if its embeddings contain positions, so that the source side adds none of its own.
        needs_softmax: True if the language model must keep its output embeddings.
        trains_lm: True if training changes the language model, or may, by a flag.
        keeps_lm: False if :meth:`configure` and :meth:`load_into` are all that it does: the side has a stack of
            fairseq's then, and neither integration nor language model are in the model.
    """

    name: ClassVar[str]
    Config: ClassVar[Any]
    title: ClassVar[str] = ""
    sides: ClassVar[tuple[str, ...]] = ("src", "tgt")
    replaces_embeddings: ClassVar[bool] = True
    carries_positions: ClassVar[bool] = False
    needs_softmax: ClassVar[bool] = False
    trains_lm: ClassVar[bool] = False
    keeps_lm: ClassVar[bool] = True

    def __init__(self, lm: PretrainedLM, side: Side, config: Any) -> None:
        super().__init__()
        self.lm = lm
        if not self.needs_softmax:
            lm.drop_softmax()

    @classmethod
    def lm_overrides(cls, config: Any) -> Mapping[str, Any]:
        """Return values by name that replace those of the language model's configuration; None replaces nothing."""
        return {}

    @classmethod
    def check(cls, config: Any, flag: Callable[[str], str], run: Any) -> None:
        """Refuse invalid values of flags, or values that contradict the rest of a training run.

        Args:
            config: values of the flags.
            flag: function from a field's name to its flag on the command line.
            run: fairseq's whole configuration; None where a model is built outside a training run.

        Raises:
            InputError: naming the flag and the fix.
        """

    @classmethod
    def refusal(cls, family: type[PretrainedLM]) -> str | None:
        """Return why no language model of a family can be used, to follow its title; None if one can."""
        return None

    def read(self, tokens: Tensor, incremental_state: IncrementalState | None = None) -> Any:
        """Compute the language model's states; called once in a forward pass.

        Args:
            tokens: B x T ids of the language model, framed, left-aligned.
            incremental_state: fairseq's decoding state; only states of new positions are computed then.

        Returns:
            :class:`LMStates`, or any other object that the hooks below take as ``states``.
        """
        return LMStates()

    def embed(self, states: Any) -> Tensor:
        """Compute embeddings from what :meth:`read` returned.

        Args:
            states: of B x T positions, only new T with a decoding state.

        Returns:
            B x T x C, where C is the side's width.
        """
        raise NotImplementedError

    def forward(self, tokens: Tensor, incremental_state: IncrementalState | None = None) -> Tensor:
        """Compute embeddings of framed ids: B x T -> B x T x C (only new T with a decoding state)."""
        return self.embed(self.read(tokens, incremental_state))

    def attention(self, own: nn.Module, place: Place) -> nn.Module:
        """Return the attention module to use at a place of the model; by default the one that is there.

        Args:
            own: fairseq's module at that place.
            place: in the encoder or the decoder.
        """
        return own

    def carry(self, states: Any) -> list[Tensor]:
        """Return the tensors that :meth:`receive` is given; called only if embeddings are not replaced.

        Args:
            states: from :meth:`read`.

        Returns:
            Any number of tensors of B x T x C, of any C, where T are framed positions.
        """
        return []

    def receive(self, carried: list[Tensor], padding: Tensor) -> None:
        """Take the tensors of :meth:`carry`, before the encoder's and before the decoder's layers are computed.

        Args:
            carried: tensors of B x S x C, at the source's tokens, in the order of the beam.
            padding: B x S, True at padding.
        """

    def features(self, x: Tensor, states: Any) -> Tensor:
        """Return the decoder's features for the output projection; by default unchanged.

        Args:
            x: features, B x T x C, T is 1 with a decoding state.
            states: from :meth:`read`, of at least T positions, the last of which are those of x.
        """
        return x

    def configure(self, model_config: Any) -> None:
        """Change fairseq's configuration of the side's stack in place, before it is built; by default nothing.

        Args:
            model_config: fairseq's nested configuration of the model. Sizes in the side's part of it
                (``model_config.encoder``) count for the whole model where the LM is not kept; all else is the stack's.
        """

    def begin(self, run: Any) -> None:
        """Prepare for training from pretrained weights, e.g. check the disk space; by default nothing.

        Args:
            run: fairseq's whole configuration; None where a model is built outside a training run.

        Raises:
            InputError: if training cannot begin so.
        """

    def load_into(self, stack: nn.Module) -> None:
        """Copy weights of the language model into the side's stack; by default none.

        It is called when training starts from pretrained weights; where the LM is not kept also before a checkpoint's
        weights are loaded, so that it may add parameters.

        Args:
            stack: fairseq's encoder or decoder.
        """

    def name_without(self, name: str) -> str | None:
        """Return what a weight is called in the same model without the integration; None if it belongs to it.

        By it a model is trained further from one without a language model: what both have is taken from there. It is
        asked about all weights but the integration's, which are its own.

        Args:
            name: of a weight in the model.
        """
        return name

    def join(self) -> None:
        """Change the own parameters for layers that were trained without them; by default they start as always."""


Integration = TypeVar("Integration", bound=type[Fusion])
OF_EVERY_SIDE = frozenset({"lm", "fusion", "positions", "embed_scale", "lm_config"})
"""Flags that a side has with every integration."""
FUSIONS: dict[str, type[Fusion]] = {}
"""The registered integrations by name."""

_closed = False


def register_fusion(name: str) -> Callable[[Integration], Integration]:
    """Register a subclass of :class:`Fusion` under a name.

    Args:
        name: value of ``--src-fusion`` and ``--tgt-fusion`` that chooses it.

    Raises:
        InputError: if another class has that name, another integration has one of its flags with another meaning, the
            flags have been made already, or the class lacks what has no default.
    """

    def register(integration: Integration) -> Integration:
        if FUSIONS.get(name) is integration:
            return integration
        if name in FUSIONS:
            raise InputError(f"the integration {name} is registered twice, again by {integration.__module__}.")
        if name == "none" or not name.isidentifier():
            raise InputError(f"{name!r} cannot be chosen as an integration: name it by letters, digits and _.")
        if _closed:
            raise InputError(
                f"the integration {name} comes too late: import {integration.__module__} before lmfusion.install(), "
                f"load_lm and load_model, which make the flags of all integrations."
            )
        needs = ("embed",) if getattr(integration, "replaces_embeddings", False) else ()
        check_class(f"the integration {name}", integration, Fusion, needs=needs, flags=True)
        if taken := {spec.name for spec in fields(integration.Config)} & OF_EVERY_SIDE:
            raise InputError(f"the integration {name}: every side has a flag {sorted(taken)[0]} already. Rename it.")
        for other, known in FUSIONS.items():
            if flag := differing_flag(integration.Config, known.Config):
                raise InputError(f"{name} and {other} have a flag {flag} with two meanings: rename one.")
        integration.name = name
        FUSIONS[name] = integration
        return integration

    return register


def close_register() -> None:
    """Close the register: the flags are generated from the integrations in it."""
    global _closed
    _closed = True
