#!/usr/bin/env bash
# LSTM + SHDEMB: fairseq's LSTM with attention, and one embedding for the decoder's input and output.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

lstm
row "${FUSION[@]}" --share-decoder-input-output-embed
