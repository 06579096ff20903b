"""Input and output embeddings of the sides that do not stand on a language model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from lmfusion.convert.arguments import Arguments
from lmfusion.convert.folding import fold_scale
from lmfusion.convert.mapping import Shape, WeightMapping
from lmfusion.errors import InputError

SOURCE = "encoder.embed_tokens.weight"
TARGET = "decoder.embed_tokens.weight"
OUTPUT = "decoder.output_projection.weight"


@dataclass(frozen=True)
class Embeddings:
    """Describe the embeddings outside of language models: which are tied, and what scales them.

    What ties them in the released format may come apart in ours, where a factor of their own has to be multiplied into
    one of them.

    Attributes:
        share_all: whether one weight embeds both sides and the output.
        share_decoder: whether one weight embeds the target side and the output.
        scales: factor on each side's; None stands for sqrt(C), as always.
        folded: the factors to be multiplied into the embeddings of a side.
        source_name: of the source side's in the released format.
    """

    share_all: bool
    share_decoder: bool
    scales: dict[str, float | None]
    folded: dict[str, float]
    source_name: str

    @classmethod
    def of(cls, args: Arguments, lms: Collection[str]) -> Embeddings:
        """Describe them from the training command and the sides that stand on a language model.

        Raises:
            InputError: if one weight is to embed both sides, and a language model stands there.
        """
        share_all, alone = args.switch("share_all_embeddings"), args.switch("embedding_only")
        if share_all and lms:
            raise InputError(
                f"{args.origin}: share_all_embeddings ties the embeddings of both sides, and one on a language model "
                f"has none: say {args.flag} share_all_embeddings=False if it did not."
            )
        scales = {"src": 1.0 if alone else _scale(args, "encoder"), "tgt": _scale(args, "decoder")}
        return cls(
            share_all,
            share_all or args.switch("share_decoder_input_output_embed"),
            scales,
            {side: scale for side, scale in scales.items() if scale is not None and side not in lms},
            f"encoder.{'embedder' if alone else 'embed_tokens'}.weight",
        )

    def values(self) -> dict[str, Any]:
        """Return our flags of them."""
        kept = {side: scale for side, scale in self.scales.items() if scale is not None and side not in self.folded}
        return {
            **{f"{side}_embed_scale": float(scale) for side, scale in kept.items()},
            "share_all_embeddings": self.share_all and not self.folded,
            "share_decoder_input_output_embed": self.share_decoder and "tgt" not in self.folded,
        }

    def mappings(self, shapes: Mapping[str, Shape]) -> Iterator[WeightMapping]:
        """Yield the mappings of those that our model has; ``shapes`` are those of its weights."""
        target = self.source_name if self.share_all else TARGET
        output = target if self.share_decoder else "decoder.embed_out"
        sources = {SOURCE: self.source_name, TARGET: target, OUTPUT: output}
        for name, source in sources.items():
            if name in shapes:
                yield WeightMapping(source, shapes[name], {name: shapes[name][0]})
        if self.share_all:
            yield WeightMapping(TARGET, shapes[SOURCE], copy_of=self.source_name)

    def fold(self, converted: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return our weights with the factors multiplied into them."""
        names = {"src": SOURCE, "tgt": TARGET}
        scaled = {names[side]: fold_scale(converted[names[side]], scale) for side, scale in self.folded.items()}
        return {**converted, **scaled}


def _scale(args: Arguments, part: str) -> float | None:
    """Return the factor on a side's embeddings; None where it is sqrt(C), as always."""
    name = f"{part}_embed_scale"
    if name not in args.values:  # None, where it is said, is the default
        args.require_unless_complete(name)
    return None if args.get(name) is None else args.number(name, 0.0)
