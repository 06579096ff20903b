#!/usr/bin/env bash
# SRC-ELMO: in place of word embeddings the encoder reads a learned mix of the frozen BERT's layers.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

elmo src "$SRC_LM"
row "${FUSION[@]}"
