"""Only what ends a command of fairseq's is told in one line: a program that uses lmfusion keeps its tracebacks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lmfusion.errors import InputError
from lmfusion.fairseq_patches import one_line


def raised(error: BaseException, tmp_path: Path | None = None) -> BaseException:
    """Return an error as it was raised: here, or with a folder in the main function of a command of fairseq's."""
    source = "def cli_main(error):\n    raise error\n"
    names: dict[str, object] = {}
    file = "program.py" if tmp_path is None else str(tmp_path / "fairseq_cli" / "train.py")
    exec(compile(source, file, "exec"), names)
    try:
        names["cli_main"](error.with_traceback(None))  # type: ignore[operator]
    except BaseException as caught:  # noqa: BLE001  (an interruption is none of Exception's)
        return caught
    raise AssertionError


def refused_state(*sizes: int) -> ValueError:
    """Return torch's error where an optimizer of groups of these sizes is given the state of one of two weights."""
    weights = [[torch.nn.Parameter(torch.zeros(1)) for _ in range(size)] for size in (2, *sizes)]
    first, *others = ([{"params": group}] for group in weights)
    other = torch.optim.SGD([group for groups in others for group in groups], lr=1.0)
    with pytest.raises(ValueError, match="loaded state dict") as refused:
        other.load_state_dict(torch.optim.SGD(first, lr=1.0).state_dict())
    return refused.value


ERRORS = {
    "another number of groups": (refused_state(1, 1), "--src-lm-lr-scale.*--reset-optimizer"),
    "groups of other weights": (refused_state(3), "--src-lm-lr-scale.*--reset-optimizer"),
    "missing file": (FileNotFoundError(2, "No such file or directory", "data/dict.fr.txt"), "data/dict.fr.txt: No"),
    "missing data set": (FileNotFoundError("Dataset not found: valid (data)"), "no data set valid in data"),
    "missing flag": (ValueError("lr_scheduler is required!"), "--lr-scheduler"),
    "no batch size": (
        AssertionError("Must specify batch size either with --max-tokens or --batch-size"),
        "--max-tokens",
    ),
    "overlong sentence": (
        Exception("Size of sample #5 is invalid (=(np.int32(41), np.int32(51))) since max_positions=(4, 9), skip this"),
        r"sentence 5 .* \(41, 51\) .* \(4, 9\)",
    ),
    "weights of another model": (
        RuntimeError('Error(s) in loading state_dict for LSTM:\n\tMissing key(s): "a",\n\t"b". '),
        r'not those of the LSTM .*Missing key\(s\): "a", "b"',
    ),
    "missing model": (OSError("Model file not found: a b/no.pt"), "a b/no.pt does not exist: give"),
    "interruption": (KeyboardInterrupt(), "^lmfusion: interrupted$"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_known_mistakes(tmp_path: Path, case: str) -> None:
    error, expected = ERRORS[case]
    line = one_line.describe(raised(error, tmp_path))
    assert line is not None
    assert re.search(expected, line), line
    assert one_line.describe(raised(error)) is None


def test_faults_of_a_program_keep_their_traceback(tmp_path: Path) -> None:
    for error in (ValueError("x"), KeyError("attn"), OSError(5, "Input/output error"), Exception("Size")):
        assert one_line.describe(raised(error, tmp_path)) is None


def test_our_own_errors_are_one_line_everywhere() -> None:
    assert one_line.describe(raised(InputError("--flag 3: give 4."))) == "lmfusion: error: --flag 3: give 4."


def test_one_of_ours_that_fairseq_wraps_in_one_of_its_own_is_told(tmp_path: Path) -> None:
    error = Exception("Cannot load model parameters from checkpoint a.pt; please ensure that the architectures match.")
    line = one_line.describe(raised(error, tmp_path))
    assert line is not None
    assert "a.pt does not fit this model" in line
    error.__context__ = InputError("another dictionary")
    assert one_line.describe(raised(error, tmp_path)) == "lmfusion: error: another dictionary"


@pytest.mark.slow
def test_installing_loads_no_command_of_fairseq() -> None:
    """They set up logging when they are imported, which a program that translates has not asked for."""
    code = "import lmfusion, sys; lmfusion.install(); print([name for name in sys.modules if 'fairseq_cli' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
