#!/usr/bin/env bash
# SRC-ELMO with one frozen LSTM LM, which reads from left to right.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

earlier_lm recurrent
elmo src "$SRC_LM"
row "${FUSION[@]}" --src-positions own
