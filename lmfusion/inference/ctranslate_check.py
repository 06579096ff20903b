"""Does CTranslate2 compute what fairseq does? Log-probabilities of made-up sentences by both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from lmfusion.errors import InputError
from lmfusion.inference.hub import Translator

TOLERANCE = 1e-3
"""Greatest difference of a symbol's log-probability that float32 may explain."""


def compare(checkpoint: Path, translator: Translator, theirs: Any) -> None:
    """Refuse a model whose log-probabilities of made-up sentences differ: it has a part that was not written.

    Args:
        checkpoint: of the model, to be named.
        translator: the model in fairseq.
        theirs: CTranslate2's translator of what was written, in float32.

    Raises:
        InputError: they differ by more than :data:`TOLERANCE`.
    """
    generator = torch.Generator().manual_seed(1)
    model = translator.models[0]
    for length in (1, 7, 23):
        sides = []
        for dictionary in (translator.src_dict, translator.tgt_dict):
            ids = torch.randint(dictionary.nspecial, len(dictionary), (length,), generator=generator)
            sides.append((ids, [dictionary[each] for each in ids.tolist()]))
        (source, words), (target, symbols) = sides
        end = torch.tensor([translator.tgt_dict.eos()])
        with torch.no_grad():
            ids = torch.cat([source, end]).unsqueeze(0)
            output = model(ids, torch.tensor([length + 1]), torch.cat([end, target]).unsqueeze(0))
            logs = model.get_normalized_probs(output, log_probs=True)[0]
        ours = logs.gather(1, torch.cat([target, end]).unsqueeze(1)).squeeze(1)
        scored = theirs.score_batch([words], [symbols])[0].log_probs
        worst = float((ours - torch.tensor(scored)).abs().max())
        if not worst <= TOLERANCE:
            raise InputError(
                f"{checkpoint}: CTranslate2 gives other probabilities (by up to {worst:.3g}), so the model has a part "
                f"that it does not know; nothing was written."
            )
