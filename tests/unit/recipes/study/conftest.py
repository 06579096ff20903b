"""A study's workplace with row scripts that only pretend to train."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

# Trains in no time: the validation loss is that of losses.json for its dropouts, the score is its seed.
ROW = r"""#!/usr/bin/env bash
set -eu
row="$(basename "$0" .sh)"
echo "$BITEXT_LINES $row $SEED $S2S_UPDATES $S2S_DROPOUT $ELMO_DROPOUT $S2S_LR ${TRAIN_ONLY:-scored}" >>"$CALLS"
if [[ "$row" == "${FAIL:-}" ]]; then echo "Traceback (most recent call last)"; echo "ValueError: no luck"; exit 3; fi
mkdir -p "$OUT/$row"
python3 - "$OUT/$row" "$LOSSES" "$row $S2S_UPDATES $S2S_DROPOUT $ELMO_DROPOUT" <<'PYTHON'
import json, os, pathlib, sys
run, losses, key = pathlib.Path(sys.argv[1]), json.loads(pathlib.Path(sys.argv[2]).read_text()), sys.argv[3]
bitext = os.environ["DATA_DIR"] + "/bitext-" + os.environ["BITEXT_LINES"]
words = ["fairseq-train", bitext, "--user-dir", os.getcwd() + "/lmfusion"]
train = {"state": "finished", "command": words, "seconds": 9.0, "result": {"best_valid_loss": losses.get(key, 7.0)}}
record = {"name": run.name, "seed": int(os.environ["SEED"]), "steps": {"train": train}, "state": "finished"}
(run / "run.json").write_text(json.dumps(record))
line = '2030-01-31 12:00:00 | INFO | train_inner | {"epoch": 1, "loss": "3.5", "num_updates": "%d"}\n'
nll = losses.get(key, 7.0)
valid = '2030-01-31 12:00:00 | INFO | valid | {"valid_loss": "%s", "valid_nll_loss": "%s"}\n' % (nll + 1, nll)
(run / "train.log").write_text("noise " + os.getcwd() + "\n" + valid + "".join(line % (10 * n) for n in range(1, 11)))
if "TRAIN_ONLY" not in os.environ:
    score = {"bleu": float(os.environ["SEED"]), "chrf": 20.0, "signature": "s", "hypotheses": "test.hyp"}
    (run / "test.hyp").write_text("ein Haus\n")
    (run / "scores.json").write_text(json.dumps({"test": {**score, "reference": os.getcwd() + "/data/test.de"}}))
PYTHON
"""
CORPUS = r"""#!/usr/bin/env bash
set -eu
mkdir -p "$DATA_DIR/bitext-$BITEXT_LINES"
cp valid.bin "$DATA_DIR/bitext-$BITEXT_LINES/valid.en-de.de.bin"
cp valid.idx "$DATA_DIR/bitext-$BITEXT_LINES/valid.en-de.de.idx"
"""


@dataclass
class Workplace:
    """A folder that stands for the repository: row scripts that pretend, and notes of what was called."""

    folder: Path
    losses: dict[str, float] = field(default_factory=dict)

    def calls(self) -> list[str]:
        """What each script was told: pairs, row, seed, updates, both dropouts, learning rate, whether it was scored."""
        notes = self.folder / "calls"
        return notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []

    def set_losses(self, losses: Mapping[str, float]) -> None:
        """The validation loss by "row updates dropout representation-dropout"; 7 for all others."""
        (self.folder / "losses.json").write_text(json.dumps(losses), encoding="utf-8")


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    folder = tmp_path / "work"
    rows = folder / "recipes" / "debian_ende"
    rows.mkdir(parents=True)
    for name in ("baseline", "src_elmo_shdemb", "src_elmo", "src_ft", "shared"):
        (rows / f"{name}.sh").write_text(ROW, encoding="utf-8")
    (rows / "_corpus.sh").write_text(CORPUS, encoding="utf-8")
    builder = MMapIndexedDatasetBuilder(str(folder / "valid.bin"), dtype=np.uint16)
    for _ in range(3):
        builder.add_item(torch.tensor([5, 6, 2]))
    builder.finalize(str(folder / "valid.idx"))
    corpus = folder / "data-prep" / "debian" / "en-de"
    corpus.mkdir(parents=True)
    for name, lines in {"train.en": 20000, "valid.de": 3, "test.en": 1, "test.de": 1}.items():
        (corpus / name).write_text("ein Haus\n" * lines, encoding="utf-8")
    made = Workplace(folder)
    made.set_losses({})
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CALLS", str(folder / "calls"))
    monkeypatch.setenv("LOSSES", str(folder / "losses.json"))
    return made
