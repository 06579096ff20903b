"""What fairseq does when it reads a checkpoint, made safe, and said in one line where it cannot be done.

fairseq itself reads whatever is there, and a flipped bit becomes a weight; a file that is cut ends in a traceback.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable

from fairseq import checkpoint_utils
from omegaconf.errors import OmegaConfBaseException

from lmfusion.checkpoint import frozen_file
from lmfusion.checkpoint.atomic_files import UNFINISHED
from lmfusion.checkpoint.contents import check_sizes
from lmfusion.checkpoint.fallback import LAST, has_optimizer, warn_of_beginning_anew, whole_checkpoint
from lmfusion.checkpoint.reading import read_checkpoint, read_file
from lmfusion.errors import UserError
from lmfusion.fairseq_patches import early_stop, finished_runs

_ODD_CONTENT = (
    *(TypeError, ValueError, LookupError, AttributeError, AssertionError, ArithmeticError, RuntimeError, OSError),
    ImportError,
    OmegaConfBaseException,
)
_NO_FIT = "Cannot load model parameters"


def install() -> None:
    """Make fairseq do so; safe to call again."""
    if getattr(checkpoint_utils.load_checkpoint_to_cpu, "reads_safely", False):
        return
    _read_safely()
    _refuse_what_makes_no_model()
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

    load_checkpoint_to_cpu.reads_safely = True  # type: ignore[attr-defined]
    checkpoint_utils.load_checkpoint_to_cpu = load_checkpoint_to_cpu


def _refuse_what_makes_no_model() -> None:
    original: Callable[..., Any] = checkpoint_utils.load_model_ensemble_and_task

    def load_model_ensemble_and_task(filenames: list[str], *args: Any, **kwargs: Any) -> Any:
        """fairseq's; a checkpoint whose configuration or weights make no model is refused in one line."""
        with said_of(", ".join(map(str, filenames)), "makes no model"):
            return original(filenames, *args, **kwargs)

    checkpoint_utils.load_model_ensemble_and_task = load_model_ensemble_and_task


def from_whole_checkpoint(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``Trainer.load_checkpoint`` that starts from a checkpoint that is whole.

    It is wrapped here, where fairseq has decided which file it reads and what it takes over from it.
    """

    def load_checkpoint(
        self: Any,
        filename: str,
        reset_optimizer: bool = False,
        reset_lr_scheduler: bool = False,
        optimizer_overrides: dict[str, Any] | None = None,
        reset_meters: bool = False,
    ) -> Any:
        """Call fairseq's; what killed runs left half-written is removed, and the counts of --patience go on."""
        folder = Path(self.cfg.checkpoint.save_dir)
        if self.data_parallel_rank == 0 and folder.is_dir():
            for left in folder.glob(f"*.pt{UNFINISHED}"):
                left.unlink(missing_ok=True)
        path = _whole(Path(filename), self.cfg.checkpoint, self.checkpoint_suffix)
        with _explained(path):
            extra_state = original(
                self, str(path), reset_optimizer, reset_lr_scheduler, optimizer_overrides, reset_meters=reset_meters
            )
        if extra_state is not None and not reset_optimizer:
            _check_optimizer(path, self)
            if not reset_meters:
                early_stop.restore(extra_state.get(early_stop.KEY))
        finished_runs.watch()
        return extra_state

    return load_checkpoint


def _whole(path: Path, options: Any, suffix: str) -> Path:
    """Return the checkpoint to resume from: the one that fairseq takes, or another where that is damaged.

    Args:
        path: that fairseq is about to read, if it is there.
        options: fairseq's configuration of checkpoints.
        suffix: of this process's files, where each writes its own.
    """
    last = Path(options.save_dir) / LAST
    if options.restore_file != LAST or suffix:
        return path
    if not last.is_file():
        warn_of_beginning_anew(last)
        return path
    return whole_checkpoint(last) if path == last else path


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say what does not fit; fairseq says of everything that the architectures do not match, or nothing."""
    try:
        with said_of(str(path), "cannot be resumed from"):
            yield
    except Exception as error:
        if not str(error).startswith(_NO_FIT):
            raise
        raise UserError(
            f"{path} does not fit this model: {_in_short(error.__context__ or error)}. Give the flags that the "
            f"run was started with, or choose another --save-dir."
        ) from error


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


def _check_optimizer(path: Path, trainer: Any) -> None:
    """Refuse a checkpoint without the optimizer's state: fairseq restarts at update 0, with the weights of the last.

    Raises:
        UserError: the run was to go on.
    """
    if trainer.get_num_updates() > 0 or has_optimizer(path):
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
