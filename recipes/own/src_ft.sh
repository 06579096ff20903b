#!/usr/bin/env bash
# SRC-FT: in place of word embeddings the encoder reads the cloze LM's top state, and the LM trains with the rest.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

finetune src "$SRC_LM"
row "${FUSION[@]}"
