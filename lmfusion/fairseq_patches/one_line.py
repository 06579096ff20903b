"""One line in the place of a traceback, for what the person at the keyboard did or can change.

fairseq raises plain exceptions for a missing file, a missing flag or an overlong sentence. They are recognized where
they end a command of fairseq's, by Python's own hook: nothing in fairseq is changed for it.
"""

from __future__ import annotations

import re
from types import TracebackType
from typing import Callable

from lmfusion.errors import InputError, shown

INTERRUPTED = "lmfusion: interrupted"
_FILES = (FileNotFoundError, PermissionError, NotADirectoryError, IsADirectoryError)


def describe(error: BaseException) -> str | None:
    """Return the line that ends a command of fairseq's with this error; None where a traceback belongs.

    Args:
        error: as it was raised, traceback included.
    """
    if isinstance(error, InputError):
        return f"lmfusion: error: {shown(error)}"
    if not _ends_a_command(error.__traceback__):
        return None
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error.__context__, InputError):  # fairseq says "Cannot load model parameters" whatever the reason
        return describe(error.__context__)
    for kinds, pattern, sentence in _KNOWN:
        found = re.fullmatch(pattern, str(error), re.DOTALL) if isinstance(error, kinds) else None
        if found is not None:
            return f"lmfusion: error: {sentence(found)}"
    if isinstance(error, _FILES) and error.filename is not None:
        return f"lmfusion: error: {error.filename}: {error.strerror}.{_advice(str(error.filename))}"
    return None


def _ends_a_command(traceback: TracebackType | None) -> bool:
    """Return whether the error went through the main function of a command of fairseq's."""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_name in ("cli_main", "hydra_main") and "fairseq_cli" in code.co_filename:
            return True
        traceback = traceback.tb_next
    return False


def _advice(file: str) -> str:
    if not re.search(r"dict\.[^/]+\.txt$", file):
        return ""
    return " Give the folder that fairseq-preprocess made, and the languages of its files (-s, -t)."


def _missing_split(found: re.Match[str]) -> str:
    return (
        f"there is no data set {found[1]} in {found[2]}: check the folder and the name (--train-subset, "
        f"--valid-subset, --gen-subset), or prepare it (fairseq-preprocess); --disable-validation trains without one."
    )


def _missing_choice(found: re.Match[str]) -> str:
    return f"--{found[1].replace('_', '-')} is missing: give one."


def _not_there(found: re.Match[str]) -> str:
    return f"{found[1]} {found[2]} does not exist: give the path of a checkpoint file, or leave {found[1]} out."


def _no_model(found: re.Match[str]) -> str:
    return f"{found[1]} does not exist: give the path of a checkpoint (…/checkpoint_best.pt)."


def _does_not_fit(found: re.Match[str]) -> str:
    return (
        f"{found[1]} does not fit this model: give the flags that its run was started with, or choose another "
        f"--save-dir (lmfusion inspect tells what is in it)."
    )


def _other_weights(found: re.Match[str]) -> str:
    details = " ".join(found[2].split())
    return (
        f"the weights in the checkpoint are not those of the {found[1]} that its configuration, or --model-overrides, "
        f"describes: {details[:300]}{'…' if len(details) > 300 else ''}"
    )


def _too_long(found: re.Match[str]) -> str:
    size = re.sub(r"np\.int\d+\((\d+)\)", r"\1", found[2])
    return (
        f"sentence {found[1]} of a data set (counted from 0) has {size} tokens, and the model, with the language "
        f"models in it, takes {found[3]}: add --skip-invalid-size-inputs-valid-test to leave such sentences out, or "
        f"--truncate-source where the source is too long, or split it."
    )


def _no_batch_size(_: re.Match[str]) -> str:
    return "how large a batch is has not been said: give --max-tokens, or --batch-size (sentences)."


def _other_groups(_: re.Match[str]) -> str:
    return (
        "the optimizer's state in the checkpoint is that of other groups of weights: give --src-lm-lr-scale, "
        "--src-lm-freeze-layers and --src-lm-freeze-updates (and those of --tgt-lm) as the run was started with, or "
        "let the optimizer begin anew (--reset-optimizer)."
    )


_OTHER_GROUPS = r"loaded state dict (has a different number of parameter groups|contains a parameter group .*)"
_KNOWN: tuple[tuple[type[BaseException], str, Callable[[re.Match[str]], str]], ...] = (
    (FileNotFoundError, r"Dataset not found: (\S+) \((.*)\)", _missing_split),
    (ValueError, r"(\w+) is required!", _missing_choice),
    (AssertionError, r"Must specify batch size either with --max-tokens or --batch-size", _no_batch_size),
    (ValueError, r"(--[\w-]+) (\S+) does not exist", _not_there),
    (ValueError, _OTHER_GROUPS, _other_groups),
    (Exception, r"Cannot load model parameters from checkpoint (\S+); please ensure .*", _does_not_fit),
    (OSError, r"Model file not found: (.*)", _no_model),
    (RuntimeError, r"Error\(s\) in loading state_dict for (\w+):(.*)", _other_weights),
    (Exception, r"Size of sample #(\d+) is invalid \(=(.*)\) since max_positions=(.*), skip this.*", _too_long),
)
"""fairseq's own messages: the kind of error, the whole message, and the sentence in its place."""
