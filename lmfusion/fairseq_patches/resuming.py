"""What fairseq does when it reads a checkpoint, made safe, and said in one line where it cannot be done.

fairseq itself reads whatever is there, and a flipped bit becomes a weight; a file that is cut ends in a traceback.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable

from fairseq import checkpoint_utils
from fairseq.distributed.utils import is_master
from fairseq.trainer import Trainer
from omegaconf.errors import OmegaConfBaseException

from lmfusion.checkpoint import frozen_file
from lmfusion.checkpoint.atomic_files import remove_unfinished
from lmfusion.checkpoint.contents import check_sizes
from lmfusion.checkpoint.fallback import LAST, has_optimizer, starts_from, warn_of_beginning_anew, whole_checkpoint
from lmfusion.checkpoint.locks import lock_folder
from lmfusion.checkpoint.reading import read_checkpoint, read_file
from lmfusion.errors import UserError
from lmfusion.fairseq_patches import early_stop, finished_runs
from lmfusion.training.unknown_symbols import check_unknown_symbols

_ODD_CONTENT = (
    *(TypeError, ValueError, LookupError, AttributeError, AssertionError, ArithmeticError, RuntimeError, OSError),
    ImportError,
    OmegaConfBaseException,
)
_NO_FIT = "Cannot load model parameters"


def install() -> None:
    """Make fairseq do so; safe to call again."""
    if getattr(checkpoint_utils.load_checkpoint, "falls_back", False):
        return
    _read_safely()
    _refuse_what_makes_no_model()
    _explain_what_does_not_fit()
    _fall_back()
    _explain_a_folder_without_rights()


def _read_safely() -> None:
    original: Callable[..., Any] = checkpoint_utils.load_checkpoint_to_cpu

    def load_checkpoint_to_cpu(path: str, *args: Any, **kwargs: Any) -> Any:
        """fairseq's, of a file that is whole and consists of weights and plain values; its frozen LM included."""
        read_file(Path(path), mmap=True)
        with said_of(path, "has contents that fairseq cannot read"):
            state = original(path, *args, **kwargs)
        state = frozen_file.put_back(state, Path(path), read=read_file)
        check_sizes(Path(path), state)
        return state

    checkpoint_utils.load_checkpoint_to_cpu = load_checkpoint_to_cpu


def _refuse_what_makes_no_model() -> None:
    original: Callable[..., Any] = checkpoint_utils.load_model_ensemble_and_task

    def load_model_ensemble_and_task(filenames: list[str], *args: Any, **kwargs: Any) -> Any:
        """fairseq's; a checkpoint whose configuration or weights make no model is refused in one line."""
        with said_of(", ".join(map(str, filenames)), "makes no model"):
            return original(filenames, *args, **kwargs)

    checkpoint_utils.load_model_ensemble_and_task = load_model_ensemble_and_task


def _explain_what_does_not_fit() -> None:
    original: Callable[..., Any] = Trainer.load_checkpoint

    def load_checkpoint(self: Trainer, filename: str, *args: Any, **kwargs: Any) -> Any:
        """fairseq's, which says of everything that the architectures do not match, or nothing."""
        try:
            with said_of(filename, "cannot be resumed from"):
                return original(self, filename, *args, **kwargs)
        except Exception as error:
            if not str(error).startswith(_NO_FIT):
                raise
            raise UserError(
                f"{filename} does not fit this model: {_in_short(error.__context__ or error)}. Give the flags that the "
                f"run was started with, or choose another --save-dir."
            ) from error

    Trainer.load_checkpoint = load_checkpoint


@contextmanager
def said_of(path: str, what: str) -> Iterator[None]:
    """What fairseq trips over in a checkpoint, as one line about that checkpoint."""
    try:
        yield
    except UserError:
        raise
    except _ODD_CONTENT as error:
        raise UserError(f"{path} {what}: {_in_short(error)}.") from error


def _in_short(error: BaseException) -> str:
    text = " ".join(str(error).split())[:500].rstrip(".")
    return text if isinstance(error, UserError) else f"{type(error).__name__}: {text}"


def _fall_back() -> None:
    original: Callable[..., Any] = checkpoint_utils.load_checkpoint

    def load_checkpoint(cfg: Any, trainer: Any, **kwargs: Any) -> Any:
        """fairseq's, from a checkpoint that is whole, in a folder that no other process trains into."""
        _own_folder(cfg, trainer)
        _, goes_on = starts_from(cfg, trainer.checkpoint_suffix)
        chosen = _from_whole(cfg, trainer.checkpoint_suffix)
        extra_state, itr = original(chosen, trainer, **kwargs)
        if extra_state is not None and goes_on and not (cfg.reset_optimizer or cfg.reset_meters):
            early_stop.restore(extra_state.get(early_stop.KEY))
        if extra_state is not None and goes_on and not cfg.reset_optimizer:
            _check_optimizer(starts_from(chosen, trainer.checkpoint_suffix)[0], trainer)
        finished_runs.watch()
        if type(trainer.get_model()).__module__.startswith("lmfusion."):  # fairseq's own train on what they like
            check_unknown_symbols(trainer.task)
        return extra_state, itr

    load_checkpoint.falls_back = True  # type: ignore[attr-defined]
    checkpoint_utils.load_checkpoint = load_checkpoint


def _own_folder(cfg: Any, trainer: Any) -> None:
    """Lock the folder for this run, whose master process alone asks, and remove what killed runs left half-written.

    Raises:
        UserError: another process trains into it.
    """
    folder = Path(cfg.save_dir)
    if cfg.no_save or not is_master(trainer.cfg.distributed_training) or not folder.is_dir():
        return
    trainer.folder_lock = lock_folder(folder)  # until the trainer is gone
    remove_unfinished(folder)


def _check_optimizer(path: Path | None, trainer: Any) -> None:
    """Without the optimizer's state fairseq begins at update 0, with the weights of the last one.

    Raises:
        UserError: the run was to go on.
    """
    if path is None or trainer.get_num_updates() > 0 or has_optimizer(path):
        return
    history = read_checkpoint(path).get("optimizer_history") or [{}]
    done = int(history[-1].get("num_updates", 0))
    if finished_runs.why_finished(trainer.cfg, done) is not None:
        trainer.set_num_updates(done)  # finished_runs says so and changes nothing
        return
    raise UserError(
        f"{path} has no optimizer state (--no-save-optimizer-state, lmfusion average or export), so training cannot "
        f"go on from its {done:,} updates. To begin a new training with its weights add --reset-optimizer, or give it "
        f"as --finetune-from-model with another --save-dir."
    )


def _from_whole(cfg: Any, suffix: str) -> Any:
    """The settings with the checkpoint to go on from, if it is another than fairseq would take."""
    last = Path(cfg.save_dir) / LAST
    if cfg.restore_file != LAST or suffix:
        return cfg
    if not last.is_file():
        warn_of_beginning_anew(last)
        return cfg
    whole = whole_checkpoint(last)
    if whole == last:
        return cfg
    changed = copy.copy(cfg)
    changed.restore_file, changed.finetune_from_model = str(whole), None
    return changed


def _explain_a_folder_without_rights() -> None:
    original: Callable[..., Any] = checkpoint_utils.verify_checkpoint_directory

    def verify_checkpoint_directory(save_dir: str) -> None:
        """fairseq's, which tries whether the folder can be written to."""
        try:
            original(save_dir)
        except OSError as error:
            raise UserError(
                f"--save-dir {save_dir} cannot be written to ({error.strerror}): choose another, or mend its rights or "
                f"its disk."
            ) from error

    checkpoint_utils.verify_checkpoint_directory = verify_checkpoint_directory
