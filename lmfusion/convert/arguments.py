"""What a released model is and was trained with, and how to ask the user for what is not known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from lmfusion.errors import InputError

CLOZE, CAUSAL, SEQ2SEQ = "bi_transformer_lm", "uni_transformer_lm", "transformer_lmfusion"
ARCHITECTURES = {
    **dict.fromkeys(["bi_transformer_lm", "bi_transformer_lm_big", "bi_transformer_lm_big_non_cloze"], CLOZE),
    **dict.fromkeys(["transformer_lm", "transformer_lm_big", "transformer_lm_wiki103", "transformer_lm_gbw"], CAUSAL),
    **dict.fromkeys(["transformer", "transformer_iwslt_de_en", "transformer_wmt_en_de"], SEQ2SEQ),
    **dict.fromkeys(["transformer_wmt_en_de_big", "transformer_wmt_en_de_big_t2t"], SEQ2SEQ),
    **dict.fromkeys(["transformer_vaswani_wmt_en_de_big", "transformer_vaswani_wmt_en_fr_big"], SEQ2SEQ),
}
# lmfusion's own, where a file in its format describes a language model.
OURS = {f"{name}{size}": name for name in (CLOZE, CAUSAL) for size in ("", "_big")}
NAMES = {CLOZE: "a cloze language model", CAUSAL: "a causal language model", SEQ2SEQ: "a sequence-to-sequence model"}


@dataclass(frozen=True)
class Arguments:
    """Hold the flags a model was trained with, and ask the user for one that is not known.

    Attributes:
        values: by name; None counts as not given, as everywhere in fairseq.
        complete: whether they are those of a training command: an option that is not among them had its default.
        origin: whose flags they are, for messages.
        fix: how the user can give what is missing; ``{flags}`` stands for ``NAME=VALUE``, by ``flag``, for each.
        flag: of ``lmfusion convert``, to give one.
        asked: the names whose values mattered so far.
    """

    values: Mapping[str, Any]
    complete: bool
    origin: str
    fix: str
    flag: str
    asked: set[str] = field(default_factory=set, compare=False)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a flag's value, or ``default`` where it was not given."""
        self.asked.add(name)
        value = self.values.get(name)
        return default if value is None else value

    def require(self, *names: str) -> None:
        """Refuse to guess flags.

        Raises:
            InputError: naming all of these flags that are not known, and how to give them.
        """
        self.asked.update(names)
        unknown = [name for name in names if self.values.get(name) is None]
        if unknown:
            given = " ".join(f"{self.flag} {name}=VALUE" for name in unknown)
            verb = "is" if len(unknown) == 1 else "are"
            raise InputError(
                f"{self.origin}: {' and '.join(unknown)} {verb} not known and cannot be seen in the weights. "
                f"{self.fix.format(flags=given)}"
            )

    def require_unless_complete(self, *names: str) -> None:
        """Refuse to guess where these are not known to have had their defaults.

        Raises:
            InputError: as :meth:`require`.
        """
        if not self.complete:
            self.require(*names)

    def check_asked(self, given: Iterable[str]) -> None:
        """Refuse flags that the user gave for nothing; after everything has been asked for.

        Raises:
            InputError: naming them.
        """
        if useless := sorted(set(given) - self.asked):
            raise InputError(
                f"{self.flag} {' and '.join(useless)} would be ignored: {self.origin} has no use for flags of that "
                f"name. Names are those of the released code."
            )

    def switch(self, name: str, default: bool = False) -> bool:
        """Return a flag that is on or off.

        Raises:
            InputError: if it is neither.
        """
        value = self.get(name, default)
        if not isinstance(value, bool):
            self._refuse(name, value, "True or False")
        return bool(value)

    def integer(self, name: str, default: int | None = None, *, least: int = 1, most: int = 10**6) -> int:
        """Return a whole number; without a default of at least ``least`` it must be known.

        Raises:
            InputError: if it is none, too small or large, or not known.
        """
        if default is None or default < least:
            self.require(name)
        value = self.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self._refuse(name, value, f"a whole number from {least} to {most}")
        return int(value)

    def number(self, name: str, default: float, *, most: float = math.inf) -> float:
        """Return a finite number from 0 to ``most``.

        Raises:
            InputError: if it is none.
        """
        value = self.get(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf or value > most:
            self._refuse(name, value, "a number of at least 0" if most == math.inf else f"a number from 0 to {most}")
        return float(value)

    def dropout(self, name: str, default: float) -> float:
        """Return a number from 0 to 1.

        Raises:
            InputError: if it is none.
        """
        return self.number(name, default, most=1)

    def text(self, name: str) -> str | None:
        """Return a text; None where it was not given.

        Raises:
            InputError: if it is none.
        """
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            self._refuse(name, value, "a text")
        return None if value is None else str(value)

    def _refuse(self, name: str, value: Any, expected: str) -> NoReturn:
        raise InputError(f"{self.origin}: {name} is {value!r}, where {expected} is expected.")

    def updated(self, values: Mapping[str, Any]) -> Arguments:
        """Return the same with these values on top."""
        return replace(self, values={**self.values, **values})
