"""fairseq on today's Python and NumPy: names it still uses, every sentence in a batch, errors in one line."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from fairseq.data import data_utils, language_pair_dataset, token_block_dataset

from lmfusion.errors import InputError


def test_data_sets_of_fairseq_have_the_names_that_numpy_dropped_and_numpy_has_not() -> None:
    for module in (token_block_dataset, language_pair_dataset):
        assert module.np.compat.long(7) == 7
        assert module.np.arange is np.arange
    assert not hasattr(np, "compat") or np.__version__.startswith("1.")


def test_buckets_of_lengths_are_those_of_percentiles() -> None:
    """--num-batch-buckets uses a keyword that numpy renamed: the lower of two neighbours at each third."""
    assert data_utils.get_buckets(np.array([1, 2, 3, 10, 11]), 3).tolist() == [2, 3, 11]
    assert np.percentile([1, 2, 3, 10], 50) == data_utils.np.percentile([1, 2, 3, 10], 50) == 2.5


@pytest.mark.parametrize("count", [1, 7, 8, 9, 15, 16, 29])
@pytest.mark.parametrize("multiple", [1, 8])
@pytest.mark.parametrize("limits", [{"max_sentences": 8}, {"max_tokens": 40}, {"max_tokens": 21, "max_sentences": 3}])
def test_every_sentence_is_in_a_batch(count: int, multiple: int, limits: dict[str, int]) -> None:
    """Also the last ones, where fairseq's default asks for batches of a multiple of 8."""
    lengths = np.array([3 + index % 4 for index in range(count)])
    order = np.argsort(lengths, kind="stable")
    for vector in (lengths, None):
        batches = data_utils.batch_by_size(
            order, lambda index: lengths[index], vector, required_batch_size_multiple=multiple, **limits
        )
        assert [int(index) for batch in batches for index in batch] == order.tolist()
        for batch in batches:
            assert len(batch) <= limits.get("max_sentences", count)
            assert len(batch) * max(lengths[batch]) <= limits.get("max_tokens", count * 6)


@pytest.mark.slow
def test_installing_does_not_advertise_a_speech_package() -> None:
    code = "import logging; logging.basicConfig(level=logging.INFO); import lmfusion; lmfusion.install()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "tensorboardX" not in done.stdout + done.stderr


def test_users_mistake_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    error = InputError("lm.pt does not exist: give a checkpoint.")
    sys.excepthook(InputError, error, None)
    assert capsys.readouterr().err == "lmfusion: error: lm.pt does not exist: give a checkpoint.\n"


def test_other_errors_keep_their_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise KeyError("a bug of ours")
    except KeyError as error:
        sys.excepthook(KeyError, error, error.__traceback__)
    printed = capsys.readouterr().err
    assert "Traceback" in printed
    assert "test_compat.py" in printed
