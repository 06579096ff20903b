"""Decoding, scoring or validating that runs out of memory says which batch it was and what to change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from fairseq.tasks.fairseq_task import FairseqTask

from lmfusion.errors import UserError
from lmfusion.fairseq_patches.failures import describe_batch, is_out_of_memory


class NoMemoryError(UserError, RuntimeError):
    """A batch that does not fit. fairseq's trainer, which validates it a second time, looks for a RuntimeError."""


def advice_for_decoding(generator: Any, sentences: int) -> str:
    """Flags of fairseq-generate and fairseq-interactive that take less memory, from their present values.

    Args:
        generator: fairseq's, with its beam and its limits of length.
        sentences: in the batch that did not fit.
    """
    mends = [f"--batch-size {sentences // 2} or a smaller --max-tokens"] if sentences > 1 else []
    if generator.beam_size > 1:
        mends.append(f"a --beam smaller than {generator.beam_size}")
    mends.append(
        f"a lower limit on the length of what is generated than --max-len-a {generator.max_len_a:g} --max-len-b "
        f"{generator.max_len_b}"
    )
    return f"give {', '.join(mends)}, or --fp16 on a GPU"


def advice_for_scoring(sentences: int) -> str:
    """Flags of fairseq-validate and fairseq-eval-lm that take less memory."""
    return f"give --batch-size {max(1, sentences // 2)} or a smaller --max-tokens, or --fp16 on a GPU"


def install() -> None:
    """Make fairseq do so; safe to call again."""
    if getattr(SequenceGenerator.generate, "names_batches", False):
        return
    _wrap_decoding()
    _wrap_scoring()
    _wrap_validation()


@contextmanager
def naming(sample: dict[str, Any], doing: str, advice: Callable[[int], str]) -> Iterator[None]:
    """A batch that does not fit, by its sizes.

    Args:
        sample: fairseq's batch.
        doing: what is done with it, as in "out of memory scoring 4 sentences …".
        advice: what to change, given the number of sentences in the batch.

    Raises:
        NoMemoryError: if there is no memory left.
    """
    try:
        yield
    except NoMemoryError:
        raise
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        sentences = int(sample["nsentences"])
        raise NoMemoryError(f"out of memory {doing} {describe_batch(sample)}: {advice(sentences)}.") from error


def _wrap_decoding() -> None:
    original: Callable[..., Any] = SequenceGenerator.generate

    def generate(self: Any, models: Any, sample: Any, **kwargs: Any) -> Any:
        """fairseq's; what does not fit is named."""
        doing = f"generating with a beam of {self.beam_size} from"
        with naming(sample, doing, lambda sentences: advice_for_decoding(self, sentences)):
            return original(self, models, sample, **kwargs)

    generate.names_batches = True  # type: ignore[attr-defined]
    SequenceGenerator.generate = generate


def _wrap_scoring() -> None:
    original: Callable[..., Any] = SequenceScorer.generate

    def generate(self: Any, models: Any, sample: Any, **kwargs: Any) -> Any:
        """fairseq's; what does not fit is named."""
        with naming(sample, "scoring", advice_for_scoring):
            return original(self, models, sample, **kwargs)

    SequenceScorer.generate = generate


def _wrap_validation() -> None:
    original: Callable[..., Any] = FairseqTask.valid_step

    def valid_step(self: Any, sample: Any, *args: Any, **kwargs: Any) -> Any:
        """fairseq's; what does not fit is named."""
        with naming(sample, "validating", advice_for_scoring):
            return original(self, sample, *args, **kwargs)

    FairseqTask.valid_step = valid_step
