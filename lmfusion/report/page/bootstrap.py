"""Paired bootstrap of a report's systems, each computed once: a second report takes it from a file beside the page."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import sacrebleu

from lmfusion.scoring import bleu, rouge, rouge_significance
from lmfusion.scoring.bleu_metric import tokenizer_of

FILE = "significance-tests.json"
BASELINE = ""
"""Its name among the results: no row is called so, but one may be called "baseline"."""


@dataclass(frozen=True)
class Result:
    """A system's score in one metric, 0..100, among samples of the test set."""

    metric: str
    score: float
    mean: float
    ci: float
    """Half the width of the score's 95% interval."""
    p_value: float | None
    """Of the difference to the baseline; None for the baseline itself, as are the ends of its interval below."""
    low: float | None
    high: float | None
    signature: str


class Bootstrap:
    """Tests systems against a baseline, unless the file has the outcome for the same texts."""

    def __init__(self, file: Path | None) -> None:
        self._known = _read(file) if file else {}
        self._used: dict[str, list[Result]] = {}

    def test(
        self, ours: Sequence[str], theirs: Mapping[str, Sequence[str]], references: Sequence[str], signature: str
    ) -> dict[str, list[Result]]:
        """Return results by system, the baseline's under :data:`BASELINE`: in BLEU, or in ROUGE-1, -2 and -L.

        Args:
            ours: the baseline's sentences.
            theirs: those of other systems by name.
            references: as many sentences.
            signature: of the scores; says which of both it is, and for ROUGE what stands between sentences.
        """
        shared = [_digest(ours), _digest(references), signature, sacrebleu.__version__]
        shared.append(os.environ.get(bleu.SEED_VARIABLE, bleu.SEED))
        keys = {BASELINE: _digest(shared), **{name: _digest([*shared, _digest(theirs[name])]) for name in theirs}}
        if any(key not in self._known for key in keys.values()):
            missing = {name: lines for name, lines in theirs.items() if keys[name] not in self._known} or theirs
            for name, results in _compute(ours, missing, references, signature).items():
                self._known[keys[name]] = results
        found = {name: self._known[key] for name, key in keys.items()}
        self._used.update((keys[name], results) for name, results in found.items())
        return found

    def to_json(self) -> str:
        """Return what was used, to be written into :data:`FILE`."""
        return json.dumps({key: [asdict(each) for each in results] for key, results in self._used.items()}, indent=1)


def _compute(
    ours: Sequence[str], theirs: Mapping[str, Sequence[str]], references: Sequence[str], signature: str
) -> dict[str, list[Result]]:
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # no news of each step of the bootstrap
    found: dict[str, list[Result]] = {}
    named = {f" {name}": lines for name, lines in theirs.items()}  # none may be called as the bootstrap's baseline
    tested: Sequence[bleu.PairedResult | rouge_significance.PairedRouge]
    if signature.startswith("ROUGE"):
        marker, words = rouge.marker_of(signature), rouge.words_of(signature)
        tested = rouge_significance.paired_bootstrap(ours, named, references, marker, words=words)
    else:
        tested = bleu.paired_bootstrap(ours, named, references, tokenizer=tokenizer_of(signature))
    for each in tested:
        if isinstance(each, bleu.PairedResult):
            metric, score = "BLEU", each.bleu
        else:
            metric, score = rouge.HEADINGS[each.metric], each.f1
        low, high = each.difference_interval or (None, None)
        result = Result(metric, score, each.mean, each.ci, each.p_value, low, high, each.signature)
        found.setdefault(each.name[1:] if each.name in named else BASELINE, []).append(result)
    return found


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode("utf-8", errors="replace")).hexdigest()


def _read(file: Path) -> dict[str, list[Result]]:
    """Return what an earlier report has computed; nothing of a file that is damaged, for it can be computed again."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return {key: [_result(values) for values in results] for key, results in content.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _result(values: Mapping[str, object]) -> Result:
    """Return a result as it was written.

    Raises:
        TypeError: it was written by something else.
    """
    result = Result(**values)  # type: ignore[arg-type]
    for each in fields(Result):
        value, is_text = getattr(result, each.name), each.type == "str"
        if not isinstance(value, str if is_text else float) and not (value is None and "None" in str(each.type)):
            raise TypeError(f"{each.name}: {value!r}")
    return result
