"""Pickles that ask for blocked modules, and what the message may say."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from lmfusion.errors import InputError
from lmfusion.lm.loading import load_lm


class Command:
    def __init__(self, line: str) -> None:
        self.line = line

    def __reduce__(self) -> Any:
        return os.system, (self.line,)


def test_shell_command_is_named_and_not_executed(tmp_path: Path) -> None:
    torch.save({"model": {}, "extra": Command(f"touch {tmp_path}/executed")}, tmp_path / "lm.pt")
    with pytest.raises(InputError, match=r"asks to run (posix|os)\.system.*Nothing of it was executed"):
        load_lm(tmp_path / "lm.pt")
    assert not (tmp_path / "executed").exists()


def test_no_message_advises_unsafe_loading(tmp_path: Path) -> None:
    (tmp_path / "lm.pt").write_text("Das ist ein Satz.\n" * 9)
    with pytest.raises(InputError) as caught:
        load_lm(tmp_path / "lm.pt")
    assert "weights_only" not in str(caught.value)
