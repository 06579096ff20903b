"""What cannot work is refused by fairseq-train in one line, before anything is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

SRC_ELMO, TGT_ELMO = ("--arch", "src_elmo_tiny", "--src-lm", "{src}"), ("--arch", "tgt_elmo_tiny", "--tgt-lm", "{tgt}")
SRC_FT, TGT_FT = ("--arch", "src_ft_tiny", "--src-lm", "{src}"), ("--arch", "tgt_ft_tiny", "--tgt-lm", "{tgt}")
BOTH = (*SRC_ELMO, "--tgt-fusion", "finetune", "--tgt-lm", "{tgt}")
SHARED, SHDEMB = "--share-all-embeddings", "--share-decoder-input-output-embed"

REFUSED = {
    "SHARED with a source LM": ((*SRC_ELMO, SHARED), r"--share-all-embeddings \(SHARED\) .* no embeddings of its own"),
    "SHARED with a target LM": ((*TGT_FT, SHARED), r"--share-all-embeddings \(SHARED\) .* no embeddings of its own"),
    "SHARED with both": ((*BOTH, SHARED), r"--share-all-embeddings \(SHARED\) .* no embeddings of its own"),
    "SHDEMB with TGT-ELMO": ((*TGT_ELMO, SHDEMB), r"\(SHDEMB\) ties .* leave one of the two out"),
    "SHDEMB with TGT-FT": ((*TGT_FT, SHDEMB), r"\(SHDEMB\) ties .* leave one of the two out"),
    "cloze LM as target": (("--arch", "tgt_elmo_tiny", "--tgt-lm", "{src}"), r"the target side needs .* causal LM"),
    "cell without its LM": (("--arch", "src_elmo_tiny"), r"--src-fusion elmo needs .* --src-lm"),
    "LM without a use": (("--arch", "lmfusion_tiny", "--tgt-lm", "{tgt}"), r"--tgt-lm .* would be ignored"),
    "LM file that is not there": (("--arch", "tgt_ft_tiny", "--tgt-lm", "no.pt"), r"no\.pt does not exist"),
    "damaged LM file": (("--arch", "src_elmo_tiny", "--src-lm", "{cut}"), r"cut\.pt cannot be read as a checkpoint"),
    "finetune's flags with elmo": ((*SRC_ELMO, "--src-lm-dropout", "0"), r"it belongs to --src-fusion finetune"),
    "its learning rate with elmo": ((*TGT_ELMO, "--tgt-lm-lr-scale", ".1"), r"it belongs to --tgt-fusion finetune"),
    "elmo's flags with finetune": ((*TGT_FT, "--tgt-elmo-affine"), r"it belongs to --tgt-fusion elmo"),
    "a side's flags without LM": ((*SRC_FT, "--tgt-representation-dropout", "0.1"), r"would be ignored with --tgt-fus"),
    "all layers of the LM frozen": ((*TGT_FT, "--tgt-lm-freeze-layers", "2"), r"nothing of .* would be trained"),
    "positions the encoder lacks": ((*SRC_ELMO, "--encoder-learned-pos"), r"--encoder-learned-pos would be ignored"),
    "rates under flat fp16": ((*SRC_FT, "--src-lm-lr-scale", ".1", "--fp16"), r"add --fp16-no-flatten-grads"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_one_line_and_nothing_written(
    commands: Any, lm_files: dict[str, Path], tmp_path: Path, case: str
) -> None:
    flags, message = REFUSED[case]
    cut = tmp_path / "cut.pt"
    if "{cut}" in flags:
        whole = lm_files["src"].read_bytes()
        cut.write_bytes(whole[: len(whole) // 2])
    words = [flag.format(**lm_files, cut=cut) for flag in flags]
    line = commands.refused(*commands.training(tmp_path / "run", 1, *words))
    assert re.search(message, line), line
    assert list((tmp_path / "run").rglob("*")) == []


def test_fp16_without_a_gpu_is_one_line(commands: Any, tmp_path: Path) -> None:
    """It is found out when the optimizer is built; a lock is there by then, which holds nothing."""
    line = commands.refused(*commands.training(tmp_path / "run", 1, "--arch", "lmfusion_tiny", "--fp16"))
    assert re.search(r"--fp16 is for GPUs.*--cpu-bf16", line), line
    assert [path.name for path in (tmp_path / "run").iterdir()] == [".lock"]
