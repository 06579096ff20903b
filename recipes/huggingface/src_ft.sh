#!/usr/bin/env bash
# SRC-FT: in place of word embeddings the encoder reads the BERT's top state, and the BERT trains with the rest.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/_corpus.sh"

finetune_bert "$SRC_LM"
row "${FUSION[@]}"
