#!/usr/bin/env bash
# LSTM with back-translation.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

back_translated
lstm
row "${FUSION[@]}"
