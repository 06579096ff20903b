#!/usr/bin/env bash
# SRC-ELMO as Peters et al. had it: the encoder reads a learned mix of the layers of a frozen pair of LSTM LMs.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

earlier_lm elmo
elmo src "$SRC_LM"
row "${FUSION[@]}" --src-positions own
