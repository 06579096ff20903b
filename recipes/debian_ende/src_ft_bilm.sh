#!/usr/bin/env bash
# SRC-FT with a pair of LSTM LMs: the encoder reads their top states, and they train with the rest.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

earlier_lm elmo
finetune src "$SRC_LM"
row "${FUSION[@]}" --src-positions own
