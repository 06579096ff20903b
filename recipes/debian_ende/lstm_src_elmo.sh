#!/usr/bin/env bash
# LSTM + SRC-ELMO: its encoder reads a learned mix of the frozen cloze LM's layers.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

lstm
row "${FUSION[@]}" --src-fusion elmo --src-lm "$SRC_LM" --src-elmo-dropout "$ELMO_DROPOUT" --src-elmo-affine
