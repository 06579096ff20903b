#!/usr/bin/env bash
# The LSTM in the other direction, and its translation of plain text of the target language for rows with back-translation.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

(other_direction && lstm && train_seq2seq reverse "${FUSION[@]}")
back_translated
