"""What is known of the language models inside a sequence-to-sequence model, beyond their weights."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from lmfusion.convert.arguments import ARCHITECTURES, NAMES, OURS, Arguments
from lmfusion.convert.language_model import sizes_seen
from lmfusion.convert.released import read_lm_values
from lmfusion.errors import InputError
from lmfusion.fusion.config import SIDE_NAMES


@dataclass(frozen=True)
class LMFile:
    """Hold the flags of a language model's own file.

    Attributes:
        path: of the file.
        values: its flags, under the released names.
    """

    path: str
    values: Mapping[str, Any]

    @classmethod
    def read(cls, path: str, *, drop_meters: bool) -> LMFile:
        """Read the flags of a language model's file.

        Raises:
            InputError: if it cannot be read, or holds something else than a language model.
        """
        values = read_lm_values(path, drop_meters=drop_meters)
        file = cls(path, values)
        if file.family is not None and file.family not in OURS.values():
            raise InputError(f"{path} holds {NAMES[file.family]}, where a language model's own file belongs.")
        return file

    @property
    def family(self) -> str | None:
        """Return which kind of model it is; None where its architecture has a name of its own."""
        arch = str(self.values.get("_name") or self.values.get("arch"))
        return {**ARCHITECTURES, **OURS}.get(arch)

    def fits(self, sizes: Mapping[str, int]) -> bool:
        """Return whether it says nothing else than what is seen in the weights: ``sizes`` by flag."""
        return all(self.values.get(name) in (None, size) for name, size in sizes.items())


@dataclass(frozen=True)
class LMFiles:
    """Hold the files and flags that the user gave about the language models inside.

    Attributes:
        origin: the checkpoint, for messages.
        either: files for the side that they fit.
        by_side: files of one side.
        args: flags that the user gave, by side.
        known: what :meth:`arguments` found, by side.
        used: paths of the files that it took.
    """

    origin: str
    either: Sequence[LMFile]
    by_side: Mapping[str, LMFile]
    args: Mapping[str, Mapping[str, Any]]
    known: dict[str, Arguments] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def arguments(self, side: str, family: str, weights: Mapping[str, Tensor], inner: str) -> Arguments:
        """Return what is known of a side's language model.

        Args:
            side: ``"src"`` or ``"tgt"``.
            family: of its weights.
            weights: of the whole checkpoint.
            inner: prefix of its weights.

        Raises:
            InputError: if a file is of another kind, or it is not clear which one describes it.
        """
        file = self.by_side.get(side) or self._choose(side, family, sizes_seen(weights, inner, family))
        if file is not None and file.family not in (None, family):
            raise InputError(
                f"--{side}-lm {file.path} is {NAMES[str(file.family)]}, and inside there is {NAMES[family]}."
            )
        values, origin = self.args.get(side, {}), f"the {SIDE_NAMES[side]} language model in {self.origin}"
        if file is not None:
            self.used.add(file.path)
            values, origin = {**file.values, **values}, f"{origin} ({file.path})"
        fix = f"Give the language model's own file by --{side}-lm (or --lm), or say {{flags}}."
        self.known[side] = Arguments(values, file is not None, origin, fix, f"--{side}-lm-arg")
        return self.known[side]

    def _choose(self, side: str, family: str, sizes: Mapping[str, int]) -> LMFile | None:
        right = [file for file in self.either if file.family in (None, family)]
        fitting = [file for file in right if file.fits(sizes)] or right
        if len(fitting) > 1:
            names = ", ".join(file.path for file in fitting)
            raise InputError(
                f"several files may describe the {SIDE_NAMES[side]} language model: {names}. Give it by --{side}-lm."
            )
        return fitting[0] if fitting else None

    def check_used(self, lms: Container[str]) -> None:
        """Refuse files and flags that were given for nothing.

        Args:
            lms: the sides that have a language model.

        Raises:
            InputError: naming the flag.
        """
        for side, side_name in SIDE_NAMES.items():
            for name, given in (("lm", self.by_side.get(side)), ("lm-arg", self.args.get(side))):
                if given and side not in lms:
                    raise InputError(
                        f"--{side}-{name} would be ignored: {self.origin} has no {side_name} language model."
                    )
            if side in lms:
                self.known[side].check_asked(self.args.get(side, {}))
        for file in self.either:
            if file.path not in self.used:
                raise InputError(
                    f"--lm {file.path} would be ignored: it is not needed for what {self.origin} has inside."
                )
