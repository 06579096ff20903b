#!/usr/bin/env bash
# LSTM with back-translation: the LSTM trains on plain text of the target language and its translation, too.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

own_back_translation
lstm
row "${FUSION[@]}"
