#!/usr/bin/env bash
# LSTM + SRC-ELMO: its encoder reads a learned mix of the frozen cloze LM's layers.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

lstm_src_elmo "$SRC_LM"
row "${FUSION[@]}"
