#!/usr/bin/env bash
# LSTM + SRC-ELMO + SHDEMB: LSTM + SRC-ELMO, and one embedding for the decoder's input and output.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

lstm_src_elmo "$SRC_LM"
row "${FUSION[@]}" --share-decoder-input-output-embed
