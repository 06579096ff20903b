#!/usr/bin/env bash
# LSTM: fairseq's LSTM with attention, without a language model.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

lstm
row "${FUSION[@]}"
